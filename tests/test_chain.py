"""A real model plays, learns from its own play by DPO, is merged, and plays again: every link is a pairgen command."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from pairgen.store import read_episodes

pytestmark = pytest.mark.model


def pairgen(*arguments):
    command = [sys.executable, "-m", "pairgen.cli", *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=None, text=True)
    assert done.returncode == 0
    return json.loads(done.stdout.splitlines()[-1])


def test_twenty_steps_teach_and_the_merged_model_plays_and_ends_its_turns(smollm2, tmp_path):
    run, pairs, out = (tmp_path / name for name in ("run", "pairs", "out"))
    play = ["--games", "roundtrip", "--max-tokens", 48, "--max-model-len", 1024]
    pairgen("rollout", "--engine", "transformers", "--model", smollm2, *play, "--limit", 10, "--out", run)
    cleaning = ["--no-eval-split", "--no-verify", "--per-player", 0, "--test-size", 0.25]
    pairgen("corrupt", run, *cleaning, "--tokenizer", smollm2, "--max-length", 170, "--out", pairs)
    how = ["--max-steps", 20, "--batch-size", 1, "--learning-rate", 2e-4, "--no-gradient-checkpointing", "--merge"]
    made = pairgen("dpo", pairs, "--model", smollm2, "--out", out, *how)
    assert made["loss_first"] == pytest.approx(0.693, abs=0.001)
    assert made["loss_last"] < 0.5
    assert made["test"]["margin"] > 0.3  # it is 0 before the first step
    assert made["test"]["accuracy"] > 0.5
    assert made["stops"]
    if importlib.util.find_spec("vllm") is None:
        assert os.environ.get("PAIRGEN_REQUIRE_VLLM") != "1", "PAIRGEN_REQUIRE_VLLM=1, and vLLM is not installed"
        pytest.skip("vLLM is not installed; PAIRGEN_REQUIRE_VLLM=1 makes this a failure")
    again = pairgen(
        "rollout", "--engine", "vllm", "--model", made["merged"], *play, "--limit", 4, "--out", tmp_path / "2"
    )
    assert again["played"] == 4
    moves = [move for episode in read_episodes(tmp_path / "2") for move in episode.moves]
    assert {move.finish_reason for move in moves} == {"stop"}


def test_two_processes_train_as_one(tiny_model, tmp_path):
    rows = [
        {"prompt": f"Guess fruit {i}.", "chosen": f"GUESS: {i}", "rejected": f"GUESS: {i}, I think."} for i in range(8)
    ]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(rows))
    how = ["dpo", path, "--model", tiny_model, "--batch-size", 2, "--max-steps", 4, "--learning-rate", 0.01]
    alone = pairgen(*how, "--out", tmp_path / "one")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "pairgen.cli"]
    words = [*launcher, *map(str, how), "--out", str(tmp_path / "two"), "--json"]
    on_cpu = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=on_cpu)
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("{")]
    both = json.loads(line)
    assert both["test"]["margin"] == pytest.approx(alone["test"]["margin"], rel=0.02)
    assert (tmp_path / "two" / "adapter" / "adapter_model.safetensors").exists()
