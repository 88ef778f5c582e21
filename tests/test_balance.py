"""Caps and shares: spread evenly, drawn by the seed, and what could not be filled is told."""

from collections import Counter

import pytest
from factories import make_pair
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.balance import Quota, Shortage, allot, balance
from pipelines.slim import frame_of, slim, without


def rows_of(games=("taboo", "wordle"), tasks=6, strategies=("loop", "verbose"), each=2):
    return slim(
        frame_of(
            make_pair(t, game=g, strategy=s, move_index=i)
            for g in games for t in range(tasks) for s in strategies for i in range(each)
        )
    )  # fmt: skip


def left(rows, seed=1, **quota):
    return without(rows, balance(rows, Quota(**quota), seed).decided)


def counts(rows, *columns):
    return {row[:-1]: row[-1] for row in rows.group_by(columns).len().iter_rows()}


def test_an_instance_gives_no_more_than_its_part_and_all_strategies_have_a_turn():
    kept = left(rows_of(), per_instance=2)
    assert set(counts(kept, "game", "task_id").values()) == {2}
    assert set(counts(kept, "game", "task_id", "strategy").values()) == {1}


def test_a_game_gives_no_more_than_its_part_spread_over_strategies_and_instances():
    kept = left(rows_of(), per_game=8)
    assert counts(kept, "game") == {("taboo",): 8, ("wordle",): 8}
    assert set(counts(kept, "game", "strategy").values()) == {4}
    assert max(counts(kept, "game", "strategy", "task_id").values()) == 1


def test_a_game_that_is_too_small_is_told():
    rows = slim(frame_of([make_pair(t) for t in range(20)] + [make_pair(1, game="chess")]))
    assert balance(rows, Quota(per_game=5), 1).short == (Shortage("per_game", "chess", 5, 1),)


def test_strategies_stay_in_the_ratio_of_their_weights():
    rows = rows_of(strategies=("loop", "verbose", "bleed"))
    kept = left(rows, per_strategy=(("loop", 3.0), ("bleed", 0.0)))
    assert counts(kept, "strategy") == {("loop",): 24, ("verbose",): 8}


def test_a_strategy_that_is_asked_for_and_not_there_is_told():
    assert balance(rows_of(), Quota(per_strategy=(("ramble", 2.0),)), 1).short == (
        Shortage("per_strategy", "ramble", 1, 0),
    )


def test_a_total_keeps_the_proportions():
    rows = slim(frame_of([make_pair(t) for t in range(60)] + [make_pair(t, game="chess") for t in range(20)]))
    assert counts(left(rows, total=40), "game") == {("taboo",): 30, ("chess",): 10}
    short = balance(rows, Quota(total=100), 1)
    assert not short.decided.height and short.short == (Shortage("total", "", 100, 80),)


def test_the_seed_decides_and_the_order_does_not():
    rows = rows_of(tasks=20)
    one, two = left(rows, total=20), left(rows.sample(fraction=1.0, shuffle=True, seed=3), total=20)
    assert set(one["pair_id"]) == set(two["pair_id"]) != set(left(rows, seed=2, total=20)["pair_id"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.sampled_from("xy")), max_size=40),
    st.integers(0, 4), st.integers(0, 12), st.integers(0, 20),
)  # fmt: skip
def test_kept_and_dropped_are_the_input_and_no_limit_is_passed(drawn, per_instance, per_game, total):
    rows = slim(frame_of(make_pair(t, game=g, strategy=s, move_index=i) for i, (g, t, s) in enumerate(drawn)))
    made = balance(rows, Quota(per_instance, per_game, (), total), 1)
    kept = without(rows, made.decided)
    assert sorted([*kept["row"], *made.decided["row"]]) == rows["row"].to_list()
    for limit, columns in ((per_instance, ("game", "task_id")), (per_game, ("game",))):
        assert not limit or max(counts(kept, *columns).values(), default=0) <= limit
    before = rows.height - sum(Counter(made.decided["reason"])[r] for r in ("per_instance", "per_game"))
    assert kept.height == (min(before, total) if total else before)


@pytest.mark.parametrize(
    ("sizes", "total", "shares"), [([3, 1], 2, [2, 0]), ([5, 5, 5], 4, [2, 1, 1]), ([2, 1], 9, [2, 1]), ([], 0, [])]
)
def test_shares_are_in_proportion_and_never_over_a_size(sizes, total, shares):
    assert allot(sizes, total) == shares


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(0, 500))
def test_shares_add_up(sizes, total):
    shares = allot(sizes, total)
    assert sum(shares) == min(total, sum(sizes)) and all(0 <= s <= n for s, n in zip(shares, sizes, strict=True))
