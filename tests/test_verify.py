"""The game's own referee judges both sides at the very state of the move, and says nothing where it cannot know."""

import dataclasses
import json
from pathlib import Path

import pytest
from factories import make_pair

from pairgen.records import Episode, Message, Move, Player, instance_hash, move_id
from pairgen.strategy import Strategy
from pipelines.corrupt import CorruptConfig, policy_of
from pipelines.verdicts import Policy, Verdict, judge, tries_of
from pipelines.verify import Verdicts, ask_referee, owed


@pytest.fixture(scope="module")
def games(server, tmp_path_factory):
    """The demo games' specs and instances by name."""

    async def ask():
        worker = await server.worker()
        cwd = str(tmp_path_factory.mktemp("cwd"))
        found = await worker.ask("", op="catalog", clembench=None, cwd=cwd, selectors=["demo"])
        await worker.close()
        return found["games"]

    found = server.loop.run_until_complete(ask())
    specs = {game["game"]: game["spec"] for game in found}
    rows = {}
    for name, spec in specs.items():
        rows[name] = json.loads((Path(spec["game_path"]) / "in" / "instances.json").read_text())["experiments"][0]
    return specs, rows


@pytest.fixture
def trip(games):
    """A won roundtrip as a rollout records it: one wrong name on the way, then all the right ones."""
    _, rows = games
    experiment = rows["roundtrip"]
    instance = experiment["game_instances"][0]
    stops = instance["stops"]
    task = [experiment["task"].replace("$COUNTRY$", stop["country"]) for stop in stops]
    replies = [f"STOP: {stop['capital']}" for stop in stops]
    prompt = (Message("user", experiment["prompt"].replace("$TASK$", task[0])),)
    moves = []
    for index, reply in enumerate(replies):
        moves.append(Move(index, "Player 1", "Traveller", "m", prompt, reply, reply, "stop", 1, 1, 0, (), ""))
        if index + 1 < len(replies):
            asked = f"{experiment['on_right']}\n\n{task[index + 1]}"
            prompt = (*prompt, Message("assistant", reply), Message("user", asked))
    players, content = (Player("Player 1", "Traveller", "m"),), instance_hash("roundtrip", instance)
    return Episode(
        "roundtrip", experiment["name"], instance["game_id"], 0, 0, "success", 100.0, players, tuple(moves), None,
        content, "", "rollout",
    )  # fmt: skip


@pytest.fixture
def referee(server, games):
    def ask(episode, *texts, move=0, specs=None):
        name = move_id(episode.episode_id, move)
        said = {}
        tries = {episode.episode_id: {(name, text) for text in texts}}
        coroutine = ask_referee(server, games[0] if specs is None else specs, [episode], tries, said.update, lanes=1)
        server.loop.run_until_complete(coroutine)
        return [said.get((name, text)) for text in texts]

    return ask


@pytest.mark.parametrize("move", [0, 1])
def test_a_malformed_reply_is_a_violation_in_the_game_masters_own_words(referee, trip, move):
    own, untagged, wordy = referee(trip, None, "Rome", "STOP: Rome, the eternal city", move=move)
    assert own == Verdict("accepted", "")
    assert untagged.verdict == wordy.verdict == "violation"
    assert "does not start with 'STOP: '" in untagged.reason
    assert "one single name" in wordy.reason


def test_a_wrong_but_well_formed_reply_is_no_violation(referee, trip):
    assert referee(trip, "STOP: Atlantis")[0].verdict == "accepted"


def test_trying_leaves_the_replayed_episode_as_it_was(referee, trip):
    verdicts = referee(trip, *[f"STOP: Nowhere{c}" for c in "abcdefgh"], None, move=1)
    assert {v.verdict for v in verdicts} == {"accepted"}


def test_a_prompt_that_is_not_the_recorded_one_gives_no_verdict(referee, trip):
    moves = (trip.moves[0], dataclasses.replace(trip.moves[1], prompt=(Message("user", "Something else."),)))
    changed = dataclasses.replace(trip, moves=moves)
    (verdict,) = referee(changed, "STOP: Rome", move=1)
    assert verdict.verdict == "unverifiable: diverged"
    assert "move 1" in verdict.reason
    assert referee(changed, "STOP: Rome", move=0)[0].verdict == "accepted"


def test_a_prompt_in_another_order_is_noted(referee, trip):
    words = trip.moves[0].prompt[0].content.split(" ")
    shuffled = (Message("user", " ".join(reversed(words))),)
    changed = dataclasses.replace(trip, moves=(dataclasses.replace(trip.moves[0], prompt=shuffled), *trip.moves[1:]))
    assert referee(changed, "STOP: Rome", "Rome") == [
        Verdict("accepted (order)", ""),
        Verdict("violation (order)", "invalid format: the reply does not start with 'STOP: '"),
    ]


