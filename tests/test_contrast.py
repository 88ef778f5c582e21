"""contrast sets a won move against what the same model said in the very same state when it did not win."""

import dataclasses
import random

import pytest
from factories import make_episode, make_move
from results_folder import scores, taboo, write_episode

from corruptions import STRATEGIES
from pairgen.errors import UsageProblem
from pairgen.store import read_episodes
from pairgen.strategy import Corruption, Decline, Material, Rival
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.harvest import find_rivals, place_of
from pipelines.ingest import import_results

CONTRAST = STRATEGIES["contrast"].corrupt


def said(reply, *rivals, **options):
    return CONTRAST(Material(make_move(0, reply=reply), "g", (), rivals), random.Random(1), options)


def rival(reply, outcome="lose", model="tiny"):
    return Rival(reply, outcome, model)


def test_every_rival_is_taken_once_with_how_its_episode_ended():
    rivals = (rival("CLUE: blue"), rival("CLUE: blue", "aborted"), rival("CLUE:  blue"), rival("CLUE: green"))
    assert said("CLUE: red", *rivals) == (Corruption("CLUE:  blue", "lose"), Corruption("CLUE: green", "lose"))
    assert said("CLUE: red", *rivals[:2]) == (Corruption("CLUE: blue", "aborted"),)


def test_a_rival_that_says_the_same_is_none():
    assert said("CLUE: red", rival(" CLUE:  red\n")) == Decline("no_rival")
    assert said("CLUE: red") == Decline("no_rival")


def test_the_outcome_can_be_chosen():
    rivals = (rival("a"), rival("b", "aborted"))
    assert said("c", *rivals, outcome="aborted") == (Corruption("b", "aborted"),)


def test_another_models_rival_is_taken_only_when_asked_for_and_named():
    rivals = (rival("a"), rival("b", model="large"), rival("a", model="large"))
    assert said("c", *rivals) == (Corruption("a", "lose"),)
    assert said("c", *rivals, models="any") == (Corruption("a", "lose"), Corruption("b", "lose/large"))


@pytest.mark.parametrize(
    ("option", "says"),
    [("outcome=abort", "did you mean aborted"), ("models=all", "own"), ("per_prompt=many", "no whole number")],
)
def test_a_value_that_cannot_be_is_told_without_a_move(option, says):
    with pytest.raises(UsageProblem, match=says):
        choose([f"contrast:{option}"], "", STRATEGIES)


def samples(*outcomes_and_replies, source="rollout", **fields):
    """Episodes of one instance whose only move answers the same prompt."""
    move = make_move(0, prompt="Describe the word: river.")
    return [
        dataclasses.replace(
            make_episode(1, moves=[dataclasses.replace(move, reply=reply, raw_reply=reply, **fields)]),
            sample=sample, outcome=outcome, source=source,
        )
        for sample, (outcome, reply) in enumerate(outcomes_and_replies)
    ]  # fmt: skip


def test_rivals_are_those_of_the_same_model_and_prompt_in_episodes_that_were_not_won():
    episodes = samples(("success", "CLUE: a"), ("lose", "CLUE: b"), ("aborted", "c"), ("error", "d"))
    place = place_of(episodes[0].game, episodes[0].moves[0])
    assert find_rivals(episodes)[place] == (rival("CLUE: b"), rival("c", "aborted"))


def test_what_also_won_from_the_same_place_is_no_rival():
    episodes = samples(("success", "a"), ("lose", " a "), ("success", "b"), ("lose", "b"), ("lose", "c"))
    assert find_rivals(episodes)[place_of("taboo", episodes[0].moves[0])] == (rival("c"),)


def test_of_an_aborted_episode_only_the_last_move_counts():
    moves = [make_move(0, reply="fine"), make_move(1, reply="broken")]
    episode = dataclasses.replace(make_episode(1, moves=moves), outcome="aborted")
    assert [rival.reply for found in find_rivals([episode]).values() for rival in found] == ["broken"]


def built_of(episodes, strategy="contrast"):
    return build(
        episodes, CorruptConfig(strategy=(strategy,)), choose([strategy], "", STRATEGIES), STRATEGIES, NO_EVAL_SPLIT
    )


def contents(built):
    return sorted((p.chosen[0].content, p.rejected[0].content) for p in (*built.train, *built.test))


def test_every_won_reply_meets_every_rival():
    episodes = samples(("success", "a"), ("lose", "b"), ("success", "a2"), ("aborted", "c"), ("success", "a"))
    built = built_of(episodes)
    assert contents(built) == [("a", "b"), ("a", "c"), ("a2", "b"), ("a2", "c")]
    assert {p.detail for p in (*built.train, *built.test)} == {"lose", "aborted"}


def test_a_prompt_has_twenty_pairs_at_most_and_the_funnel_says_what_was_over():
    episodes = samples(*[("success", f"won {n}") for n in range(6)], *[("lose", f"lost {n}") for n in range(7)])
    for strategy, most in (("contrast", 20), ("contrast:per_prompt=5", 5), ("contrast:per_prompt=0", 42)):
        built = built_of(random.Random(most).sample(episodes, len(episodes)), strategy)
        tries = next(s for s in built.funnel if s.stage == "corrupt")
        assert (tries.entered, tries.kept, len(contents(built))) == (42, most, most)
        assert [(r.reason, r.count) for r in tries.dropped] == [("cap_per_prompt", 42 - most)] * (most < 42)
        assert len({chosen for chosen, _ in contents(built)}) == min(6, most)
        assert contents(built) == contents(built_of(episodes, strategy))


def test_runs_of_one_model_are_set_against_each_other_and_those_of_two_only_when_asked():
    won, lost = samples(("success", "a")), samples(("lose", "b"), source="later")
    others = samples(("lose", "c"), model="large", source="large")
    assert contents(built_of([*won, *lost, *others])) == [("a", "b")]
    assert contents(built_of([*won, *lost, *others], "contrast:models=any")) == [("a", "b"), ("a", "c")]


@pytest.mark.parametrize("folders", [("m-t0.0", "m-t0.7"), ("m", "m.sample1")])
def test_two_imported_runs_of_one_model_have_its_name_whatever_their_folders(tmp_path, folders):
    episodes = []
    for folder, outcome in zip(folders, ("success", "aborted"), strict=True):
        results = tmp_path / folder
        write_episode(results / "taboo" / "0_high_en" / "instance_00004", taboo(outcome), score=scores(outcome))
        import_results([results], tmp_path / f"run of {folder}")
        episodes += read_episodes(tmp_path / f"run of {folder}")
    assert contents(built_of(episodes)) == [("CLUE: the first", "january")]
