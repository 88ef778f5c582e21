"""A rollout as a person runs it: resumed after any end, never played twice, and clear about what cannot be."""

import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from click.testing import CliRunner

from pairgen.cli import main
from pairgen.errors import UsageProblem
from pairgen.store import Journal, read_episodes, read_journal
from pipelines.rollout_config import RolloutConfig
from pipelines.session import roll_out

SCRIPT = {
    "replies": [
        {"first": r'the words "(?P<a>\w+), (?P<b>\w+)', "reply": r"SENTENCE: The \g<a> \g<b> at home."},
        {"last": r"it is (?P<name>[A-Z]\w+)", "reply": r"STOP: \g<name>"},
        {"last": "country", "reply": ["STOP: Paris", "STOP: Rome"]},
        {"first": "hint for the notes", "reply": "HINT: It is what you think."},
        {"first": r'the words "(?P<a>\w+)', "reply": r"GUESS: \g<a>"},
    ]
}


@pytest.fixture
def script(tmp_path):
    """Writes a script for the scripted engine."""

    def write(**fields):
        path = tmp_path / "script.json"
        path.write_text(json.dumps({**SCRIPT, **fields}))
        return path

    return write


def pairgen(*arguments):
    """The command in a process of its own: exit code, the summary, what was said."""
    command = [sys.executable, "-m", "pairgen.cli", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    summary = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None
    return done.returncode, summary, done.stderr


def rollout(script, out, *more):
    return pairgen("rollout", "--engine", "scripted", "--model", script, "--games", "demo", "--out", out, *more)


def test_a_whole_run_from_games_to_pairs(script, tmp_path):
    run, pairs = tmp_path / "run", tmp_path / "pairs"
    code, summary, _ = rollout(script(), run, "--limit", 12)
    assert code == 0
    assert summary["episodes"] == summary["played"] == 36
    assert sum(summary["outcomes"][game].get("success", 0) for game in summary["outcomes"]) > 0
    assert {p.name for p in run.iterdir()} >= {"run.json", "episodes.jsonl", "episodes.parquet", "moves.parquet"}
    assert pl.read_parquet(run / "episodes.parquet").height == 36
    code, made, _ = pairgen("corrupt", run, "--strategy", "verbose", "--no-eval-split", "--out", pairs)
    assert code == 0
    assert made["pairs"] > 0
    verdicts = {(v["side"], v["verdict"]) for v in made["verdicts"]}
    assert ("chosen", "accepted") in verdicts
    assert not any(side == "chosen" and verdict != "accepted" for side, verdict in verdicts)
    code, _pushed, _ = pairgen("push", pairs, "user/name", "--dry-run")
    assert code == 0


def test_clem_score_changes_no_outcome(script, tmp_path):
    run = tmp_path / "run"
    rollout(script(), run, "--limit", 4)
    before = {e.key: (e.outcome, e.main_score) for e in read_episodes(run)}
    files = sorted((run / "clem").rglob("scores.json"))
    assert len(files) == len(before)
    for file in files:
        file.unlink()
    from pairgen.clem.client import DEMO_GAMES

    clem = [sys.executable, "-m", "clemcore.cli"]
    for command in ("score", "transcribe"):
        subprocess.run([*clem, command, "-r", run / "clem"], cwd=DEMO_GAMES, check=True, capture_output=True)
    (DEMO_GAMES / "clembench.log").unlink(missing_ok=True)
    code, imported, _ = pairgen("import", run / "clem", "--out", tmp_path / "again")
    assert code == 0
    assert {e.key: (e.outcome, e.main_score) for e in read_episodes(tmp_path / "again")} == before
    assert (imported["prompts_checked"], imported["prompts_differ"]) == (sum(imported["model_moves"].values()), 0)


def test_a_killed_run_is_resumed_without_playing_anything_twice(script, tmp_path):
    slow, undisturbed, killed = script(latency_s=0.2), tmp_path / "undisturbed", tmp_path / "killed"
    arguments = [sys.executable, "-m", "pairgen.cli", "rollout", "--engine", "scripted", "--model", slow, "--games"]
    arguments += ["demo", "--limit", "8", "--concurrency", "2", "--out", killed]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    journal = killed / "episodes.jsonl"
    while not journal.exists() or journal.read_bytes().count(b"\n") < 5:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = [e.key for e in read_journal(killed)]
    assert 5 <= len(finished) < 24
    assert not (killed / "manifest.json").exists()
    script()
    code, summary, _ = pairgen("rollout", "--out", killed, "--resume")
    assert code == 0
    assert summary["episodes"] == 24
    assert summary["last_session"]["episodes"] == 24 - len(finished)
    keys = [e.key for e in read_journal(killed)]
    assert len(keys) == len(set(keys)) == 24
    rollout(slow, undisturbed, "--limit", 8)
    for table in ("episodes.parquet", "moves.parquet"):
        assert (killed / table).read_bytes() == (undisturbed / table).read_bytes()


def test_sigterm_ends_in_order(script, tmp_path):
    arguments = [sys.executable, "-m", "pairgen.cli", "rollout", "--engine", "scripted", "--games", "demo"]
    arguments += ["--model", script(latency_s=0.5), "--concurrency", "1", "--out", tmp_path / "run"]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "run" / "episodes.jsonl"
    while not (journal.exists() and journal.read_bytes()):
        time.sleep(0.05)
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said


def test_a_finished_run_can_be_given_more_to_play(script, tmp_path):
    run = tmp_path / "run"
    rollout(script(), run, "--limit", 2)
    before = (run / "episodes.jsonl").read_bytes()
    code, summary, _ = pairgen("rollout", "--out", run, "--resume", "--limit", 3)
    assert (code, summary["episodes"], summary["last_session"]["episodes"]) == (0, 9, 3)
    assert (run / "episodes.jsonl").read_bytes().startswith(before)
    code, summary, _ = pairgen("rollout", "--out", run, "--resume")
    assert (code, summary["episodes"], summary["last_session"]["episodes"]) == (0, 9, 0)


def test_an_errored_episode_is_played_again(script, tmp_path):
    run = tmp_path / "run"
    broken = script(replies=[{"last": "country", "error": "timeout"}, *SCRIPT["replies"]])
    code, summary, _said = rollout(broken, run, "--limit", 2)
    assert code == 0
    assert summary["outcomes"]["roundtrip"] == {"error": 2}
    assert [(f["game"], f["kind"], f["episodes"]) for f in summary["faults"]] == [("roundtrip", "timeout", 2)]
    script()
    code, summary, _ = pairgen("rollout", "--out", run, "--resume")
    assert "error" not in summary["outcomes"]["roundtrip"]
    assert summary["faults"] == []


def test_evaluation_instances_are_not_played_or_played_alone(script, tmp_path):
    keys = tmp_path / "keys.jsonl"
    rows = [{"game": "roundtrip", "experiment": "near", "task_id": n} for n in (0, 1)]
    keys.write_text("\n".join(map(json.dumps, rows)))
    arguments = ["--eval-keys", keys, "--limit", 0]
    code, _summary, said = rollout(script(), tmp_path / "train", *arguments)
    assert (code, "2 instances of the evaluation split are left out" in said) == (0, True)
    played = {(e.game, e.experiment, e.task_id) for e in read_episodes(tmp_path / "train")}
    assert not played & {tuple(row.values()) for row in rows}
    code, evaluated, _ = rollout(script(), tmp_path / "eval", *arguments, "--only-eval")
    assert {(e.game, e.experiment, e.task_id) for e in read_episodes(tmp_path / "eval")} == {
        tuple(row.values()) for row in rows
    }
    assert evaluated["episodes"] == 2


def test_exit_is_1_when_nothing_could_be_played(script, tmp_path):
    code, summary, said = rollout(script(replies=[{"error": "timeout"}]), tmp_path / "run", "--limit", 1)
    assert (code, summary["played"]) == (1, 0)
    assert "no episode could be played" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--games", "roundtrp"], "did you mean roundtrip?"),
        (["--clembench", "/nowhere"], "no games found in /nowhere"),
        (["--resume", "--overwrite"], "give one of them"),
        (["--engine", "transformers", "--model", "./no-such-model"], "no-such-model"),
        (["--engine", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], "http://127.0.0.1:9/v1"),
        (["--engine", "vlm"], "vlm"),
        (["--max-tokens", "0"], "--max-tokens"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence_and_leaves_nothing(arguments, sentence, script, tmp_path):
    given = [] if "--games" in arguments or "--clembench" in arguments else ["--games", "roundtrip"]
    given += [] if "--engine" in arguments else ["--engine", "scripted", "--model", str(script())]
    code, _, said = pairgen("rollout", *given, *arguments, "--out", tmp_path / "run")
    assert code in (1, 2)
    assert sentence in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        (RolloutConfig(model="m", samples=2), "--samples 2 at temperature 0.*add --temperature 0.7"),
        (RolloutConfig(model="m", partner="@http://h/v1"), "names no model"),
        (RolloutConfig(model=""), "--model is missing"),
    ],
)
def test_a_run_that_cannot_be_meant_replaces_none(config, fix, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UsageProblem, match=fix):
        roll_out(tmp_path, config, overwrite=True)
    assert (tmp_path / "run.json").exists()


