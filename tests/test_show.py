"""Two sides beside each other, with what differs marked and nothing that could steer the terminal."""

import dataclasses

import pytest

from pairgen.records import Message, Pair, polars_schema
from pipelines.show import CLOSE, OPEN, mark, side_by_side


def pair(chosen, rejected, prompt="Describe the word."):
    empty = dict.fromkeys(polars_schema(Pair), "")
    numbers = {"task_id": 1, "sample": 0, "move_index": 0, "main_score": None}
    sides = {name: (Message("assistant", text),) for name, text in (("chosen", chosen), ("rejected", rejected))}
    return Pair(**{**empty, **numbers, **sides, "prompt": (Message("user", prompt),), "game": "taboo"})


@pytest.mark.parametrize(
    ("chosen", "rejected", "left", "right"),
    [
        ("CLUE: red", "CLUE: red, I think", "CLUE: red", f"CLUE: red{OPEN}, I think{CLOSE}"),
        ("CLUE: red", "clue: red", f"{OPEN}CLUE{CLOSE}: red", f"{OPEN}clue{CLOSE}: red"),
        ("same", "same", "same", "same"),
        ("", "x", "", f"{OPEN}x{CLOSE}"),
    ],
)
def test_what_the_other_side_lacks_is_marked(chosen, rejected, left, right):
    assert mark(chosen, rejected) == (left, right)


def test_both_sides_stand_beside_each_other_within_the_width():
    lines = side_by_side(pair("CLUE: a\nline", "CLUE: a " + "very " * 40), width=80)
    both = [line for line in lines if "│" in line]
    assert both[0].split() == ["chosen", "│", "rejected"]
    assert len(both) > 4
    assert max(map(len, lines)) <= 80


def test_control_characters_do_not_reach_the_terminal():
    text = "\n".join(side_by_side(pair("a\x1b[2Jb", "c\u202ed"), width=80))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_end_of_a_long_prompt_is_shown():
    lines = side_by_side(pair("a", "b", prompt="\n".join(f"line {n}" for n in range(50))), width=80)
    assert "  … 44 lines before" in lines
    assert "  line 49" in lines


def test_verdicts_come_with_their_reason():
    judged = dataclasses.replace(pair("a", "b"), rejected_verdict="violation", rejected_reason="no tag")
    assert side_by_side(judged, width=80)[-1] == "rejected: violation (no tag)"


@pytest.fixture
def pair_set(tmp_path):
    from click.testing import CliRunner
    from factories import make_episodes, write_run

    from pairgen.cli import main

    run = write_run(tmp_path / "run", make_episodes())
    arguments = ["corrupt", str(run), "--no-eval-split", "--no-verify", "--out", str(tmp_path / "pairs")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    return tmp_path / "pairs"


def test_the_command_shows_what_is_asked_for(pair_set):
    import json

    from click.testing import CliRunner

    from pairgen.cli import main

    def show(*arguments):
        return CliRunner().invoke(main, ["show", str(pair_set), *arguments])

    assert show("--game", "wordle", "-n", "2", "--width", "90").output.count("│ rejected") == 2
    found = json.loads(show("--strategy", "verbose", "-n", "1", "--json").stdout.splitlines()[-1])
    assert (len(found["pairs"]), found["pairs"][0]["strategy"]) == (1, "verbose")
    mistyped = show("--game", "wordl")
    assert (mistyped.exit_code, "did you mean wordle?" in mistyped.output) == (2, True)
    assert CliRunner().invoke(main, ["show", str(pair_set.parent)]).exit_code == 1
    unknown = show("--verdict", "violaton")
    assert (unknown.exit_code, "did you mean violation?" in unknown.output) == (2, True)
    for verdict, count in (("violation", 0), ("unverifiable", 80), ("unverifiable: not verified", 80)):
        assert f"of {count} pairs" in show("--verdict", verdict).output
