"""Won moves become pairs: what is on each side, what is declined, and that order never matters while the seed does."""

import dataclasses
import random
from collections import Counter

import pytest
from factories import STRATEGIES, eval_split, make_episode, make_episodes, make_move

from pairgen.errors import UsageProblem
from pairgen.records import InstanceKey, Message
from pairgen.strategy import Ask, Corruption, Decline, Draft, Strategy
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.errands import Drafted
from pipelines.first_prompts import EvalPrompt
from pipelines.harvest import Caps, find_peers, harvest
from pipelines.screen import Prompted
from pipelines.spoil import NOT_VERIFIED, corrupt


def made(texts, episodes=None, seed=42, style=""):
    episodes = make_episodes() if episodes is None else episodes
    moves = harvest(episodes, Caps(0, 0), seed).kept
    return corrupt(moves, choose(texts, style, STRATEGIES), STRATEGIES, find_peers(episodes, seed), seed)


def built(episodes, seed=42, evaluation=NO_EVAL_SPLIT, strategy=("longer", "picky"), **fields):
    config = CorruptConfig(strategy=strategy, seed=seed, **fields)
    return build(episodes, config, choose(strategy, "", STRATEGIES), STRATEGIES, evaluation)


def test_a_pair_holds_the_prompt_the_reply_and_the_spoiled_reply():
    prompt = (Message("system", "Be brief."), Message("user", "Give a clue."))
    episode = make_episode(7, moves=[dataclasses.replace(make_move(0, reply="CLUE: red"), prompt=prompt)])
    (pair,) = made(["longer"], [episode]).pairs
    assert pair.prompt == prompt
    assert pair.chosen == (Message("assistant", "CLUE: red"),)
    assert pair.rejected[0].role == "assistant" and pair.rejected[0].content.startswith("CLUE: red ")
    assert (pair.chosen_verdict, pair.rejected_verdict) == (NOT_VERIFIED, NOT_VERIFIED)
    assert (pair.strategy, pair.instance, pair.outcome, pair.split) == (
        "longer",
        ("taboo", "high_en", 7),
        "success",
        "",
    )
    assert pair.detail.startswith("tail/")


def test_a_strategy_that_declines_or_changes_nothing_is_a_drop_with_its_reason():
    result = made(["picky", "same"])
    reasons = Counter((d.strategy, d.reason) for d in result.drops)
    assert reasons == {("picky", "odd_turn"): 60, ("same", "identical"): 120}
    assert {d.stage for d in result.drops} == {"corrupt"}


def test_each_strategy_works_on_each_move_and_nothing_is_lost():
    result = made(["longer", "picky", "same"])
    assert result.entered == 360 == len(result.pairs) + len(result.drops)
    assert Counter(p.strategy for p in result.pairs) == {"longer": 120, "picky": 60}


def test_a_strategy_may_give_several_and_each_is_a_try():
    def several(material, chance, options):
        texts = ("a", "b", material.move.reply)[: material.move.index % 4]
        return tuple(Corruption(text, text[:1]) for text in texts)

    strategies = {"several": Strategy("several", "", several)}
    moves = harvest(make_episodes(["taboo"], tasks=1, moves=4), Caps(0, 0), 1).kept
    result = corrupt(moves, choose(["several"], "", strategies), strategies, {}, 1)
    assert (result.entered, len(result.pairs)) == (1 + 1 + 2 + 3, 5)
    assert Counter(d.reason for d in result.drops) == {"nothing_made": 1, "identical": 1}


def test_a_weight_is_a_share_of_the_moves_of_each_game():
    result = made(["longer:4", "picky:1"])
    tried = Counter((p.game, p.strategy) for p in result.pairs) + Counter(
        (d.game, d.strategy) for d in result.drops if d.reason != "share"
    )
    assert tried == {("taboo", "longer"): 60, ("wordle", "longer"): 60, ("taboo", "picky"): 15, ("wordle", "picky"): 15}
    assert Counter(d.reason for d in result.drops)["share"] == 90


def test_neither_the_order_of_moves_nor_of_strategies_matters():
    episodes = make_episodes()
    shuffled = random.Random(3).sample(episodes, len(episodes))
    first, second = made(["longer", "picky:0.5"], episodes), made(["picky:0.5", "longer"], shuffled)
    assert sorted(first.pairs, key=str) == sorted(second.pairs, key=str)
    assert sorted(first.drops, key=str) == sorted(second.drops, key=str)


