"""A pair that repeats another goes and names the one that stayed, whatever the order."""

import dataclasses
import random
from typing import NamedTuple

import polars as pl
from factories import make_pair
from hypothesis import given, settings
from hypothesis import strategies as st

from pairgen.records import Drop, Message, Pair
from pipelines.dedup import Limits, repeats
from pipelines.slim import frame_of, parted, slim, without


class Dedup(NamedTuple):
    kept: list[Pair]
    drops: list[Drop]


def dedup(pairs, per_chosen=1, several=()):
    listed = sorted(pairs, key=lambda p: p.pair_id)
    limits = Limits(per_chosen, per_completion=0, near=0, several=frozenset(several))
    return Dedup(*parted(listed, repeats(slim(frame_of(listed)), limits), "dedup"))


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


def told(rows):
    return [(r["pair_id"], r["reason"], r["keeper"]) for r in rows.sort("pair_id").iter_rows(named=True)]


def test_a_completion_stays_in_so_many_pairs_of_a_game_and_role():
    chosen = (Message("assistant", "yes"),)
    pairs = [make_pair(t, chosen=chosen, pair_id=f"p{t}") for t in range(5)]
    pairs.append(make_pair(9, chosen=chosen, pair_id="q", role="Other"))
    rows = slim(frame_of(pairs))
    assert told(repeats(rows)) == [(f"p{t}", "max_per_completion", "p0") for t in (2, 3, 4)]
    assert not repeats(rows, Limits(per_completion=0)).height


def test_limits_hold_within_a_strategy_unless_they_are_to_hold_over_all():
    pairs = [reworded(make_pair(1, pair_id="a"), f"text {s}", pair_id=s, strategy=s) for s in "abc"]
    rows = slim(frame_of(pairs))
    assert not repeats(rows).height
    assert told(repeats(rows, Limits(across_strategies=True))) == [(s, "repeated_chosen", "a") for s in "bc"]


def test_a_prompt_stays_in_so_many_pairs():
    pairs = [make_pair(1, pair_id=f"p{i}", chosen=(Message("assistant", f"say {i}"),)) for i in range(4)]
    found = repeats(slim(frame_of(pairs)), Limits(per_prompt=3))
    assert told(found) == [("p3", "max_per_prompt", "p0")]


def test_the_keeper_of_a_copy_of_a_dropped_pair_is_the_one_that_stays():
    pair = make_pair(1, pair_id="b")
    pairs = [reworded(pair, "x", pair_id="a"), pair, dataclasses.replace(pair, pair_id="c")]
    assert told(repeats(slim(frame_of(pairs)))) == [("b", "repeated_chosen", "a"), ("c", "duplicate", "a")]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from("st")), max_size=40),
    st.integers(1, 2), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.randoms(),
)  # fmt: skip
def test_any_set_comes_out_within_its_limits(drawn, per_chosen, per_completion, per_prompt, across, chance):
    pairs = [
        make_pair(t, pair_id=f"p{i:02}", strategy=s, chosen=(Message("assistant", f"c{c}"),),
                  rejected=(Message("assistant", f"r{r}"),))
        for i, (t, c, r, s) in enumerate(drawn)
    ]  # fmt: skip
    limits = Limits(per_chosen, per_completion, per_prompt, 0, across)
    rows = slim(frame_of(pairs))
    found = repeats(rows, limits)
    left = without(rows, found)
    assert left.height + found.height == len(pairs) == len({*left["row"], *found["row"]})
    assert set(found["keeper"]) <= set(left["pair_id"])
    scope = [] if across else ["strategy"]
    caps = {"prompt chosen": per_chosen, "prompt": per_prompt}
    for key, limit in {"prompt chosen rejected": 1, **caps}.items():
        by = key.split() + (scope if "rejected" not in key else [])
        assert not limit or not left.height or left.group_by(by).len()["len"].max() <= limit
    said_to = left.group_by("game", "role", "chosen", *scope).agg(pl.col("prompt").n_unique())
    assert not per_completion or not left.height or said_to["prompt"].max() <= per_completion
    again = repeats(slim(frame_of(chance.sample(pairs, len(pairs)))), limits)
    assert told(again) == told(found)
