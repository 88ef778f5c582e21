"""Clean pairs become a set within its limits and quotas, both sides of it apart, and nothing is lost on the way."""

import dataclasses
import random
from collections import Counter

from factories import make_pair
from test_tokens import Words

from pairgen.records import Message
from pipelines.balance import Quota
from pipelines.dedup import DEFAULT_LIMITS, Limits
from pipelines.first_prompts import templates_of
from pipelines.refine import Plan, refine
from pipelines.slim import frame_of, slim

NO_QUOTA = Quota()


def some(tasks=20, games=("taboo", "wordle"), strategies=("longer",)):
    return [
        make_pair(t, game=g, strategy=s, pair_id=f"{g} {s} {t:02}", rejected=(Message("assistant", f"{g} {t} {s} so"),))
        for g in games for s in strategies for t in range(tasks)
    ]  # fmt: skip


def refined(pairs, tokenizer=None, limits=DEFAULT_LIMITS, quota=NO_QUOTA, seed=42, **options):
    frame = frame_of(pairs)
    templates = templates_of(slim(frame), frame)
    return refine(pairs, templates, Plan(limits, quota, 0.2, seed, **options), tokenizer)


def shorter(pair):
    """The same pair the other way round: its chosen side is the longer."""
    return dataclasses.replace(pair, chosen=(Message("assistant", f"{pair.pair_id} a long answer with many words"),))


def test_every_pair_is_kept_or_dropped_once_and_the_stages_join():
    pairs = [*some(), *(dataclasses.replace(p, pair_id=p.pair_id + " again") for p in some(5))]
    result = refined(
        [shorter(p) if p.task_id % 3 else p for p in pairs],
        Words(), quota=Quota(per_game=15, total=20), max_shortcut=0.6, max_length=100,
    )  # fmt: skip
    assert [s.stage for s in result.stages] == ["dedup", "tokens", "balance", "shortcut"]
    for stage, after in zip(result.stages, result.stages[1:], strict=False):
        assert stage.kept == after.entered
    for stage in result.stages:
        assert stage.entered - stage.kept == sum(r.count for r in stage.dropped)
        assert stage.entered - stage.kept == sum(d.stage == stage.stage for d in result.drops)
    kept = [*result.train, *result.test]
    assert sorted([p.pair_id for p in kept] + [d.item_id for d in result.drops]) == sorted(p.pair_id for p in pairs)
    assert {p.split for p in result.train} == {"train"} and {p.split for p in result.test} == {"test"}


def test_without_options_only_repeats_go_and_the_rest_is_audited():
    result = refined(some())
    assert [s.stage for s in result.stages] == ["dedup"] and not result.drops
    assert not result.quality.shared and not result.quality.thinned and result.quality.tokens is None
    longer = next(s for s in result.quality.shortcuts if s.rule == "longer")
    assert longer.train_pairs == len(result.train) and longer.test_pairs == len(result.test)
    assert len(refined([*some(), *some()], limits=None).train) > len(result.train)


def test_no_task_is_asked_on_both_sides():
    pairs = [*some(), *(dataclasses.replace(p, task_id=p.task_id + 50, pair_id=f"twin {p.pair_id}") for p in some())]
    result = refined(pairs, limits=Limits(near=0))
    firsts = [{p.prompt for p in side} for side in (result.train, result.test)]
    assert not firsts[0] & firsts[1] and not result.quality.shared and result.test


def test_quotas_are_filled_with_pairs_that_a_trainer_can_use():
    pairs = [
        dataclasses.replace(p, rejected=(Message("assistant", "far too long " * 30),)) if p.task_id < 10 else p
        for p in some()
    ]
    result = refined(pairs, Words(), quota=Quota(per_game=10), max_length=60)
    assert Counter(p.game for p in (*result.train, *result.test)) == {"taboo": 10, "wordle": 10}
    assert Counter(d.reason for d in result.drops) == {"over_max_length": 20} and not result.quality.short
    assert result.quality.tokens.needed_length > 60 >= max(n.max for n in result.quality.tokens.lengths)


def test_what_is_short_of_a_quota_is_told_as_it_is_in_the_end():
    mixed = [shorter(p) if p.task_id % 5 == 0 else p for p in some()]
    result = refined(mixed, quota=Quota(per_game=30, total=40), max_shortcut=0.6)
    left = len(result.train) + len(result.test)
    assert left < 40 and [t.removed > 0 for t in result.quality.thinned] == [True, True]
    assert [(s.option, s.name, s.wanted, s.got) for s in result.quality.short] == [
        ("per_game", "taboo", 30, 20), ("per_game", "wordle", 30, 20), ("total", "", 40, left),
    ]  # fmt: skip
    assert all(s.test <= 0.6 for s in result.quality.shortcuts if s.rule == "longer" and not s.strategy)


def test_the_order_does_not_matter_and_the_seed_does():
    pairs = some(strategies=("longer", "other"))
    options = {"quota": Quota(per_instance=1, per_strategy=(("other", 2.0),), total=24)}
    first = refined(pairs, **options)
    assert first == refined(random.Random(3).sample(pairs, len(pairs)), **options)
    other = refined(pairs, seed=7, **options)
    assert len(other.train) + len(other.test) == 24 and other.train != first.train


def test_no_pairs_make_an_empty_set():
    result = refined([], Words(), quota=Quota(total=5), max_shortcut=0.8)
    assert not result.train and not result.test and not result.quality.shortcuts