def test_one_strategy_does_not_change_what_another_makes():
    alone = {p.pair_id for p in made(["longer"]).pairs}
    assert alone == {p.pair_id for p in made(["longer", "picky"]).pairs if p.strategy == "longer"}


def test_another_seed_spoils_otherwise():
    assert {p.rejected for p in made(["longer"]).pairs} != {p.rejected for p in made(["longer"], seed=43).pairs}


def test_the_style_goes_to_the_strategies_that_have_styles():
    pairs = made(["longer", "picky"], style="Honestly, ").pairs
    assert all(("Honestly, " in p.rejected[0].content) == (p.strategy == "longer") for p in pairs)
    assert choose(["longer:style=own"], "all", STRATEGIES)[0].options == {"style": "own"}


@pytest.mark.parametrize(
    ("texts", "style", "says"),
    [
        (["longr"], "", "did you mean longer"),
        (["longer", "longer:2"], "", "given twice"),
        (["picky"], "x", "has no styles"),
        (["longer:0"], "", "no weight above 0"),
        (["picky:style=x"], "", "no option 'style'"),
    ],
)
def test_a_strategy_that_cannot_be_had_is_refused(texts, style, says):
    with pytest.raises(UsageProblem, match=says):
        choose(texts, style, STRATEGIES)


def test_the_funnel_adds_up_and_every_drop_is_in_it():
    evaluation = eval_split(*(InstanceKey("taboo", "high_en", t) for t in range(4)))
    twice = make_episodes(["wordle"], tasks=2, sample=1, source="again")
    result = built([*make_episodes(), *make_episodes(["x"], tasks=2, outcome="lose"), *twice], evaluation=evaluation)
    assert [s.stage for s in result.funnel] == ["harvest", "corrupt", "decontaminate", "dedup"]
    for stage in result.funnel:
        assert stage.entered == stage.kept + sum(r.count for r in stage.dropped)
        dropped = Counter(d.reason for d in result.drops if d.stage == stage.stage)
        assert dropped == {r.reason: r.count for r in stage.dropped}
    assert result.funnel[1].kept == result.funnel[2].entered
    assert result.funnel[-1].kept == len(result.train) + len(result.test)
    assert {d.reason for d in result.drops} >= {"outcome_lose", "cap_per_player", "odd_turn", "eval_key"}


def test_no_evaluation_instance_gets_in_and_each_is_named():
    evaluation = eval_split(*(InstanceKey("taboo", "high_en", t) for t in range(4)))
    twin = make_episode(99, moves=2, instance_hash=make_episode(0).instance_hash)
    result = built([*make_episodes(), twin], evaluation=evaluation)
    assert {p.task_id for p in (*result.train, *result.test) if p.game == "taboo"} == set(range(4, 10))
    assert [k.task_id for k in result.removed] == [0, 1, 2, 3, 99]
    assert {d.reason for d in result.drops if d.task_id == 99 and d.stage == "decontaminate"} == {"eval_content"}


def test_the_whole_way_ignores_order_and_heeds_the_seed():
    episodes = make_episodes()
    first = built(episodes, per_game=20)
    again = built(random.Random(5).sample(episodes, len(episodes)), per_game=20, strategy=("picky", "longer"))
    assert (first.train, first.test) == (again.train, again.test)
    assert sorted(map(str, first.drops)) == sorted(map(str, again.drops))
    other = built(episodes, seed=7, per_game=20)
    assert {p.move_id for p in other.train} != {p.move_id for p in first.train}


def test_the_caps_of_the_configuration_hold():
    for caps, most in (({"per_player": 1}, 40), ({"moves_per_game": 7}, 14), ({}, 80)):
        assert built(make_episodes(), strategy=("longer",), **caps).funnel[0].kept == most


def test_progress_sees_every_move_of_every_strategy():
    seen = Counter()

    def watch(moves, what):
        for move in moves:
            seen[what] += 1
            yield move

    choices = choose(["longer", "picky"], "", STRATEGIES)
    build(make_episodes(), CorruptConfig(), choices, STRATEGIES, NO_EVAL_SPLIT, watch)
    assert seen == {"longer": 80, "picky": 80}


def asks(material, chance, options):
    if material.move.index % 3 == 2:
        return Decline("third_turn")
    return (Ask(material.move.prompt, 9, seed=chance.getrandbits(31)),)


def echoed(material, chance, options):
    (draft,) = material.drafts
    return Decline("failed") if draft.problem else Corruption(f"{material.move.reply} {draft.text}", "asked")


