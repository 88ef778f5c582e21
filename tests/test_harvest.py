"""Which moves are worth teaching, which are not and why, and that no order of the input changes it."""

import dataclasses
import random
from collections import Counter

import pytest
from factories import make_episode, make_episodes, make_move

from pairgen.records import Message
from pipelines.harvest import PEERS_PER_ROLE, Caps, find_peers, find_rivals, harvest, harvest_aborted

ALL = Caps(0, 0)


def reasons(result):
    return Counter(d.reason for d in result.drops)


def one_move(**fields):
    return [make_episode(moves=[make_move(0, **fields)])]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"violation": "no CLUE tag"}, "violation"),
        ({"finish_reason": "length"}, "unfinished"),
        ({"finish_reason": ""}, "unfinished"),
        ({"finish_reason": "pseudo"}, "pseudo"),
        ({"model": "programmatic"}, "programmatic"),
        ({"reply": " \n"}, "empty"),
        ({"prompt": ()}, "empty"),
        ({"reply": "half a pair \ud83d"}, "not_text"),
    ],
)
def test_a_move_that_is_not_worth_teaching_is_dropped_with_its_reason(fields, reason):
    episodes = one_move()
    episodes[0] = dataclasses.replace(episodes[0], moves=(dataclasses.replace(episodes[0].moves[0], **fields),))
    result = harvest(episodes, ALL, 42)
    assert (result.kept, [d.reason for d in result.drops]) == ([], [reason])


@pytest.mark.parametrize("outcome", ["lose", "aborted", "error", "unscored"])
def test_moves_of_episodes_that_were_not_won_are_dropped_by_outcome(outcome):
    assert reasons(harvest([make_episode(outcome=outcome)], ALL, 42)) == {f"outcome_{outcome}": 6}


def test_the_reason_of_the_game_master_is_kept_and_can_be_written():
    drop = harvest(one_move(violation="said \udce4 twice"), ALL, 42).drops[0]
    assert drop.detail == "said ? twice"


def test_an_unknown_finish_is_kept_and_counted():
    episodes = [*one_move(finish_reason="unknown"), make_episode(task_id=2, moves=1)]
    result = harvest(episodes, ALL, 42)
    assert (len(result.kept), result.unknown_finish) == (2, 1)


def test_kept_and_dropped_are_the_input():
    episodes = [
        *make_episodes(tasks=7),
        *make_episodes(tasks=3, outcome="lose", sample=1),
        make_episode(task_id=50, moves=[make_move(0, violation="x"), make_move(1)]),
    ]
    for caps in (ALL, Caps(), Caps(1, 5), Caps(2, 10)):
        result = harvest(episodes, caps, 42)
        assert result.entered == sum(len(e.moves) for e in episodes)
        assert len(result.kept) + len(result.drops) == result.entered
        assert len({w.move_id for w in result.kept} | {d.item_id for d in result.drops}) == result.entered


def test_the_caps_hold_and_are_named():
    episodes = [*make_episodes(tasks=5), *make_episodes(tasks=5, sample=1, source="again")]
    seats = Counter((w.episode.episode_id, w.move.player) for w in harvest(episodes, Caps(2, 0), 42).kept)
    assert set(seats.values()) == {2}
    by_game = harvest(episodes, Caps(0, 7), 42)
    assert Counter(w.episode.game for w in by_game.kept) == {"taboo": 7, "wordle": 7}
    assert set(reasons(by_game)) == {"cap_per_game"}
    assert set(reasons(harvest(episodes, Caps(2, 7), 42))) == {"cap_per_player", "cap_per_game"}


def test_a_cap_takes_evenly_from_what_there_is():
    episodes = [make_episode(t, experiment=e) for e in ("high", "low", "rare") for t in range(1 if e == "rare" else 9)]
    kept = harvest(episodes, Caps(0, 12), 42).kept
    assert Counter(w.episode.experiment for w in kept) == {"high": 4, "low": 4, "rare": 4}
    assert len({w.episode.task_id for w in kept if w.episode.experiment == "high"}) == 4


def test_the_order_of_episodes_does_not_matter_and_the_seed_does():
    episodes = make_episodes(tasks=8)
    shuffled = random.Random(1).sample(episodes, len(episodes))
    first, second = (harvest(e, Caps(1, 5), 42) for e in (episodes, shuffled))
    assert first == second
    other = harvest(episodes, Caps(1, 5), 43)
    assert {w.move_id for w in other.kept} != {w.move_id for w in first.kept}


def test_evaluation_instances_do_not_use_up_the_room_of_others():
    episodes = make_episodes(["taboo"], tasks=10)
    kept = harvest(episodes, Caps(0, 20), 42, lambda e: e.task_id < 6).kept
    assert {w.episode.task_id for w in kept} == {6, 7, 8, 9}


