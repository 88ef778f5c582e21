"""`pairgen dpo` trains on what it was given, says first what TRL would do silently, and survives a kill."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from factories import make_episodes, write_run

from pairgen import store
from pairgen.cli import main
from pipelines import pairset
from pipelines.train_folder import newest_checkpoint

SMALL = ["--batch-size", "2", "--max-steps", "2", "--lora-r", "4", "--lora-alpha", "8"]


def pairgen(*arguments, code=0):
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def summary_of(result):
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    run = write_run(folder / "run", make_episodes(tasks=4))
    pairgen("corrupt", run, "--no-eval-split", "--no-verify", "--out", folder / "pairs", "--strategy", "looping")
    return folder / "pairs"


@pytest.fixture(scope="module")
def trained(pairs, tiny_model, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "out"
    return out, pairgen("dpo", pairs, "--model", tiny_model, "--out", out, *SMALL, "--learning-rate", 0.01, "--json")


def test_two_steps_leave_an_adapter_a_card_and_a_manifest_that_says_how(trained, pairs, tiny_model):
    from safetensors.torch import load_file

    out, result = trained
    summary = summary_of(result)
    assert summary["steps"] == 2
    assert summary["loss_first"] == pytest.approx(0.693, abs=0.001)
    assert summary["test"]["margin"] != 0
    assert summary["merged"] is None
    weights = load_file(out / "adapter" / "adapter_model.safetensors")
    assert any(weight.abs().max() > 0 for name, weight in weights.items() if "lora_B" in name)
    manifest = store.read_json(out / "manifest.json")
    assert manifest["data"]["content"] == pairset.read_manifest(pairs).content
    assert manifest["hyper"]["beta"] == 0.3
    assert manifest["hyper"]["max_length"] > 0
    assert manifest["versions"]["trl"]
    assert str(tiny_model) not in json.dumps(manifest)
    assert not (out / "checkpoints").exists()
    assert "trained by DPO" in (out / "README.md").read_text()


def test_memory_and_batch_are_said_before_the_model_is_loaded(trained):
    _, result = trained
    said = result.stderr.splitlines()
    memory = next(i for i, line in enumerate(said) if line.startswith("expected memory: "))
    assert "2 rows" not in said[memory]
    assert "2 steps of 2 (= 2 a device x 1 accumulated x 1 device)" in said[memory + 1]


def test_a_folder_that_is_trained_is_not_overwritten_silently(trained, pairs, tiny_model):
    out, _ = trained
    result = pairgen("dpo", pairs, "--model", tiny_model, "--out", out, *SMALL, code=2)
    assert "--overwrite" in result.output


def test_a_finished_training_can_be_merged_with_resume_and_is_not_trained_again(trained, pairs):
    out, _ = trained
    adapter = (out / "adapter" / "adapter_model.safetensors").read_bytes()
    summary = summary_of(pairgen("dpo", pairs, "--out", out, "--resume", "--merge", "--json"))
    assert (out / "adapter" / "adapter_model.safetensors").read_bytes() == adapter
    assert summary["merged"] == str(out / "merged")
    assert (out / "merged" / "model.safetensors").exists()
    assert store.read_json(out / "manifest.json")["merged"] == "merged"


def test_what_contradicts_the_training_is_refused(trained, pairs):
    out, _ = trained
    result = pairgen("dpo", pairs, "--out", out, "--resume", "--beta", 0.5, code=2)
    assert "leave out --beta 0.5" in result.output


def test_a_training_is_not_gone_on_with_on_other_rows(trained, tmp_path):
    out, _ = trained
    run = write_run(tmp_path / "run", make_episodes(tasks=3))
    pairgen("corrupt", run, "--no-eval-split", "--no-verify", "--out", tmp_path / "pairs")
    result = pairgen("dpo", tmp_path / "pairs", "--out", out, "--resume", code=2)
    assert "has other rows" in result.output


def test_rows_over_the_length_stop_it_before_anything_is_written(pairs, tiny_model, tmp_path):
    arguments = ["dpo", pairs, "--model", tiny_model, "--out", tmp_path / "out", *SMALL, "--max-length"]
    result = pairgen(*arguments, 60, code=1)
    assert "over_max_length" in result.output
    assert "Give --max-length" in result.output
    assert not (tmp_path / "out").exists()


def test_unfit_rows_are_dropped_and_counted_where_that_is_said(tiny_model, tmp_path):
    good = {"prompt": "Guess a fruit.", "chosen": "GUESS: apple", "rejected": "GUESS: apple, I think so."}
    rows = [{**good, "prompt": f"Guess fruit {i}.", "pair": i} for i in range(6)]
    rows += [{**good, "rejected": good["chosen"]}, {**good, "rejected": "x" * 2000}]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    arguments = ["dpo", path, "--model", tiny_model, "--out", tmp_path / "out", *SMALL, "--max-length", 300, "--json"]
    refused = pairgen(*arguments, code=1)
    assert "2 of 8 rows" in refused.output
    assert "1 identical" in refused.output
    assert "1 over_max_length" in refused.output
    result = pairgen(*arguments, "--drop-unfit")
    assert summary_of(result)["data"]["left_out"] == {"identical": 1, "over_max_length": 1}
    assert "columns left out: pair" in result.stderr
    assert summary_of(result)["data"]["train"] + summary_of(result)["data"]["test"] == 6


def test_columns_that_trl_would_read_are_refused(tiny_model, tmp_path):
    rows = [{"prompt": f"Guess {i}.", "chosen": "A", "rejected": "B", "tools": "[]"} for i in range(4)]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(rows))
    result = pairgen("dpo", path, "--model", tiny_model, "--out", tmp_path / "out", code=1)
    assert "has the column tools" in result.output


def test_a_model_without_a_chat_template_is_refused_with_the_fix(pairs, tmp_path):
    from tiny import make_tiny_model

    plain = make_tiny_model(tmp_path / "plain", template=None)
    result = pairgen("dpo", pairs, "--model", plain, "--out", tmp_path / "out", code=1)
    assert "chat_template.jinja" in result.output


def test_all_weights_end_in_a_checkpoint_of_the_base_dtype(pairs, tiny_model, tmp_path):
    from safetensors.torch import load_file

    arguments = ["--full", "--learning-rate", 0.01, "--batch-size", 2, "--max-steps", 2, "--json"]
    summary = summary_of(pairgen("dpo", pairs, "--model", tiny_model, "--out", tmp_path / "out", *arguments))
    assert summary["adapter"] is None
    before, after = (load_file(p / "model.safetensors") for p in (tiny_model, tmp_path / "out" / "model"))
    assert before.keys() == after.keys()
    assert {weight.dtype for weight in after.values()} == {weight.dtype for weight in before.values()}
    assert any(not weight.equal(before[name]) for name, weight in after.items())
    assert summary["merged"] == str(tmp_path / "out" / "model")


def test_a_killed_training_goes_on_and_ends_as_one_that_was_not(pairs, tiny_model, tmp_path):
    from safetensors.torch import load_file

    many = ["--batch-size", "2", "--max-steps", "30", "--save-steps", "2", "--learning-rate", "0.01"]
    words = ["dpo", str(pairs), "--model", str(tiny_model), *many, "--out"]
    pairgen(*words, tmp_path / "whole")
    out = tmp_path / "killed"
    done = subprocess.Popen([sys.executable, "-m", "pairgen.cli", *words, str(out)], env={**os.environ})
    deadline = time.monotonic() + 120
    while newest_checkpoint(out) is None and done.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    done.send_signal(signal.SIGKILL)
    assert done.wait() == -signal.SIGKILL
    torn = out / "checkpoints" / "checkpoint-99"
    torn.mkdir()
    result = pairgen("dpo", pairs, "--out", out, "--resume", "--json")
    assert summary_of(result)["steps"] == 30
    weights = [load_file(folder / "adapter" / "adapter_model.safetensors") for folder in (tmp_path / "whole", out)]
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        assert weight.sub(weights[1][name]).abs().max() < 1e-5, name


def test_recipes_are_listed_with_their_source():
    listed = summary_of(pairgen("dpo", "--list", "--json"))["recipes"]
    assert listed["qwen3.5-9b-antiverbosity"]["beta"] == 0.3
    assert "github.com" in listed["llama3.1-8b-dpo-mix"]["source"]
