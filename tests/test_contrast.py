"""contrast sets a won move against what the same model said in the very same state when it did not win."""

import dataclasses
import random

import pytest
from factories import make_episode, make_move

from corruptions import STRATEGIES
from pairgen.errors import UsageProblem
from pairgen.strategy import Corruption, Decline, Material, Rival
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.harvest import find_rivals, place_of

CONTRAST = STRATEGIES["contrast"].corrupt


def said(reply, *rivals, **options):
    return CONTRAST(Material(make_move(0, reply=reply), "g", (), rivals), random.Random(1), options)


def test_a_rival_is_taken_with_how_its_episode_ended():
    assert said("CLUE: red", Rival("CLUE: blue", "lose")) == Corruption("CLUE: blue", "lose")


def test_a_rival_that_says_the_same_is_none():
    assert said("CLUE: red", Rival(" CLUE:  red\n", "lose")) == Decline("no_rival")
    assert said("CLUE: red") == Decline("no_rival")


def test_the_outcome_can_be_chosen():
    rivals = (Rival("a", "lose"), Rival("b", "aborted"))
    assert said("c", *rivals, outcome="aborted").text == "b"
    with pytest.raises(UsageProblem, match="did you mean aborted"):
        said("c", *rivals, outcome="abort")


def samples(*outcomes_and_replies, **fields):
    """Episodes of one instance whose only move answers the same prompt."""
    move = make_move(0, prompt="Describe the word: river.")
    return [
        dataclasses.replace(
            make_episode(1, moves=[dataclasses.replace(move, reply=reply, raw_reply=reply, **fields)]),
            sample=sample, outcome=outcome,
        )
        for sample, (outcome, reply) in enumerate(outcomes_and_replies)
    ]  # fmt: skip


def test_rivals_are_those_of_the_same_model_and_prompt_in_episodes_that_were_not_won():
    episodes = samples(("success", "CLUE: a"), ("lose", "CLUE: b"), ("aborted", "c"), ("error", "d"))
    place = place_of(episodes[0].game, episodes[0].moves[0])
    assert find_rivals(episodes)[place] == (Rival("CLUE: b", "lose"), Rival("c", "aborted"))
    others = samples(("lose", "CLUE: x"), model="another")
    assert place not in find_rivals(others)


def test_of_an_aborted_episode_only_the_last_move_counts():
    moves = [make_move(0, reply="fine"), make_move(1, reply="broken")]
    episode = dataclasses.replace(make_episode(1, moves=moves), outcome="aborted")
    assert [rival.reply for found in find_rivals([episode]).values() for rival in found] == ["broken"]


def test_a_run_with_samples_gives_pairs():
    episodes = samples(("success", "CLUE: a"), ("lose", "CLUE: b"), ("success", "CLUE: a2"))
    choices = choose(["contrast"], "", STRATEGIES)
    built = build(episodes, CorruptConfig(strategy=("contrast",)), choices, STRATEGIES, NO_EVAL_SPLIT)
    pairs = [*built.train, *built.test]
    assert {(p.chosen[0].content, p.rejected[0].content) for p in pairs} == {
        ("CLUE: a", "CLUE: b"), ("CLUE: a2", "CLUE: b"),
    }  # fmt: skip
    assert {p.detail for p in pairs} == {"lose"}
