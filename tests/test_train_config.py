"""Options, fields and what a resumed training may be given anew."""

import dataclasses

import pytest

from pairgen.commands import dpo_, sft_
from pairgen.errors import UsageProblem
from pipelines.train_config import MAY_CHANGE, DpoConfig, SftConfig, resumed

FOLDERS = {"out", "resume", "overwrite", "as_json", "show"}


@pytest.mark.parametrize(
    ("command", "config", "beside"),
    [(dpo_.command, DpoConfig, set()), (sft_.command, SftConfig, {"sources", "clembench"})],
)
def test_options_and_configuration_have_the_same_names(command, config, beside):
    options = {p.name for p in command.params}
    fields = {f.name for f in dataclasses.fields(config)}
    assert options - fields - beside - FOLDERS == ({"pairs"} if config is DpoConfig else set())
    assert fields <= options
    assert fields >= MAY_CHANGE


def test_options_default_to_what_the_fields_default_to():
    for command, config in ((dpo_.command, DpoConfig), (sft_.command, SftConfig)):
        defaults = {p.name: p.default for p in command.params}
        fields = {f.name: f.default for f in dataclasses.fields(config)}
        told = config(**{name: value for name, value in defaults.items() if name in fields and value is not None})
        for name, value in fields.items():
            if not isinstance(value, tuple):
                assert getattr(told, name) in (value, None) or not value, name


def test_a_resumed_training_keeps_its_settings_and_takes_merge_anew():
    saved = dataclasses.asdict(DpoConfig(model="m", beta=0.2, lora_save=("lm_head",)))
    back = resumed({**saved, "lora_save": ["lm_head"]}, DpoConfig(model="m", merge=True), {"model", "merge"})
    assert back == DpoConfig(model="m", beta=0.2, lora_save=("lm_head",), merge=True)


def test_what_contradicts_the_training_is_named():
    saved = dataclasses.asdict(DpoConfig(model="m", beta=0.2))
    with pytest.raises(UsageProblem, match=r"leave out --beta 0\.3 \(the training has 0\.2\)"):
        resumed(saved, DpoConfig(model="m", beta=0.3), {"beta"})
