"""Rules that read no prompt: learned on train, measured on test; and thinning until the length rule fails."""

import random

import pytest
from factories import make_pair
from hypothesis import given, settings
from hypothesis import strategies as st

from pairgen.records import Message
from pipelines.audit import Sides, audit, audit_sides
from pipelines.slim import frame_of, slim, without
from pipelines.split import sides
from pipelines.thin import length_rule, thin

WORDS = [f"w{i}" for i in range(300)]
SUFFIXES = (" That is sound.", " It follows the rules.", " No word was forbidden.")


def words(chance, count=6):
    return " ".join(chance.choices(WORDS, k=count))


def rules(make, count=200):
    chance = random.Random(1)
    drawn = [make(chance) for _ in range(count)]
    return {s.rule: s for s in audit_sides("", drawn[: count * 4 // 5], drawn[count * 4 // 5 :])}


def test_filler_at_the_end_is_found_by_length_ending_and_gram():
    def filled(chance):
        text = words(chance) + "."
        return Sides(text, text + chance.choice(SUFFIXES))

    found = rules(filled)
    assert {name: s.test for name, s in found.items()} == dict.fromkeys(
        ("longer", "punctuation", "ending", "n_gram"), 1
    )
    assert len(found["ending"].found) == 3 and found["longer"].tells == "is the longer"


def test_sides_that_differ_in_nothing_a_rule_sees_are_a_coin_toss():
    found = rules(lambda chance: Sides(words(chance), words(chance)), 2000)
    assert all(0.4 < s.test < 0.6 and s.majority == 0.5 for s in found.values())


def test_a_rule_may_point_the_other_way():
    found = rules(lambda chance: Sides(words(chance, 9) + ".", words(chance, 2)))
    assert found["longer"].test == 1 and found["longer"].tells == "is the shorter"
    assert found["punctuation"].tells == "has less punctuation"


def test_what_marks_the_chosen_side_counts_too():
    found = rules(lambda chance: Sides("GUESS: " + words(chance), words(chance, 8)))
    assert found["n_gram"].test == 1 and any(text.startswith("not ") for text in found["n_gram"].found)


def test_what_train_does_not_show_is_not_learned():
    train = [Sides(f"w{i}", f"w{i} end") for i in range(50)]
    test = [Sides(f"w{i}", f"w{i} other") for i in range(50)]
    assert {s.rule: s.test for s in audit_sides("", train, test)}["ending"] == 0.5
    assert audit_sides("", [], test) == []


def test_tokens_are_looked_at_where_they_were_counted():
    counted = [Sides("aaaa", "bb", 1, 2)] * 10
    found = {s.rule: s for s in audit_sides("", counted, counted)}
    assert found["longer_tokens"].tells == "has more tokens" and found["longer"].tells == "is the shorter"
    assert "longer_tokens" not in {s.rule for s in audit_sides("", [Sides("a", "b")], [])}


def pair(task, chosen, rejected, **fields):
    return make_pair(task, chosen=(Message("assistant", chosen),), rejected=(Message("assistant", rejected),), **fields)


def test_each_strategy_is_measured_and_all_together():
    pairs = [
        pair(t, "x" * 9, "x" * (3 if s == "brief" else 19), strategy=s) for t in range(30) for s in ("brief", "long")
    ]
    frame = frame_of(pairs)
    rows = sides(slim(frame), 0.2, 42)
    found = {(s.strategy, s.rule): s for s in audit(rows, frame)}
    assert found["long", "longer"].test == found["brief", "longer"].test == 1 and found["", "longer"].test == 0.5
    assert found["", "longer"].train_pairs + found["", "longer"].test_pairs == 60
    assert audit(rows, frame, sample=5)[0].train_pairs == 5
    assert audit(rows.sample(fraction=1.0, shuffle=True, seed=1), frame) == audit(rows, frame)


def lengths(drawn):
    return sides(
        slim(frame_of(pair(t, "x" * c, "x" * r, pair_id=f"p{t:03}") for t, (c, r) in enumerate(drawn))), 0.0, 1
    )


def test_thinning_takes_the_most_unlike_pairs_until_the_rule_fails():
    rows = lengths([(10, 11)] * 5 + [(10, 90)] * 5 + [(20, 10)] * 4)
    made = thin(rows, 0.6)
    kept = without(rows, made.decided)
    assert length_rule(rows) == pytest.approx(10 / 14) and length_rule(kept) <= 0.6
    assert made.decided.height == made.sides[0].removed == 4
    assert all(int(name[1:]) in range(5, 10) for name in made.decided["pair_id"])


def test_thinning_the_shorter_side_works_as_well():
    rows = lengths([(20, 10)] * 9 + [(10, 20)])
    assert 1 - length_rule(without(rows, thin(rows, 0.75).decided)) <= 0.75


def test_where_no_pair_goes_against_the_rule_nothing_is_taken_and_the_need_is_told():
    made = thin(lengths([(10, 20)] * 8), 0.8)
    assert not made.decided.height and made.sides[0].after == 1 and made.sides[0].missing == 2


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=40),
    st.sampled_from([0.55, 0.6, 0.75, 0.8, 0.9]),
)
def test_thinning_reaches_the_limit_or_says_what_is_missing(drawn, limit):
    rows = lengths(drawn)
    made = thin(rows, limit)
    kept = without(rows, made.decided)
    assert kept.height + made.decided.height == rows.height and kept.height
    right = max(length_rule(rows), 1 - length_rule(rows))
    for side in made.sides:
        assert side.removed == made.decided.height and side.after <= side.before
        assert side.after <= limit + 1e-9 or side.missing
        assert side.before == pytest.approx(right)
