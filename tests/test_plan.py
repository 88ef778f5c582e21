"""A plan covers what was asked for, the same on every machine; long games are begun first."""

import pytest

from pairgen.records import EpisodeKey
from pipelines.plan import Queue, Work, label_of, make_plan


def game(name, **experiments):
    rows = [[experiment, i, "h"] for experiment, n in experiments.items() for i in range(n)]
    return {"game": name, "instances": rows}


def test_a_limit_takes_from_the_experiments_in_turn():
    plan = make_plan([game("g", easy=3, hard=1)], limit=3, samples=1, seed=1, label="m")
    assert [w.key for w in plan] == [EpisodeKey("g", e, t, 0) for e, t in [("easy", 0), ("hard", 0), ("easy", 1)]]


def test_samples_have_their_own_seeds_and_folders():
    plan = make_plan([game("g", easy=2)], limit=0, samples=3, seed=1, label="m")
    assert len({w.seed for w in plan}) == 6
    assert [w.folder for w in plan[:3]] == ["m", "m.sample1", "m.sample2"]


def test_a_seed_depends_on_the_episode_alone():
    alone = make_plan([game("g", easy=1)], limit=0, samples=1, seed=1, label="m")[0]
    among = make_plan([game("f", easy=5), game("g", easy=1)], limit=0, samples=1, seed=1, label="m")[-1]
    assert alone == among
    assert make_plan([game("g", easy=1)], limit=0, samples=1, seed=2, label="m")[0].seed != alone.seed


@pytest.mark.parametrize(
    ("model", "label"),
    [("org/Model-7B", "Model-7B"), ("/a/b/", "b"), ("x--y", "x-y"), ("a b:c", "a_b_c"), ("", "model")],
)
def test_a_label_is_a_folder_name_that_clemcore_can_take_apart(model, label):
    assert label_of(model) == label


def test_games_take_turns_until_their_length_is_known_then_long_ones_go_first():
    plan = [Work(EpisodeKey(g, "e", i, 0), 0, "m") for g in ("long", "short") for i in range(4)]
    queue = Queue(plan)
    assert [queue.next().key.game for _ in range(2)] == ["long", "short"]
    queue.learn("short", 1)
    queue.learn("long", 20)
    assert [queue.next().key.game for _ in range(6)] == ["long"] * 3 + ["short"] * 3
    assert queue.next() is None
    assert len(queue) == 0
