"""Train and test share no task, each game gives its part, and a seed decides which."""

import random
from collections import Counter
from typing import NamedTuple

import polars as pl
import pytest
from factories import make_pair

from pairgen.records import Message, Pair
from pipelines.slim import frame_of, slim
from pipelines.split import shared, sides


class Split(NamedTuple):
    train: list[Pair]
    test: list[Pair]


def split(pairs, test_size, seed):
    """The pairs of each side, by id."""
    listed = sorted(pairs, key=lambda p: p.pair_id)
    test = set(sides(slim(frame_of(listed)), test_size, seed).filter(pl.col("split") == "test")["row"])
    return Split(*([p for row, p in enumerate(listed) if (row in test) == side] for side in (False, True)))


def some_pairs(games=("taboo", "wordle", "chess"), tasks=20, each=3):
    return [make_pair(t, game=g, move_index=i) for g in games for t in range(tasks) for i in range(each)]


def test_no_instance_is_on_both_sides_and_nothing_is_lost():
    pairs = some_pairs()
    result = split(pairs, 0.2, 42)
    assert not {p.instance for p in result.train} & {p.instance for p in result.test}
    assert sorted(p.pair_id for p in (*result.train, *result.test)) == sorted(p.pair_id for p in pairs)


@pytest.mark.parametrize("size", [0.05, 0.1, 0.25, 0.5])
def test_each_game_gives_its_share(size):
    result = split(some_pairs(), size, 42)
    for count in Counter(p.game for p in result.test).values():
        assert abs(count - size * 60) <= 3
    assert abs(len(result.test) - size * 180) <= 3


def test_the_same_task_under_two_numbers_is_on_one_side():
    pairs = [make_pair(t, instance_hash=f"content {t // 2}", move_index=i) for t in range(40) for i in range(2)]
    result = split(pairs, 0.3, 42)
    assert not {p.instance_hash for p in result.train} & {p.instance_hash for p in result.test}
    assert len(result.test) == 24


def test_tasks_without_content_are_not_lumped_together():
    assert split([make_pair(t, instance_hash="") for t in range(10)], 0.2, 42).test


def test_two_instances_are_enough_for_a_test_side_and_one_is_not():
    assert [len(s) for s in split([make_pair(1), make_pair(2)], 0.1, 42)] == [1, 1]
    assert [len(s) for s in split([make_pair(1), make_pair(1, game="wordle")], 0.01, 42)] == [1, 1]
    assert [len(s) for s in split([make_pair(1), make_pair(1, move_index=2)], 0.5, 42)] == [2, 0]
    assert [len(s) for s in split(some_pairs(), 0, 42)] == [180, 0]
    assert split([], 0.1, 42) == ([], [])


def test_every_game_keeps_something_to_train_on():
    assert {p.game for p in split(some_pairs(tasks=2), 0.9, 42).train} == {"taboo", "wordle", "chess"}


def test_small_games_make_up_for_each_other():
    pairs = [make_pair(t, game=f"game {g:02}") for g in range(20) for t in range(3)]
    assert len(split(pairs, 0.1, 42).test) == 6


def test_order_does_not_matter_and_the_seed_does():
    pairs = some_pairs()
    assert split(pairs, 0.1, 42) == split(random.Random(0).sample(pairs, len(pairs)), 0.1, 42)
    assert split(pairs, 0.1, 42).test != split(pairs, 0.1, 43).test


def test_rows_without_a_test_side_are_all_train():
    assert set(sides(slim(frame_of(some_pairs())), 0, 42)["split"]) == {"train"}
    assert sides(slim(frame_of([])), 0.1, 42).height == 0


def test_a_first_message_on_both_sides_is_told():
    pairs = [make_pair(t, prompt=(Message("user", f"task {t // 2}"),)) for t in range(10)]
    rows = slim(frame_of(pairs)).with_columns(split=pl.Series(["train", "test"] + ["train"] * 8))
    assert shared(rows).select("game", "train", "test").rows() == [("taboo", 1, 1)]
    assert not shared(sides(slim(frame_of(pairs)), 0.3, 42, "first")).height
