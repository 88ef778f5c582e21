"""Rows to imitate: every move of won episodes, evaluation instances kept out, no task on both sides."""

from factories import eval_split, make_episode, make_episodes

from pairgen.records import InstanceKey
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.harvest import Caps
from pipelines.sft_rows import taught


def rows_of(episodes, caps=Caps(0, 0), evaluation=NO_EVAL_SPLIT, test_size=0.2):  # noqa: B008
    return taught(episodes, caps, evaluation, test_size=test_size, seed=42)


def test_every_move_of_a_won_episode_is_a_row_and_none_of_another():
    won, lost = make_episode(task_id=1), make_episode(task_id=2, outcome="lose")
    made = rows_of([won, lost], test_size=0)
    assert {(r.prompt, r.chosen[0].content) for r in made.train} == {(m.prompt, m.reply) for m in won.moves}
    assert len(made.train) == len(won.moves)
    assert {r.rejected for r in made.train} == {()}
    assert made.funnel[0].entered == len(won.moves) + len(lost.moves)


def test_train_and_test_share_no_instance():
    made = rows_of(make_episodes(tasks=10))
    sides = [{(r.game, r.experiment, r.task_id) for r in side} for side in (made.train, made.test)]
    assert sides[0] and sides[1]
    assert not sides[0] & sides[1]
    assert {r.split for r in made.test} == {"test"}


def test_evaluation_instances_are_kept_out_and_counted():
    episodes = make_episodes(tasks=5)
    key = episodes[0].key.instance
    made = rows_of(episodes, evaluation=eval_split(key))
    assert key in {e.key.instance for e in episodes}
    assert key not in {InstanceKey(r.game, r.experiment, r.task_id) for r in (*made.train, *made.test)}
    stage = made.funnel[1]
    assert stage.stage == "decontaminate"
    assert sum(d.count for d in stage.dropped) == stage.entered - stage.kept > 0


def test_caps_bound_the_moves_of_a_player_and_a_game():
    episodes = make_episodes(tasks=5)
    assert len(rows_of(episodes, Caps(1, 0), test_size=0).train) < len(rows_of(episodes, test_size=0).train)
    assert len(rows_of(episodes, Caps(0, 3), test_size=0).train) == 3 * len({e.game for e in episodes})
