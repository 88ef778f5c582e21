"""dpo.yaml is beside every pair set, every key of it is one of TRL's, and TRL trains by it as it is."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from factories import make_episodes, write_run

from pairgen.cli import main
from pipelines import dpo_yaml, pairset
from pipelines.manifest import RunUsed

RUN = RunUsed("run", "rollout", "owner/model", "", 0.7, 1.0, 300, 1)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("yaml")
    run = write_run(folder / "run", make_episodes(tasks=4))
    arguments = ["corrupt", str(run), "--no-eval-split", "--no-verify", "--out", str(folder / "pairs")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    return folder / "pairs"


def read(text):
    import yaml

    return yaml.safe_load(text)


def test_values_are_read_back_as_what_they_are(pairs):
    values = read((pairs / dpo_yaml.NAME).read_text())
    assert values["learning_rate"] == 5e-5
    assert values["beta"] == 0.3
    assert values["eval_strategy"] == "epoch"
    assert values["use_peft"] is True
    assert values["per_device_train_batch_size"] * values["gradient_accumulation_steps"] == 8


def test_every_key_is_one_that_trl_knows(pairs):
    from trl import DPOConfig, ModelConfig, ScriptArguments

    known = {f.name for cls in (DPOConfig, ModelConfig, ScriptArguments) for f in dataclasses.fields(cls)}
    assert set(read((pairs / dpo_yaml.NAME).read_text())) <= known


def test_the_model_is_that_of_the_runs_and_none_where_there_are_several_or_adapters(pairs):
    manifest = pairset.read_manifest(pairs)

    def model(*runs):
        return read(dpo_yaml.render(dataclasses.replace(manifest, runs=runs)))["model_name_or_path"]

    assert model(RUN) == "owner/model"
    assert model(dataclasses.replace(RUN, model="my-model")) == "my-model"
    assert model(RUN, dataclasses.replace(RUN, model="other")) == "MODEL"
    assert model(dataclasses.replace(RUN, lora="adapter")) == "MODEL"
    assert model() == "MODEL"


def test_a_set_without_test_pairs_is_not_evaluated(pairs):
    manifest = dataclasses.replace(pairset.read_manifest(pairs), test=0)
    assert read(dpo_yaml.render(manifest))["eval_strategy"] == "no"


def test_what_the_chat_template_was_given_is_told(pairs):
    run = dataclasses.replace(RUN, chat_template_kwargs=("enable_thinking=false",))
    text = dpo_yaml.render(dataclasses.replace(pairset.read_manifest(pairs), runs=(run,)))
    assert "# The model was asked with enable_thinking=false" in text


@pytest.mark.model
def test_trl_trains_by_it_as_it_is(pairs, tiny_model, tmp_path):
    here = shutil.copytree(pairs, tmp_path / "pairs")
    trl = Path(sys.executable).with_name("trl")
    options = ["--model_name_or_path", tiny_model, "--max_steps", "2", "--use_cpu", "true"]
    done = subprocess.run(
        [trl, "dpo", "--config", dpo_yaml.NAME, *map(str, options)], cwd=here, capture_output=True, text=True,
        env={**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "trl-dpo" / "adapter_model.safetensors").exists()
    assert "'eval_rewards/margins'" in done.stdout
