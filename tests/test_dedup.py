"""A pair that repeats another goes and names the one that stayed, whatever the order."""

import dataclasses
import random

from factories import make_pair

from pairgen.records import Message
from pipelines.dedup import dedup


def reworded(pair, text, **fields):
    return dataclasses.replace(pair, rejected=(Message("assistant", text),), **fields)


def test_an_exact_duplicate_names_its_keeper():
    pair = make_pair(pair_id="a")
    result = dedup([dataclasses.replace(pair, pair_id="b", strategy="other"), pair])
    assert [p.pair_id for p in result.kept] == ["a"]
    assert [(d.item_id, d.reason, d.kept_id) for d in result.drops] == [("b", "duplicate", "a")]


def test_one_pair_a_prompt_reply_and_strategy():
    pair = make_pair(pair_id="b")
    others = [
        reworded(pair, "longer a", pair_id="a"),
        reworded(pair, "longer c", pair_id="c"),
        reworded(pair, "looped", pair_id="d", strategy="looping"),
    ]
    result = dedup([pair, *others])
    assert [p.pair_id for p in result.kept] == ["a", "d"]
    assert [(d.item_id, d.reason, d.kept_id) for d in result.drops] == [
        ("b", "repeated_chosen", "a"),
        ("c", "repeated_chosen", "a"),
    ]
    assert [p.pair_id for p in dedup([pair, *others], per_chosen=2).kept] == ["a", "b", "d"]


def test_strategies_that_give_several_keep_them_but_no_repeats():
    pair = make_pair(pair_id="a")
    others = [reworded(pair, "b", pair_id="b"), reworded(pair, "b", pair_id="c")]
    result = dedup([pair, *others], several={"longer"})
    assert [p.pair_id for p in result.kept] == ["a", "b"]
    assert [(d.item_id, d.reason) for d in result.drops] == [("c", "duplicate")]


def test_another_prompt_is_another_pair():
    assert not dedup([make_pair(1), make_pair(2)]).drops


def test_order_does_not_matter_and_nothing_is_lost():
    pairs = [reworded(make_pair(t % 3, pair_id=f"{t:02}"), f"text {t % 5}") for t in range(30)]
    shuffled = random.Random(0).sample(pairs, len(pairs))
    assert dedup(pairs) == dedup(shuffled)
    result = dedup(pairs)
    assert sorted([p.pair_id for p in result.kept] + [d.item_id for d in result.drops]) == [p.pair_id for p in pairs]
    kept = {p.pair_id for p in result.kept}
    assert all(d.kept_id in kept for d in result.drops)
