"""A pair set as slim rows: equal texts have equal hashes, and batches hand out exactly the wanted rows."""

import dataclasses

import polars as pl
import pytest
from factories import make_pair

from pairgen.records import Message
from pipelines.first_prompts import first_of
from pipelines.slim import (
    decisions,
    first_text,
    frame_of,
    later_text,
    once,
    parted,
    said,
    slim,
    texts,
    without,
)

TALK = (Message("system", "s"), Message("user", "first"), Message("assistant", "a"), Message("user", "second"))


def some():
    return [
        make_pair(1, pair_id="a"),
        make_pair(1, pair_id="b", prompt=TALK),
        make_pair(2, pair_id="c", prompt=TALK[:2]),
        make_pair(3, pair_id="d", prompt=(Message("system", "s\nfirst"),)),
    ]


def test_rows_keep_their_order_and_equal_texts_have_equal_hashes():
    rows = slim(frame_of(some()))
    assert rows["row"].to_list() == [0, 1, 2, 3] and rows["pair_id"].to_list() == ["a", "b", "c", "d"]
    assert rows["chosen"][0] == rows["chosen"][1] != rows["chosen"][2]
    assert rows["first"][1] == rows["first"][2] and len(set(rows["prompt"])) == 4
    assert rows["turns"].to_list() == [1, 4, 2, 1]
    assert rows["chosen_chars"].to_list() == [len(p.chosen[0].content) for p in some()]


def test_a_text_said_by_another_role_is_another_text():
    other = dataclasses.replace(some()[0], prompt=(Message("assistant", some()[0].prompt[0].content),))
    rows = slim(frame_of([some()[0], other]))
    assert rows["prompt"][0] != rows["prompt"][1]


def test_a_parquet_file_gives_the_same_rows_as_a_list(tmp_path):
    frame_of(some()).collect().write_parquet(tmp_path / "pairs.parquet")
    scanned = pl.scan_parquet(tmp_path / "pairs.parquet")
    assert slim(scanned).equals(slim(frame_of(some())))


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_texts_come_for_the_wanted_rows_alone(batch):
    found = pl.concat(texts(frame_of(some()), pl.Series([3, 1]), ["pair_id", said("chosen").alias("text")], batch))
    assert found["row"].to_list() == [1, 3] and found["pair_id"].to_list() == ["b", "d"]
    assert found["text"].to_list() == [some()[i].chosen[0].content for i in (1, 3)]


def test_the_first_prompt_ends_with_the_first_user_message_and_play_follows():
    found = frame_of(some()).select(first_text().alias("first"), later_text().alias("later")).collect()
    assert found["first"].to_list() == [first_of(p.prompt) for p in some()]
    assert found["first"][1] == "s\nfirst"
    assert [bool(text) for text in found["later"]] == [False, True, False, False]
    assert "second" in found["later"][1] and "first" not in found["later"][1]


def test_a_decision_becomes_a_drop_that_names_its_keeper():
    pairs = some()
    rows = slim(frame_of(pairs))
    made = decisions(rows.filter(pl.col("row") == 2).with_columns(keeper=pl.lit("a"), score=pl.lit(0.95)), "alike")
    kept, drops = parted(pairs, made, "dedup")
    assert [p.pair_id for p in kept] == without(rows, made)["pair_id"].to_list() == ["a", "b", "d"]
    assert (drops[0].item_id, drops[0].kept_id, drops[0].score, drops[0].task_id) == ("c", "a", 0.95, 2)


def test_a_shared_text_is_looked_at_once():
    assert once(slim(frame_of(some())), "chosen")["pair_id"].to_list() == ["a", "c", "d"]
