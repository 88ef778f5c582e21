"""A file of pairs becomes a pair set in one command, and its flaws are told in numbers."""

import json
from pathlib import Path

import datasets
import pytest
from click.testing import CliRunner

from pairgen.cli import main
from pipelines.pairset import read_drops, read_manifest, read_pairs

FILLERS = ("\nThis keeps to the rules.", " (as was said before)", "\nNote: no word was forbidden.", "\nAll is sound.")


@pytest.fixture(autouse=True)
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [row(i, FILLERS[i % 4]) for i in range(60)]
    rows += [*rows[:3], *(row(i, FILLERS[(i + 1) % 4]) for i in range(5))]
    (tmp_path / "theirs.json").write_text(json.dumps(rows))


def row(number, filler):
    said = f"GUESS: word{number}."
    return {"prompt": f"Task {number} of {number % 7}.", "chosen": said, "rejected": said + filler}


def call(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def summary(*arguments):
    return json.loads(call(*arguments, "--json").stdout.splitlines()[-1])


def test_the_flaws_of_a_file_are_told_and_every_pair_stays():
    told = summary("import", "theirs.json", "--out", "pairs")
    assert (told["read"], told["pairs"], told["repeats"]) == (68, 68, {"repeated_chosen": 5, "duplicate": 3})
    rules = {s["rule"]: s for s in told["quality"]["shortcuts"]}
    assert rules["longer"]["test"] == rules["ending"]["test"] == 1 and len(rules["ending"]["found"]) == len(FILLERS)
    assert set(datasets.load_dataset("pairs")) == {"train", "test"}
    assert call("show", "pairs").exit_code == 0
    assert call("push", "pairs", "me/theirs", "--dry-run").exit_code == 0


def test_a_person_sees_them_and_how_to_go_on():
    said = call("import", "theirs.json", "--out", "pairs").stdout
    assert "8 of 68 rows repeat the prompt and the chosen side" in said and "sound ." in said
    assert "pairgen import theirs.json --dedup --out pairs --overwrite" in said


def test_what_repeats_is_left_out_when_asked():
    told = summary("import", "theirs.json", "--dedup", "--out", "pairs")
    assert told["pairs"] == 60 == len(read_pairs(Path("pairs")))
    drops = read_drops(Path("pairs"))
    assert len(drops) == 8 and all(d.kept_id and d.stage == "dedup" for d in drops)


def test_the_set_claims_nothing_that_the_file_does_not_say(tmp_path):
    call("import", "theirs.json", "--out", "pairs")
    card = (tmp_path / "pairs/README.md").read_text()
    assert "license: unknown" in card and "file `theirs.json`" in card and "pairgen import theirs.json" in card
    assert "own play" not in card and "--no-eval-split" not in card and "**Not checked.**" in card
    made = read_manifest(tmp_path / "pairs")
    assert made.imported == "theirs.json" and made.recorded_rejected == 0
    assert [(s.stage, s.entered, s.kept) for s in made.funnel] == [("import", 68, 68)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("theirs.json", "theirs.json"), "imported alone"),
        (("theirs.json", "."), "imported alone"),
        ((".", "--dedup"), "--dedup"),
        (("README.md",), "README.md"),
    ],
)
def test_what_goes_not_together_is_refused(arguments, says):
    result = call("import", *arguments, "--out", "pairs")
    assert result.exit_code == 2 and says in result.stderr