def test_the_same_episode_in_two_runs_counts_once():
    result = harvest([make_episode(), make_episode()], ALL, 42)
    assert (len(result.kept), reasons(result)) == (6, {"repeated_episode": 6})


def aborted(task_id=1, **fields):
    moves = [make_move(0), make_move(1), make_move(2, reply="Bad!", violation="no tag")]
    return make_episode(task_id, **{"outcome": "aborted", "moves": moves, **fields})


def test_of_aborted_episodes_the_illegal_last_move_is_kept_and_nothing_else():
    result = harvest_aborted([aborted(), make_episode(2), make_episode(3, outcome="lose")], ALL, 42)
    assert [(w.move.reply, w.episode.outcome) for w in result.kept] == [("Bad!", "aborted")]
    assert (result.entered, reasons(result)) == (3, {"before_abort": 2})
    assert {d.stage for d in result.drops} == {"harvest_aborted"}


def test_an_abort_that_no_move_can_be_corrected_for_is_told():
    episodes = [
        aborted(1, moves=[make_move(0)]),
        aborted(2, moves=[make_move(0, violation="x", finish_reason="length")]),
        aborted(3, moves=[make_move(0, violation="x", model="programmatic")]),
        aborted(4, moves=[make_move(0, violation="x", reply="a\ud800")]),
        aborted(5), aborted(5),
    ]  # fmt: skip
    result = harvest_aborted(episodes, ALL, 42)
    assert reasons(result) == {
        "no_violation": 1, "unfinished": 1, "programmatic": 1, "not_text": 1, "before_abort": 2, "repeated_episode": 3,
    }  # fmt: skip
    assert result.entered == len(result.kept) + len(result.drops)


def test_caps_hold_for_aborted_moves_and_evaluation_instances_come_last():
    episodes = [aborted(t) for t in range(10)]
    caps = Caps(2, 4)
    result = harvest_aborted(episodes, caps, 42, lambda e: e.task_id < 6)
    assert {w.episode.task_id for w in result.kept} == {6, 7, 8, 9}
    assert result == harvest_aborted(episodes[::-1], caps, 42, lambda e: e.task_id < 6)
    assert reasons(result)["cap_per_game"] == 6


def test_peers_are_the_accepted_replies_of_a_role_in_every_episode_without_an_error():
    episodes = [
        make_episode(1, moves=[make_move(0, reply="b"), make_move(1, reply="guess"), make_move(2, reply="a")]),
        make_episode(2, outcome="lose", moves=[make_move(0, reply="c")]),
        make_episode(3, outcome="error", moves=[make_move(0, reply="never")]),
        make_episode(4, moves=[make_move(0, reply="bad", violation="x"), make_move(2, reply="b")]),
        make_episode(5, moves=[make_move(0, reply="put in its mouth", finish_reason="pseudo")]),
    ]
    assert find_peers(episodes, 42) == {("taboo", "Giver"): ("a", "b", "c"), ("taboo", "Guesser"): ("guess",)}


def test_peers_are_bounded_whatever_the_order():
    moves = [make_move(0, reply=f"reply {i}") for i in range(PEERS_PER_ROLE + 100)]
    peers = [find_peers([make_episode(moves=m)], 42)["taboo", "Giver"] for m in (moves, moves[::-1])]
    assert peers[0] == peers[1] == tuple(sorted(peers[0]))
    assert len(peers[0]) == PEERS_PER_ROLE


def test_peers_borrow_nothing_from_evaluation_instances_where_others_are_there():
    train = make_episode(1, moves=[make_move(0, reply="train")])
    evaluation = make_episode(2, moves=[make_move(0, reply="secret"), make_move(1, reply="only here")])
    peers = find_peers([train, evaluation], 42, lambda e: e.task_id == 2)
    assert peers == {("taboo", "Giver"): ("train",), ("taboo", "Guesser"): ("only here",)}


def test_the_prompt_is_kept_as_it_was_sent():
    prompt = (Message("system", "s"), Message("user", "a"), Message("user", "b"))
    episode = make_episode(moves=[dataclasses.replace(make_move(0), prompt=prompt)])
    assert harvest([episode], ALL, 42).kept[0].move.prompt == prompt


def test_a_partners_moves_are_left_out_whatever_they_are():
    seats = tuple(dataclasses.replace(p, learner=i == 0) for i, p in enumerate(make_episode().players))
    won, lost = make_episode(players=seats), make_episode(2, players=seats, outcome="lose")
    assert reasons(harvest([won], ALL, 42)) == {"partner": 3}
    assert reasons(harvest([lost], ALL, 42)) == {"partner": 3, "outcome_lose": 3}
    peers = find_peers([won], 42)
    assert set(peers) == {("taboo", "Giver")}
    assert len(find_rivals([lost])) == 3
    assert find_rivals([dataclasses.replace(lost, outcome="aborted")]) == {}
