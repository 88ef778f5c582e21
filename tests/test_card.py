"""The card says how the set was made, describes its files rightly, and keeps what a person wrote."""

import dataclasses
import os
import re
import subprocess
import sys

import datasets
import pytest
import yaml
from factories import STRATEGIES, eval_split, make_episodes, make_move
from test_publish import make_set

from pairgen.records import InstanceKey, Pair, TrainRow, hub_features
from pipelines.card import BEGIN, END, render
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.manifest import RunUsed, Versions, make_manifest

RUN = RunUsed("play", "rollout", "me/tiny", "abc123", 0.0, 1.0, 300, 20, clembench="c0ffee", seed=7)


def manifest(episodes=None, evaluation=NO_EVAL_SPLIT, run=RUN, notes=(), **fields):
    episodes = make_episodes() if episodes is None else episodes
    config = CorruptConfig(strategy=("longer", "picky"), **fields)
    built = build(episodes, config, choose(config.strategy, "", STRATEGIES), STRATEGIES, evaluation)
    versions = Versions("0.1.0", "3.11", "4.8.5", "26.0", ("3.7.2",))
    return make_manifest(built, config, evaluation, notes, episodes, [run], versions)


def front(text):
    return yaml.safe_load(text.split("---\n")[1])


def test_the_yaml_describes_the_files():
    data = front(render(manifest(), "me/pairs"))
    assert (data["license"], data["language"], data["size_categories"]) == ("apache-2.0", ["en"], ["n<1K"])
    assert {"dpo", "preference", "clembench"} <= set(data["tags"])
    assert data["base_model"] == "me/tiny"
    assert [c["config_name"] for c in data["configs"] if c.get("default")] == ["default"]
    assert data["configs"][1]["data_files"] == [
        {"split": "train", "path": "full/train.parquet"}, {"split": "test", "path": "full/test.parquet"},
    ]  # fmt: skip
    for info, cls in zip(data["dataset_info"], (TrainRow, Pair), strict=True):
        assert datasets.Features._from_yaml_list(info["features"]) == hub_features(cls)
        assert sum(s["num_examples"] for s in info["splits"]) == manifest().pairs


def test_the_text_says_how_the_set_was_made():
    text = render(manifest(), "me/pairs")
    assert 'load_dataset("me/pairs")' in text and 'model="me/tiny"' in text
    assert "pairgen corrupt play --strategy longer --strategy picky --seed 42" in text
    assert "me/tiny at revision abc123" in text and "clemcore 3.7.2" in text
    assert "| harvest (moves) | 120 | 80 | 40 cap_per_player (over --per-player) |" in text
    assert re.search(r"\| taboo \| longer \| \d+ \| \d+ \|", text)
    assert "| rejected | unverifiable: not verified | 120 |" in text
    assert "| taboo | longer | 36 | 4 | 0 | 0 | 40 |" in text
    assert "clembench at commit `c0ffee`" in text and "at most 300 new tokens, seed 7" in text
    assert "no game master was asked" in text
    assert "$" not in text.split(BEGIN)[1]


def test_without_an_evaluation_split_the_card_warns():
    assert "**Not checked.**" in render(manifest(), "x")


def test_what_was_kept_out_is_stated():
    evaluation = eval_split(*(InstanceKey("taboo", "high_en", t) for t in range(3)))
    text = render(manifest(evaluation=evaluation, notes=["The split names no instance of wordle."]), "x")
    assert "`eval.jsonl` (keys, revision `0123456789abcdef`, 3 keys)" in text
    assert "pairs of 3 evaluation instances were taken out" in text and "no instance of wordle" in text
    assert "| an evaluation instance, by its name | 3 | 18 |" in text
    clean = render(manifest(evaluation=eval_split(InstanceKey("chess", "x", 1))), "x")
    assert "No pair was of an evaluation instance." in clean


def test_a_set_without_a_test_side_has_none_on_the_card():
    text = render(manifest(make_episodes(["taboo"], tasks=1)), "x")
    assert "test.parquet" not in text and "eval_dataset" not in text and "no test side" in text


def test_a_local_model_is_not_given_as_one_to_load():
    text = render(manifest(run=dataclasses.replace(RUN, model="tiny")), "x")
    assert "model=sys.argv[1]" in text and "python train.py MODEL" in text and "base_model" not in front(text)


def test_partner_and_adapter_are_named_and_the_bare_model_is_not_given_to_train():
    text = render(manifest(run=dataclasses.replace(RUN, lora="me/tuned", partner="big")), "x")
    assert "model me/tiny at revision abc123 with the adapter me/tuned" in text
    assert "partner big, which spoke for the other players" in text
    assert "model=sys.argv[1]" in text
    assert "partner" not in render(manifest(), "x")


def test_moves_of_unknown_ending_are_a_limit_on_the_card():
    episodes = make_episodes(["taboo"], moves=[make_move(0, finish_reason="unknown"), make_move(1)])
    assert "10 of the harvested moves come from results that do not record" in render(manifest(episodes), "x")
    assert "do not record" not in render(manifest(), "x")


MINE = "---\npretty_name: Mine\nlicense: mit\ntags:\n- dpo\n- games\nconfigs: []\n---\n\nMy introduction.\n"


def test_a_persons_text_and_yaml_stay():
    text = render(manifest(), "me/pairs", MINE)
    data = front(text)
    assert data["pretty_name"] == "Mine" and "games" in data["tags"] and data["tags"].count("dpo") == 1
    assert data["license"] == "apache-2.0" and len(data["configs"]) == 2
    assert text.index("My introduction.") < text.index(BEGIN)
    edited = text.replace(END, END + "\n\nMy last words.")
    again = render(manifest(seed=7), "me/pairs", edited)
    assert "My introduction." in again and "My last words." in again and "--seed 7" in again
    assert again.count(BEGIN) == again.count(END) == 1 and "--seed 42" not in again


def test_a_card_is_its_own_fixed_point():
    text = render(manifest(), "me/pairs", MINE)
    assert render(manifest(), "me/pairs", text) == text


def test_text_between_a_lone_mark_and_the_block_stays():
    text = render(manifest(), "x", f"I write {END} and {BEGIN} by myself.\n\nMine.\n")
    again = render(manifest(seed=7), "x", text)
    assert "Mine." in again and "--seed 7" in again and "--seed 42" not in again


@pytest.mark.parametrize("existing", ["no yaml at all", "---\n[broken\n---\ntext", "---\n- a list\n---\ntext"])
def test_yaml_that_is_none_is_kept_as_text(existing):
    text = render(manifest(), "x", existing)
    assert existing.splitlines()[-1] in text
    assert front(text)["configs"]


def code_of(text, language="python"):
    """The code blocks of a card in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_every_block_is_code_that_runs_or_says_that_it_is_text(tmp_path):
    """What loads is run as it is; what trains is run up to the training (test_card_code does that, too)."""
    make_set(tmp_path / "pairs", make_episodes(tasks=3))
    text = (tmp_path / "pairs/README.md").read_text()
    load, train = code_of(text)
    assert text.count("```") == 6 and code_of(text, "text") == [
        "pairgen corrupt --strategy longer --seed 42 --no-eval-split\n"
    ]
    env = {**os.environ, "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", load], cwd=tmp_path / "pairs", env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "'role': 'assistant'" in done.stdout
    compile(train, "train.py", "exec")