def test_another_instance_under_the_same_number_is_not_asked(referee, trip):
    assert (
        referee(dataclasses.replace(trip, instance_hash="0" * 16), None)[0].verdict == "unverifiable: another instance"
    )
    assert referee(dataclasses.replace(trip, task_id=10**6), None)[0].verdict == "unverifiable: no such instance"
    assert referee(dataclasses.replace(trip, instance_hash=""), None)[0].verdict == "accepted"


def test_a_game_that_is_not_here_is_left_out(referee, trip):
    assert referee(trip, None, specs={}) == [None]


def test_what_was_said_is_kept_for_this_edition_alone(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    Verdicts(path, "one").add({("m", None): Verdict("accepted", ""), ("m", "x"): Verdict("unverifiable: diverged", "")})
    with path.open("a") as handle:
        handle.write('["m", "torn')
    assert Verdicts(path, "one").known == {("m", None): Verdict("accepted", "")}
    assert Verdicts(path, "two").known == {}
    assert owed({"e": {("m", None), ("m", "x")}}, Verdicts(path, "one").known) == {"e": {("m", "x")}}


ACCEPTED, VIOLATION, UNKNOWN = (
    Verdict("accepted (order)", ""),
    Verdict("violation", "why"),
    Verdict("unverifiable: x", "y"),
)


@pytest.mark.parametrize(
    ("chosen", "rejected", "policy", "reason"),
    [
        (ACCEPTED, VIOLATION, Policy(frozenset({"longer"})), ""),
        (ACCEPTED, ACCEPTED, Policy(frozenset({"longer"})), "rejected_accepted"),
        (ACCEPTED, ACCEPTED, Policy(frozenset()), ""),
        (VIOLATION, VIOLATION, Policy(frozenset()), "chosen_violation"),
        (VIOLATION, VIOLATION, Policy(frozenset(), require_accepted=False), ""),
        (UNKNOWN, UNKNOWN, Policy(frozenset({"longer"})), ""),
        (UNKNOWN, UNKNOWN, Policy(frozenset(), require_verified=True), "unverified"),
    ],
)
def test_the_policy_decides_what_is_kept(chosen, rejected, policy, reason):
    pair = make_pair()
    said = {(pair.move_id, None): chosen, (pair.move_id, pair.rejected[0].content): rejected}
    judged = judge([pair], said, policy)
    assert [d.reason for d in judged.drops] == ([reason] if reason else [])
    for kept in judged.kept:
        assert (kept.chosen_verdict, kept.rejected_verdict) == (chosen.verdict, rejected.verdict)
    assert len(judged.kept) + len(judged.drops) == 1


def test_without_an_answer_a_pair_says_so():
    judged = judge([make_pair()], {}, Policy(frozenset()))
    assert {judged.kept[0].chosen_verdict, judged.kept[0].rejected_verdict} == {"unverifiable: no games"}


def test_both_sides_of_each_pair_are_to_be_tried():
    one, two = make_pair(1), make_pair(2)
    assert tries_of([one, two])["e1"] == {("m1", None), ("m1", one.rejected[0].content)}


def test_of_an_aborted_move_the_recorded_reply_is_the_rejected_side():
    pair = make_pair(outcome="aborted")
    chosen, own = (pair.move_id, pair.chosen[0].content), (pair.move_id, None)
    assert tries_of([pair])["e1"] == {chosen, own}
    (kept,) = judge([pair], {chosen: ACCEPTED, own: VIOLATION}, Policy(frozenset())).kept
    assert (kept.chosen_verdict, kept.rejected_verdict) == ("accepted (order)", "violation")


@pytest.mark.parametrize(
    ("chosen", "rejected", "reason"),
    [
        (ACCEPTED, VIOLATION, ""),
        (VIOLATION, VIOLATION, "chosen_violation"),
        (ACCEPTED, ACCEPTED, "rejected_accepted"),
        (UNKNOWN, VIOLATION, "unproven"),
        (ACCEPTED, UNKNOWN, "unproven"),
    ],
)
def test_a_strategy_that_needs_proof_gets_it_whatever_else_is_allowed(chosen, rejected, reason):
    pair = make_pair(strategy="corrected", outcome="aborted")
    said = {(pair.move_id, pair.chosen[0].content): chosen, (pair.move_id, None): rejected}
    lenient = Policy(frozenset(), require_accepted=False, require_proof=frozenset({"corrected"}))
    judged = judge([pair], said, lenient)
    assert [d.reason for d in judged.drops] == ([reason] if reason else [])
    assert len(judged.kept) + len(judged.drops) == 1


def test_strategies_say_which_need_a_violation():
    strategies = {"a": Strategy("a", "", None, requires_violation=True), "b": Strategy("b", "", None)}
    assert policy_of(CorruptConfig(), strategies).require_violation == {"a"}
    assert policy_of(CorruptConfig(require_violation=False), strategies).require_violation == set()
    proven = {"c": Strategy("c", "", None, requires_proof=True)}
    assert policy_of(CorruptConfig(require_violation=False), proven).require_proof == {"c"}
