"""A run's configuration: every option is a field, and a resumed run contradicts nothing that was played."""

import dataclasses

import pytest

from pairgen.commands import rollout_
from pairgen.errors import UsageProblem
from pipelines.rollout_config import MAY_CHANGE, MAY_GROW, RolloutConfig, resumed


def test_resume_refuses_what_contradicts_the_run():
    saved = dataclasses.asdict(RolloutConfig(model="m", games=("a",), seed=1))
    given = RolloutConfig(model="other", games=("b",), seed=2, concurrency=8, temperature=0.0)
    with pytest.raises(UsageProblem, match="--model other .the run has m.*--seed 2 .the run has 1."):
        resumed(saved, given, {"model", "seed", "temperature"})
    grown = resumed(saved, given, {"games", "concurrency"})
    assert (grown.model, grown.games, grown.seed, grown.concurrency) == ("m", ("a", "b"), 1, 8)


def test_options_and_configuration_have_the_same_names():
    options = {p.name for p in rollout_.command.params}
    fields = {f.name for f in dataclasses.fields(RolloutConfig)}
    assert options - fields == {"out", "resume", "overwrite", "as_json"}
    assert fields <= options
    assert fields >= MAY_CHANGE | MAY_GROW
