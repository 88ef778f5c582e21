"""`pairgen corrupt` and `pairgen push` as a person calls them: exit codes, summaries, files, and what stops them."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import datasets
import huggingface_hub
import pytest
from click.testing import CliRunner
from factories import STRATEGIES, make_episode, make_episodes, make_move, write_run
from test_tokens import Words

import corruptions
from pairgen.cli import main
from pairgen.commands import corrupt_
from pairgen.records import Message
from pipelines.answerers import Answering
from pipelines.corrupt import CorruptConfig

ROOT = Path(__file__).parent.parent
REAL = corruptions.STRATEGIES


@pytest.fixture(autouse=True)
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corruptions, "STRATEGIES", STRATEGIES)
    monkeypatch.setenv("PAIRGEN_NO_PROGRESS", "1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    write_run(tmp_path / "run", make_episodes())


def call(*args):
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def summary(result):
    return json.loads(result.stdout.splitlines()[-1])


def keys_file(path, tasks=range(10), games=("taboo", "wordle")):
    rows = [{"game": g, "experiment": "high_en", "task_id": t} for g in games for t in tasks]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_a_run_becomes_a_pair_set_with_a_summary():
    result = call("corrupt", "run", "--strategy", "longer", "--out", "pairs", "--no-eval-split", "--json")
    told = summary(result)
    assert result.exit_code == 0
    assert (told["pairs"], told["train"] + told["test"], told["out"]) == (80, 80, "pairs")
    assert told["pairs_by_game"] == {"taboo": 40, "wordle": 40}
    assert told["dropped"] == {"cap_per_player": 40}
    assert [s["stage"] for s in told["funnel"]] == ["harvest", "corrupt", "decontaminate", "verify", "dedup"]
    assert set(datasets.load_dataset("pairs")) == {"train", "test"}


def test_the_person_sees_the_funnel_and_the_games():
    result = call("corrupt", "run", "--strategy", "longer", "--out", "pairs", "--no-eval-split")
    assert "harvest: 40 cap_per_player (over --per-player)" in result.stdout
    assert "80 pairs" in result.stdout and "pairs" in result.stdout.splitlines()[-1]


def test_pairs_go_to_data_when_no_place_is_given():
    assert call("corrupt", "run", "--strategy", "longer", "--no-eval-split").exit_code == 0
    assert Path("data/run-pairs/manifest.json").exists()


def test_two_processes_make_the_same_bytes(tmp_path):
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
        "import corruptions, factories; corruptions.STRATEGIES = factories.STRATEGIES\n"
        "from pairgen.cli import main; main()\n"
    )
    write_run(tmp_path / "other/run", make_episodes()[::-1])
    for number, run in (("1", "run"), ("2", "other/run")):
        environment = {**os.environ, "PYTHONHASHSEED": number}
        options = ["corrupt", run, "--strategy", "longer", "--strategy", "picky:0.5", "--per-game", "15"]
        subprocess.run(
            [sys.executable, "-c", code, *options, "--no-eval-split", "--out", f"pairs{number}"],
            check=True, env=environment, cwd=tmp_path, capture_output=True,
        )  # fmt: skip
    first, second = (
        {str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in (tmp_path / "pairs1", tmp_path / "pairs2")
    )
    assert len(first) == 8 and first == second


def test_several_runs_are_taken_together_and_a_repeated_one_once(tmp_path):
    write_run(tmp_path / "more", make_episodes(["chess"]))
    result = call("corrupt", "run", "more", "run", "--strategy", "longer", "--no-eval-split", "--out", "p", "--json")
    told = summary(result)
    assert told["pairs_by_game"] == {"chess": 40, "taboo": 40, "wordle": 40}
    assert told["dropped"]["repeated_episode"] == 120


@pytest.mark.parametrize(
    ("options", "games", "reason"),
    [
        (("--per-game", "15"), {"taboo": 15, "wordle": 15}, {"per_game": 50}),
        (("--per-instance", "1"), {"taboo": 10, "wordle": 10}, {"per_instance": 60}),
        (("--total", "30"), {"taboo": 15, "wordle": 15}, {"total": 50}),
        (("--moves-per-game", "9"), {"taboo": 9, "wordle": 9}, {"cap_per_game": 62}),
        (("--per-player", "1"), {"taboo": 20, "wordle": 20}, {"cap_per_player": 80}),
    ],
)
def test_caps_and_quotas_count_what_they_say(options, games, reason):
    told = summary(call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "p", *options, "--json"))
    assert told["pairs_by_game"] == games
    assert {r: n for r, n in told["dropped"].items() if r in reason} == reason
    assert f"{' '.join(options)} " in json.loads(Path("p/manifest.json").read_text())["command"]


def test_weights_in_the_end_are_those_of_finished_pairs():
    options = ("--strategy", "longer", "--strategy", "picky", "--per-strategy", "picky:0.25", "--no-eval-split")
    result = call("corrupt", "run", *options, "--out", "pairs", "--json")
    assert summary(result)["dropped"]["odd_turn"] == 40
    strategies = [row["strategy"] for side in datasets.load_dataset("pairs", "full").values() for row in side]
    assert (strategies.count("longer"), strategies.count("picky")) == (80, 20)


def test_a_total_that_cannot_be_had_is_told():
    result = call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "p", "--total", "100")
    assert "--total: 100 pairs were wanted, there are 80." in result.stdout
    assert "--total: 100 pairs were wanted" in Path("p/README.md").read_text()


def test_repeated_replies_are_limited_and_may_be_allowed(tmp_path):
    moves = [make_move(0, reply="CLUE: the same")]
    episodes = [make_episode(t, moves=[dataclasses.replace(m, prompt=(Message("user", f"Task {t}."),)) for m in moves])
                for t in range(6)]  # fmt: skip
    write_run(tmp_path / "same", episodes)
    options = ("corrupt", "same", "--strategy", "longer", "--no-eval-split", "--json", "--out")
    assert summary(call(*options, "a"))["dropped"] == {"max_per_completion": 4}
    assert summary(call(*options, "b", "--max-per-completion", "0"))["pairs"] == 6


def test_near_repeats_go_unless_they_are_to_stay(tmp_path):
    words = [f"thing{i}" for i in range(60)]
    moves = [make_move(i, reply=" ".join([*words, f"end{i}"]), prompt="Talk.") for i in (0, 2)]
    write_run(tmp_path / "alike", [make_episode(1, moves=moves)])
    options = ("corrupt", "alike", "--strategy", "longer", "--no-eval-split", "--json", "--out")
    assert summary(call(*options, "a"))["dropped"] == {"near_duplicate": 1}
    assert summary(call(*options, "b", "--near", "0"))["pairs"] == 2
    assert summary(call(*options, "c", "--near", "0", "--max-per-prompt", "1"))["dropped"] == {"max_per_prompt": 1}


def test_the_audit_is_shown_and_kept_and_thinning_says_where_it_cannot_help():
    options = ("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--max-shortcut", "0.8", "--out", "p")
    shown = call(*options).stdout
    assert re.search(r"the longer side +is the longer +100\.0% +100\.0%", shown)
    assert "taking pairs out does not help" in shown and "contrast" in shown
    card = Path("p/README.md").read_text()
    assert "| all | the longer side | is the longer | 100.0% | 100.0% |" in card and "does not help" in card
    assert json.loads(Path("p/manifest.json").read_text())["quality"]["shared"] == 0


def test_a_tokenizer_is_loaded_by_name_and_its_lengths_are_told(monkeypatch):
    monkeypatch.setattr("pipelines.assemble.load_tokenizer", lambda name: Words())
    options = ("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--tokenizer", "/models/tiny")
    told = summary(call(*options, "--out", "a", "--json"))
    assert told["quality"]["tokens"]["needed_length"] > 10 and told["funnel"][-1]["stage"] == "tokens"
    card = Path("a/README.md").read_text()
    assert f"max_length={told['quality']['tokens']['needed_length']}" in card and "tokens of `tiny`" in card
    assert "/models" not in card + Path("a/manifest.json").read_text()
    few = summary(call(*options, "--max-length", "3", "--out", "b", "--json"))
    assert few["pairs"] == 0 and few["dropped"]["over_max_length"] == 80


def test_a_tokenizer_that_cannot_be_had_stops_before_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    result = call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "p", "--tokenizer", "tiny")
    assert result.exit_code == 1 and "pairgen[local]" in result.stderr and not Path("p").exists()


def test_games_can_be_chosen_and_a_mistyped_one_is_told():
    options = ("--strategy", "longer", "--no-eval-split", "--json")
    assert summary(call("corrupt", "run", "--games", "taboo", "--out", "a", *options))["pairs_by_game"] == {"taboo": 40}
    assert summary(call("corrupt", "run", "--games", "taboo,wordle", "--out", "b", *options))["pairs"] == 80
    result = call("corrupt", "run", "--games", "tabo", "--out", "c", *options)
    assert result.exit_code == 2 and "did you mean taboo" in result.stderr


def test_evaluation_instances_are_kept_out(tmp_path):
    keys = keys_file(tmp_path / "keys.jsonl", tasks=range(4))
    told = summary(call("corrupt", "run", "--strategy", "longer", "--eval-keys", keys, "--out", "pairs", "--json"))
    assert (told["pairs"], told["dropped"]["eval_key"], told["removed"]) == (48, 32, 8)
    rows = datasets.load_dataset("pairs", "full")
    assert min(t for side in rows.values() for t in side["task_id"]) == 4


def test_a_set_of_evaluation_instances_alone_gives_none_and_says_why(tmp_path):
    keys = keys_file(tmp_path / "keys.jsonl")
    result = call("corrupt", "run", "--strategy", "longer", "--eval-keys", keys, "--out", "pairs", "--json")
    assert result.exit_code == 1
    assert "of 80 pairs at the stage decontaminate, 80 were dropped as eval_key" in result.stderr
    told = summary(result)
    assert (told["pairs"], told["dropped"]["eval_key"]) == (0, 80)
    assert sorted(p.name for p in Path("pairs").iterdir()) == ["dropped.parquet", "manifest.json"]
    assert call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "pairs").exit_code == 0
    again = call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "pairs")
    assert again.exit_code == 2 and "--overwrite" in again.stderr


def test_what_came_to_nothing_and_holds_something_else_is_left_alone(tmp_path):
    keys = keys_file(tmp_path / "keys.jsonl")
    call("corrupt", "run", "--strategy", "longer", "--eval-keys", keys, "--out", "pairs")
    Path("pairs/mine.txt").write_text("kept")
    assert call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "pairs").exit_code == 2
    assert Path("pairs/mine.txt").read_text() == "kept"


def test_a_set_without_pairs_is_not_pushed(tmp_path):
    call("corrupt", "run", "--strategy", "longer", "--eval-keys", keys_file(tmp_path / "k.jsonl"), "--out", "pairs")
    assert call("push", "pairs", "me/x", "--dry-run").exit_code == 1


def test_games_that_the_split_does_not_know_are_told(tmp_path):
    keys = keys_file(tmp_path / "keys.jsonl", games=("taboo", "chess"))
    result = call("corrupt", "run", "--strategy", "longer", "--eval-keys", keys, "--out", "pairs")
    assert "chess" in result.stderr and "no instance of wordle" in result.stderr
    assert "no instance of wordle" in Path("pairs/README.md").read_text()


def test_without_a_source_and_without_the_hub_it_stops_before_anything_is_written(monkeypatch):
    def unreachable(*args, **kwargs):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", unreachable)
    result = call("corrupt", "run", "--strategy", "longer", "--out", "pairs")
    assert result.exit_code == 1
    assert all(way in result.stderr for way in ("--eval-keys", "--eval-results", "--no-eval-split"))
    assert not Path("pairs").exists()


def test_offline_it_stops_at_once(tmp_path):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pairgen.cli", "corrupt", "run", "--out", "pairs"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and "--no-eval-split" in done.stderr
    assert not (tmp_path / "pairs").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "Give the folder of a run"),
        (("run", "--strategy", "longr"), "did you mean longer"),
        (("run", "--test-size", "1"), "--test-size"),
        (("run", "--eval-keys", "nowhere.jsonl"), "nowhere.jsonl"),
        (("run", "--strategy", "longer", "--no-eval-split", "--eval-split", "a/b"), "--no-eval-split"),
        (("run", "--strategy", "longer", "--max-shortcut", "0.5"), "a coin is right"),
        (("run", "--strategy", "longer", "--max-length", "512"), "--tokenizer"),
        (("run", "--strategy", "longer", "--per-strategy", "longr:2"), "did you mean longer"),
        (("run", "--strategy", "longer", "--per-strategy", "longer:x"), "longer:2"),
        (("run", "--strategy", "longer", "--per-strategy", "longer:-1"), "0 or more"),
    ],
)
def test_wrong_usage_exits_with_2(args, says):
    result = call("corrupt", *args, "--out", "pairs")
    assert result.exit_code == 2 and says in result.stderr
    assert not Path("pairs").exists()


@pytest.mark.parametrize(("folder", "code", "says"), [("nothing", 2, "does not exist"), ("empty", 1, "is not a run")])
def test_a_folder_that_is_no_run_is_told_before_anything_is_read(monkeypatch, folder, code, says):
    Path("empty").mkdir()
    monkeypatch.setattr("pipelines.eval_split.read_eval_split", lambda **_: pytest.fail("work was begun"))
    result = call("corrupt", "run", folder, "--strategy", "longer", "--out", "pairs")
    assert result.exit_code == code and says in result.stderr


@pytest.mark.parametrize(
    ("strategy", "says"),
    [
        ("verbose:style=nope", "verbose:style=nope is not known"),
        ("verbose:style=reference:place=before", "leave out place=before"),
        ("format_break:kind=drop_tg", "did you mean drop_tag"),
        ("looping:max_repeats=1", "no whole number from 2"),
        ("role_bleed:rounds=x", "no whole number"),
        ("contrast:models=any", ""),
    ],
)
def test_a_value_that_a_strategy_does_not_take_is_told_before_anything_is_read(monkeypatch, strategy, says):
    monkeypatch.setattr(corruptions, "STRATEGIES", REAL)
    result = call("corrupt", "nothing", "--strategy", strategy, "--no-eval-split", "--out", "pairs")
    assert result.exit_code == 2 and (says or "nothing does not exist") in result.stderr


def test_an_occupied_place_is_refused_before_the_work(monkeypatch):
    assert call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "pairs").exit_code == 0
    monkeypatch.setattr("pipelines.eval_split.read_eval_split", lambda **_: pytest.fail("work was begun"))
    result = call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "pairs")
    assert result.exit_code == 2 and "--overwrite" in result.stderr


def test_overwrite_replaces_the_set():
    options = ("run", "--strategy", "longer", "--no-eval-split", "--out", "pairs", "--json")
    first = summary(call("corrupt", *options))
    second = summary(call("corrupt", *options, "--seed", "7", "--overwrite"))
    assert first["content"] != second["content"]


def test_the_strategies_are_listed_without_a_run():
    result = call("corrupt", "--list")
    assert result.exit_code == 0
    assert "longer: the move and a sentence" in result.stdout and "longer:style=" in result.stdout
    listed = summary(call("corrupt", "--list", "--json"))["strategies"]
    assert [s["name"] for s in listed] == list(STRATEGIES)
    assert listed[0] == {
        "name": "longer", "summary": "the move and a sentence",
        "options": {"style": "words before the sentence"}, "requires_violation": False,
    }  # fmt: skip
    assert listed[1]["requires_violation"] is True


def test_options_and_configuration_have_the_same_names():
    options = {p.name for p in corrupt_.command.params if isinstance(p, click.Option)}
    fields = set(CorruptConfig.__dataclass_fields__)
    assert fields <= options
    serving = {"engine", "base_url", "concurrency", "max_model_len", "engine_arg", "judge_price"}
    assert options - fields == {"out", "overwrite", "show", "as_json", "clembench", *serving}
    assert set(corrupt_.ANSWERING) == set(Answering.__dataclass_fields__) == serving | {"model", "judge"}


def test_a_dry_push_shows_and_writes_everything():
    call("corrupt", "run", "--strategy", "longer", "--no-eval-split", "--out", "pairs")
    result = call("push", "pairs", "me/games", "--dry-run", "--json")
    told = summary(result)
    assert (told["repo"], told["visibility"], told["dry_run"], told["pairs"]) == ("me/games", "private", True, 80)
    assert {f["path"] for f in told["files"]} == {
        str(p.relative_to("pairs.push")) for p in Path("pairs.push").rglob("*") if p.is_file()
    }
    assert set(datasets.load_dataset(told["out"], "full")) == {"train", "test"}
    shown = call("push", "pairs", "me/games", "--dry-run", "--public", "--out", "shown").stdout
    assert "public data set me/games" in shown and "Nothing was sent" in shown and "# Preference pairs" in shown
    assert call("push", "pairs", "me/games", "--dry-run").exit_code == 0
    assert call("push", "pairs", "me/games", "--dry-run", "--out", "shown").exit_code == 2


def test_a_push_that_cannot_work_is_refused():
    assert call("push", "run", "me/games", "--dry-run").exit_code == 1
    result = call("push", "run", "games", "--dry-run")
    assert result.exit_code == 2 and "USER/games" in result.stderr
    assert call("push", "run", "me/games", "--out", "x").exit_code == 2
