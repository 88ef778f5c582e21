"""A real model plays the built-in games, in process, and what it won becomes pairs."""

import json
import os
import subprocess
import sys

import pytest

from pairgen.records import Pair
from pairgen.store import read_episodes, read_table

pytestmark = pytest.mark.model


def pairgen(*arguments):
    command = [sys.executable, "-m", "pairgen.cli", *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=None, text=True)
    assert done.returncode == 0
    return json.loads(done.stdout.splitlines()[-1])


def test_vllm_plays_the_demo_games(smollm2, tmp_path):
    if os.environ.get("PAIRGEN_REQUIRE_VLLM") != "1":
        pytest.importorskip("vllm", reason="vLLM is not installed; PAIRGEN_REQUIRE_VLLM=1 makes this a failure")
    from transformers import AutoTokenizer

    run = tmp_path / "run"
    arguments = ["--model", smollm2, "--games", "demo", "--limit", 6, "--max-tokens", 48, "--concurrency", 16]
    summary = pairgen("rollout", "--engine", "vllm", *arguments, "--out", run)
    assert summary["episodes"] == summary["played"] == 18
    assert sum(outcomes.get("success", 0) for outcomes in summary["outcomes"].values()) >= 3
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    moves = [move for episode in read_episodes(run) for move in episode.moves]
    for move in moves:
        sent = [{"role": m.role, "content": m.content} for m in move.prompt]
        ids = tokenizer.apply_chat_template(sent, add_generation_prompt=True, return_dict=False)
        assert len(ids) == move.prompt_tokens
        assert tokenizer.decode(move.token_ids, skip_special_tokens=True).strip() == move.reply
    assert {move.finish_reason for move in moves} <= {"stop", "length"}
    made = pairgen("corrupt", run, "--no-eval-split", "--out", tmp_path / "pairs")
    assert made["pairs"] >= 3
    rows = read_table(tmp_path / "pairs" / "full" / "train.parquet", Pair)
    assert {row.chosen_verdict for row in rows} == {"accepted"}
    assert {row.rejected_verdict for row in rows} <= {"accepted", "violation"}


def test_the_demo_ends_with_pairs_to_look_at(smollm2, tmp_path):
    assert smollm2.is_dir()
    summary = pairgen("demo", "--engine", "transformers", "--limit", 6, "--out", tmp_path / "demo")
    assert summary["episodes"] == 18
    assert summary["pairs"] >= 3
    assert summary["train"] + summary["test"] == summary["pairs"]
