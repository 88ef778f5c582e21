"""Near duplicates: alike in what is asked, in the play so far and in the answer, each for itself."""

import random

import polars as pl
from factories import make_pair
from hypothesis import given, settings
from hypothesis import strategies as st

from pairgen.records import Message
from pipelines.dedup import Limits, repeats
from pipelines.first_prompts import templates_of
from pipelines.likeness import Sketches, exact_name, sketch, words_name
from pipelines.slim import frame_of, slim

WORDS = [f"word{i}" for i in range(400)]
RULES = "You tell a story about the things below.\nThings: {}\nDo not ask anything."


def prose(seed, count=60):
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def told(task, text, things=None, pair_id=None, play=(), **fields):
    prompt = (Message("user", RULES.format(things or f"thing{task}")), *play)
    return make_pair(
        task, prompt=prompt, chosen=(Message("assistant", text),), rejected=(Message("assistant", text + " Ok."),),
        pair_id=pair_id or f"p{task:03}", **fields,
    )  # fmt: skip


def others(count=8):
    return [told(100 + i, prose(1000 + i)) for i in range(count)]


def near(pairs, **limits):
    frame = frame_of(pairs)
    rows = slim(frame)
    found = repeats(rows, Limits(per_completion=0, **limits), frame, templates_of(rows, frame))
    return found.select("pair_id", "reason", "keeper", "score").sort("pair_id").rows()


def test_one_word_more_is_the_same_pair_again_and_names_its_keeper():
    text = prose(1)
    found = near([told(1, text, pair_id="a"), told(1, text + " indeed", pair_id="b"), *others()])
    assert [f[:3] for f in found] == [("b", "near_duplicate", "a")]
    assert 0.9 <= found[0][3] < 1
    assert not near([told(1, text, pair_id="a"), told(1, text + " indeed", pair_id="b"), *others()], near=0)


def test_another_answer_to_the_same_prompt_is_no_duplicate():
    assert not near([told(1, prose(1), pair_id="a"), told(1, prose(2), pair_id="b"), *others()])


def test_the_same_answer_to_another_task_is_no_duplicate_though_the_rules_are_the_same():
    assert not near([told(1, prose(1)), told(2, prose(1)), *others()])


def test_a_long_task_with_one_word_changed_is_nearly_the_same_task():
    things = prose(5, 80)
    changed = things.replace(things.split()[40], "else", 1)
    pairs = [told(1, "yes", things, pair_id="a"), told(2, "yes", changed, pair_id="b"), *others()]
    assert [f[:3] for f in near(pairs)] == [("b", "near_duplicate", "a")]


def test_short_answers_are_compared_exactly():
    things = prose(5, 80)
    pairs = [
        told(1, "GUESS: apple", things, pair_id="a"),
        told(2, "GUESS: apples", things + " x", pair_id="b"),
        *others(),
    ]
    assert not near(pairs)


def test_play_that_went_another_way_is_another_pair():
    def play(seed):
        return (Message("assistant", prose(seed)), Message("user", prose(seed + 1)))

    pairs = [told(1, prose(1), play=play(10), pair_id="a"), told(1, prose(1), play=play(20), pair_id="b"), *others()]
    assert not near(pairs)
    nearly = (play(10)[0], Message("user", prose(11) + " so"))
    pairs[1] = told(1, prose(1), play=nearly, pair_id="b")
    assert [f[:3] for f in near(pairs)] == [("b", "near_duplicate", "a")]


def test_games_roles_and_strategies_are_kept_apart():
    text, more = prose(1), prose(1) + " indeed"
    for field in ("game", "role", "strategy"):
        assert not near([told(1, text, pair_id="a"), told(1, more, pair_id="b", **{field: "another"}), *others()])
    pairs = [told(1, text, pair_id="a"), told(1, more, pair_id="b", strategy="another"), *others()]
    assert [f[0] for f in near(pairs, across_strategies=True)] == ["b"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30), st.randoms())
def test_the_order_never_matters_and_every_keeper_stays(drawn, chance):
    pairs = [
        told(task, prose(task) + " so" * extra, prose(50 + task, 60), pair_id=f"p{i:02}")
        for i, (task, extra) in enumerate(drawn)
    ]
    found = near(pairs)
    assert found == near(chance.sample(pairs, len(pairs)))
    gone = {f[0] for f in found}
    assert not gone & {f[2] for f in found} and {f[2] for f in found} <= {p.pair_id for p in pairs}


def test_likeness_is_about_the_share_of_common_triples():
    text = prose(1, 200)
    words = text.split()
    half = " ".join(words[:100]) + " " + prose(2, 100)
    sketches = Sketches([text, text.upper(), half, prose(3, 200), "short"])
    alike = sketches.alike(0, pl.Series([1, 2, 3, 4]).to_numpy())
    assert alike[0] == 1 and 0.2 < alike[1] < 0.5 and alike[2] < 0.05 and alike[3] == 0


def test_a_list_and_a_grid_have_no_sketch_and_prose_has_one():
    assert sketch("CLUE: apple") is None
    assert sketch("\n".join("x x o x x" for _ in range(30))) is None
    assert sketch(prose(1)) is not None


def test_names_ignore_case_and_space_and_words_their_order():
    assert exact_name("A  b\nc") == exact_name("a B c") != exact_name("a c b")
    words = prose(1).split()
    assert words_name(" ".join(words)) == words_name(" ".join(reversed(words))) != 0
    assert words_name("a b c") == 0