def test_an_occupied_folder_is_refused_and_kept(script, tmp_path):
    run = tmp_path / "run"
    rollout(script(), run, "--limit", 1)
    before = (run / "episodes.jsonl").read_bytes()
    code, _, said = rollout(script(), run, "--limit", 1)
    assert (code, "--resume" in said) == (2, True)
    assert (run / "episodes.jsonl").read_bytes() == before
    code, summary, _ = rollout(script(), run, "--limit", 2, "--overwrite")
    assert (code, summary["episodes"]) == (0, 6)


def test_a_relative_folder_is_where_it_says(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = rollout(script(), "my run", "--limit", 1)
    assert (code, "next: pairgen corrupt 'my run' --strategy" in said) == (0, True)
    assert len(list((tmp_path / "my run" / "clem").rglob("scores.json"))) == 3


def test_an_imported_or_damaged_run_is_not_resumed(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text('{"command": "import", "config": {}}')
    code, _, said = pairgen("rollout", "--out", run, "--resume")
    assert (code, "was not played by pairgen rollout" in said) == (2, True)
    (run / "run.json").write_text('{"comm')
    code, _, said = pairgen("rollout", "--out", run, "--resume")
    assert (code, "run.json cannot be read" in said) == (1, True)
    assert "Traceback" not in said


def test_a_temperature_that_is_no_number_is_refused(script, tmp_path):
    code, _, said = rollout(script(), tmp_path / "run", "--temperature", "nan")
    assert (code, "no finite number" in said) == (2, True)


def test_model_is_asked_for(tmp_path):
    result = CliRunner().invoke(main, ["rollout", "--games", "demo", "--out", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert "--model is missing" in result.output


def test_a_second_process_is_told_to_wait(script, tmp_path):
    from pairgen.store import lock_folder

    rollout(script(), tmp_path / "run", "--limit", 1)
    Journal(tmp_path / "run").close()
    with lock_folder(tmp_path / "run"):
        code, _, said = pairgen("rollout", "--out", tmp_path / "run", "--resume", "--limit", 2)
    assert (code, "another pairgen process" in said) == (2, True)