ASKING = {
    **STRATEGIES,
    "asking": Strategy("asking", "what a model said", echoed, asked="model", asks=asks),
    "mending": Strategy("mending", "the move mended", echoed, asked="judge", asks=asks, takes="aborted"),
}


def aborted(task_id):
    moves = [make_move(0, reply=f"fine {task_id}"), make_move(1, reply=f"bad {task_id}", violation="no tag")]
    return make_episode(task_id, outcome="aborted", moves=moves)


def asked_for(errands):
    return Drafted({e.name: Draft(f"said {e.ask.seed}", "stop", 1, 1, e.asked) for e in errands}, ())


def built_asking(episodes, strategy, drafter=asked_for, evaluation=NO_EVAL_SPLIT):
    config = CorruptConfig(strategy=strategy, per_player=0)
    choices = choose(strategy, "", ASKING)
    return build(episodes, config, choices, ASKING, evaluation, drafter=drafter)


def test_strategies_get_the_replies_that_they_asked_for_and_nothing_is_lost():
    episodes = [*make_episodes(tasks=4), *(aborted(t) for t in range(20, 24))]
    result = built_asking(episodes, ("asking", "mending", "longer:0.5"))
    pairs = [*result.train, *result.test]
    assert Counter(p.strategy for p in pairs) == {"asking": 32, "mending": 4, "longer": 24}
    for pair in pairs:
        assert ("said" in pair.chosen[0].content) == (pair.strategy == "mending")
        assert pair.rejected[0].content != pair.chosen[0].content
    mended = next(p for p in pairs if p.strategy == "mending")
    assert mended.rejected[0].content.startswith("bad") and mended.outcome == "aborted"
    for stage in result.funnel:
        assert stage.entered == stage.kept + sum(r.count for r in stage.dropped)
    assert [(s.stage, s.entered) for s in result.funnel[:3]] == [
        ("harvest", 56), ("harvest_aborted", 8), ("corrupt", 100),
    ]  # fmt: skip


def test_what_is_asked_depends_neither_on_order_nor_on_other_strategies():
    episodes = [*make_episodes(tasks=4), *(aborted(t) for t in range(20, 24))]
    seen = []

    def watching(errands):
        seen.append({e.name for e in errands})
        return asked_for(errands)

    first = built_asking(episodes, ("asking", "mending"), watching)
    second = built_asking(episodes[::-1], ("mending", "asking"), watching)
    built_asking(episodes, ("asking",), watching)
    assert seen[0] == seen[1] > seen[2] and len(seen[0]) == 36
    assert sorted(map(str, first.train)) == sorted(map(str, second.train))


def test_nothing_is_asked_for_moves_outside_a_share_or_of_evaluation_instances():
    counts = []

    def counting(errands):
        counts.append(len(errands))
        return asked_for(errands)

    evaluation = eval_split(InstanceKey("taboo", "high_en", 0))
    result = built_asking(make_episodes(["taboo"], tasks=4), ("asking",), counting, evaluation)
    assert counts == [12] and Counter(d.reason for d in result.drops) == {"eval_key": 6, "third_turn": 6}
    built_asking(make_episodes(["taboo"], tasks=4), ("asking:0.5", "longer"), counting)
    assert counts[1] < 12


def test_nobody_is_asked_about_what_only_its_prompt_gives_away():
    counts = []

    def counting(errands):
        counts.append(len(errands))
        return asked_for(errands)

    hidden = InstanceKey("taboo", "high_en", 100)
    config = CorruptConfig(strategy=("asking",), per_player=0)
    choices, episodes = choose(("asking",), "", ASKING), make_episodes(["taboo"], tasks=4)

    def prompter(keys):
        return Prompted([EvalPrompt(key, "Giver", episodes[2].moves[0].prompt[0].content) for key in keys], {})

    result = build(episodes, config, choices, ASKING, eval_split(hidden), drafter=counting, prompter=prompter)
    assert counts == [12] and Counter(d.reason for d in result.drops) == {"eval_prompt": 6, "third_turn": 6}


def test_without_an_answer_a_move_is_dropped():
    result = built_asking(make_episodes(["taboo"], tasks=1), ("asking",), lambda errands: Drafted({}, ()))
    assert Counter(d.reason for d in result.drops) == {"not_asked": 4, "third_turn": 2}


def test_only_aborted_moves_are_harvested_when_only_they_are_wanted():
    result = built_asking([*make_episodes(tasks=2), aborted(30)], ("mending",))
    assert [s.stage for s in result.funnel] == ["harvest_aborted", "corrupt", "decontaminate", "dedup"]
    assert len(result.train) + len(result.test) == 1
