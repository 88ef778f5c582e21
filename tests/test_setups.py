"""Instances that take long to set up are set up once; what draws random numbers is set up each time."""

from __future__ import annotations

import random
import time

import pytest

from pairgen.clem import setups
from pairgen.clem.catalog import find_games
from pairgen.clem.setups import Setups
from pairgen.clem.table import Table
from pairgen.clem.worker import Worker


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A worker for hintmatch in this process, with every set-up slow enough to be kept."""
    monkeypatch.setattr(setups, "SLOW_S", -1.0)
    (game,) = find_games(None, str(tmp_path), ["hintmatch"])["games"]
    worker = Worker()
    nobody = {"temperature": 0.0, "max_tokens": 300}
    assert "problem" not in worker.answer(
        {"op": "load", "spec": game["spec"], "label": "m", "sampling": nobody, "results": None}
    )
    return worker, game["instances"]


def begin(worker, key, instance, seed):
    experiment, task_id, _ = instance
    return worker.answer(
        {"op": "begin", "id": key, "experiment": experiment, "task_id": task_id, "seed": seed, "folder": "m"}
    )


def test_a_second_sample_starts_from_a_copy_and_is_asked_the_same(worker, monkeypatch):
    worker, instances = worker
    opened = []
    monkeypatch.setattr(Table, "_open", lambda self, real=Table._open: opened.append(self) or real(self))
    first, second = begin(worker, "a", instances[0], 1), begin(worker, "b", instances[0], 2)
    assert first == second and len(opened) == 1
    begin(worker, "c", instances[1], 1)
    assert len(opened) == 2


def test_samples_that_share_a_set_up_do_not_share_their_play(worker):
    worker, instances = worker
    for key in "abc":
        begin(worker, key, instances[0], 1)
    replies = {key: worker.answer({"op": "reply", "id": key, "text": text, "call": {}})
               for key, text in (("a", "nonsense"), ("b", "HINT: a thing"), ("c", "nonsense"))}  # fmt: skip
    assert replies["a"] == replies["c"] != replies["b"]


def test_what_draws_random_numbers_is_set_up_for_each_seed(worker, monkeypatch):
    worker, instances = worker
    monkeypatch.setattr(Table, "_open", lambda self, real=Table._open: (real(self), self._chance_drawn())[0])
    monkeypatch.setattr(Table, "_chance_drawn", lambda self: draw(self), raising=False)
    for key in "ab":
        begin(worker, key, instances[0], 1)
    assert not worker._setups._kept


def draw(table):
    with table._chance.held():
        random.random()


def test_only_so_many_are_kept(worker):
    worker, instances = worker
    for number in range(setups.MOST + 2):
        begin(worker, str(number), instances[number], 1)
    assert len(worker._setups._kept) == setups.MOST


def test_a_quick_set_up_is_not_kept(worker, monkeypatch):
    monkeypatch.setattr(setups, "SLOW_S", 60.0)
    worker, instances = worker
    started = time.process_time()
    begin(worker, "a", instances[0], 1)
    assert time.process_time() - started < 60 and not worker._setups._kept


def test_a_setup_is_used_under_its_own_key(worker):
    worker, instances = worker
    kept = Setups()
    made = [worker._table(tuple(instances[0][:2]), 1), worker._table(tuple(instances[1][:2]), 1)]
    assert kept.table("x", 1, lambda: made[0]) is made[0]
    kept.open("x", made[0])
    assert kept.table("y", 1, lambda: made[1]) is made[1]
    assert kept.table("x", 2, lambda: made[1]).open() == made[0].open()
