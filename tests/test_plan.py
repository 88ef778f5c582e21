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


def two(**experiments):
    return {**game("g", **experiments), "spec": {"players": 2}}


def duo_plan(games, **options):
    return make_plan(games, **{"limit": 0, "samples": 1, "seed": 1, "label": "m", "partner": "p", **options})


def test_the_learner_changes_sides_over_samples_instances_and_experiments():
    plan = duo_plan([two(easy=2, hard=2)], samples=2)
    sides = {(w.key.experiment, w.key.task_id, w.key.sample): w.learner for w in plan}
    assert [sides["easy", 0, s] for s in (0, 1)] == [0, 1]
    assert [sides["easy", n, 0] for n in (0, 1)] == [0, 1]
    assert [sides["hard", n, 0] for n in (0, 1)] == [1, 0]
    grown = duo_plan([two(easy=2, hard=2)], samples=4)
    assert [w for w in grown if w.key.sample < 2] == plan


def test_two_samples_on_changing_sides_are_one_play_of_each_folder():
    plan = duo_plan([two(easy=1)], samples=4)
    assert [w.duo for w in plan] == ["m--p", "p--m", "m--p.sample1", "p--m.sample1"]
    assert [w.folder for w in plan] == ["m", "m.sample1", "m.sample2", "m.sample3"]


@pytest.mark.parametrize(("learner", "side", "folder"), [("first", 0, "m--p"), ("second", 1, "p--m")])
def test_a_learner_can_be_kept_on_one_side(learner, side, folder):
    plan = duo_plan([two(easy=2)], samples=2, learner=learner)
    assert {w.learner for w in plan} == {side}
    assert [w.duo for w in plan] == [folder, f"{folder}.sample1"] * 2


def test_without_a_partner_or_a_second_player_nobody_changes_sides():
    assert {(w.learner, w.duo) for w in duo_plan([two(easy=2)], partner="")} == {(0, "")}
    assert {(w.learner, w.duo) for w in duo_plan([{**game("g", easy=2), "spec": {"players": 1}}])} == {(0, "")}
