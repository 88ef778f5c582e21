"""The benchmarks count what they say they count, on sets and games small enough to know the answer."""

import importlib.util
from pathlib import Path

import pytest
from factories import make_episodes, make_pair
from test_verify import games, trip  # noqa: F401 (fixtures)

from pairgen.records import Message, move_id
from pipelines.funnel import drop_pair

FOLDER = Path(__file__).parent.parent / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


evidence, surfaces, verify = load("evidence"), load("surfaces"), load("verify")
report = load("report")


def cells(lines):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def test_pairs_and_drops_add_up_to_the_tries_of_a_game_and_strategy():
    pairs = [make_pair(1), make_pair(2, chosen_verdict="unverifiable: diverged", rejected_verdict="accepted (order)")]
    drops = [drop_pair(make_pair(3), "verify", "rejected_accepted"), drop_pair(make_pair(4), "dedup", "duplicate")]
    (row,) = cells(evidence.made(evidence.Evidence(pairs, drops)))
    assert row == ["taboo", "longer", "4", "2", "1 / 0 / 1", "1 / 1 / 0", "1 duplicate, 1 rejected_accepted"]


def test_a_chosen_side_that_is_not_accepted_is_listed_with_its_cause():
    drops = [drop_pair(make_pair(3), "verify", "chosen_violation", "no tag")]
    told, *rest = evidence.chosen(evidence.Evidence([make_pair(n) for n in range(3)], drops))
    assert "75.0%" in told and "misses: 1" in told
    assert cells(rest) == [["taboo", "high_en", "3", "0", "longer", "no tag"]]


def test_replays_that_diverge_are_counted_by_episode_with_their_cause():
    lost = {"chosen_verdict": "unverifiable: diverged", "chosen_reason": "move 1 is asked otherwise"}
    pairs = [make_pair(1), make_pair(1, strategy="x"), make_pair(2, **lost), make_pair(2, strategy="x", **lost)]
    (row,) = cells(evidence.diverged(evidence.Evidence(pairs, [])))
    assert row[:5] == ["taboo", "2", "0", "1", "50.0%"] and "1 unverifiable: diverged (move 1" in row[5]


def test_violations_are_shared_out_among_what_was_judged():
    pairs = [make_pair(1), make_pair(2, rejected_verdict="unverifiable: no games")]
    drops = [drop_pair(make_pair(3), "verify", "rejected_accepted")]
    rows = cells(evidence.broken(evidence.Evidence(pairs, drops), ["longer"]))
    assert rows[-1] == ["longer", "all", "3", "2", "66.7%", "1", "0", "1", "100.0%"]


@pytest.mark.parametrize(
    ("rejected", "added"),
    [
        ("CLUE: a red fruit. I hope\n this helps!", ". I hope this helps!"),
        ("Sure, here it is:\nCLUE: a red fruit", "Sure, here it is:"),
        ("CLUE: I think a red fruit", "I think"),
    ],
)
def test_a_surface_is_what_was_added(rejected, added):
    assert surfaces.surface(surfaces.Sides("CLUE: a red fruit", rejected)) == added


def test_surfaces_are_counted_beside_length_ratios():
    pairs = [surfaces.Sides("word", f"word{tail}") for tail in (" so.", " So!", " well", " so.")]
    row = surfaces.measure("set", pairs)
    assert row[:6] == ("set", "4", "3", "50.0%", "2", "75.0%")
    assert row[6:] == ("2.00", "2.00", "2.00", "2.06", "2.25")


def test_as_many_seeds_are_taken_as_the_pairs_need():
    pairs, moves, seeds = surfaces.collect(make_episodes(["taboo"], tasks=2, moves=4), 20)
    assert (len(pairs), moves, seeds) == (20, 8, 3)
    with pytest.raises(SystemExit, match="no move that was won"):
        surfaces.collect(make_episodes(tasks=1, outcome="lose"), 20)


def test_verification_is_timed_both_ways_on_the_same_game(server, games, trip):  # noqa: F811
    known = {"game": "roundtrip", "episode_id": trip.episode_id, "move_id": move_id(trip.episode_id, 1)}
    pairs = [make_pair(n, rejected=(Message("assistant", f"Rome {n}"),), **known) for n in range(20)]

    def measured(*episodes):
        spec = games[0]["roundtrip"]
        return server.loop.run_until_complete(verify.measure(server, spec, episodes, pairs, 10, 2))

    speed = measured(trip)
    assert (speed.game, speed.episodes, speed.pairs, speed.sample) == ("roundtrip", 1, 20, 10)
    assert len(speed.together) == len(speed.apart) == 2 and sum(speed.apart) > 0
    rows = verify.rows_of([speed._replace(together=[1.0, 2.0, 9.0], apart=[5.0])])
    assert rows[-1] == ("all", 1, 20, "10.0", "2.0", "5.0")


def test_copies_of_pairs_differ_and_go_on_from_each_other_as_the_real_ones_do():
    first = (Message("user", "Rules of the game."),)
    second = (*first, Message("assistant", "several words that are said"), Message("user", "another word please"))
    real = [make_pair(1, prompt=first, chosen=(second[1],), split="train"), make_pair(1, prompt=second, split="train")]
    made = list(report.copies(real, 200))
    assert made[:2] == real and len({p.pair_id for p in made}) == 200
    assert all(
        later.prompt[:2] == (*early.prompt, *early.chosen) for early, later in zip(made[::2], made[1::2], strict=True)
    )
    assert len({p.chosen for p in made[::2]}) > 5
