"""Records keep what they hold through dictionaries, parquet files and data sets."""

import dataclasses

import pytest

from pairgen.records import (
    Drop,
    Episode,
    EpisodeKey,
    EpisodeRow,
    Fault,
    Message,
    Move,
    MoveRow,
    Pair,
    Player,
    TrainRow,
    content_id,
    episode_row,
    from_dict,
    hub_features,
    instance_hash,
    move_rows,
    polars_schema,
    to_dict,
)
from pairgen.store import TableWriter, arrow_schema, read_table

PROMPT = (Message("system", "Play."), Message("user", "Say A.\n\u2028 naïve 你好 ‮"))


def move(index=0, **changes):
    move = Move(index, "Player 1", "Speaker", "m", PROMPT, "A", " A ", "stop", 12, 1, 0, (65, 2), "")
    return dataclasses.replace(move, **changes)


def episode(**changes):
    players = (Player("Player 1", "Speaker", "m"), Player("Player 2", "Judge", "programmatic"))
    base = Episode("g", "e", 3, 0, 7, "success", 50.0, players, (move(),), None, "h", "3.7.2", "rollout")
    return dataclasses.replace(base, **changes)


def test_an_episode_survives_its_dictionary():
    original = episode(fault=Fault("timeout", "slow", 1), outcome="error", main_score=None)
    assert from_dict(Episode, to_dict(original)) == original


@pytest.mark.parametrize(
    ("change", "error"),
    [({"task_id": "3"}, TypeError), ({"moves": None}, TypeError), ({"main_score": "50"}, TypeError)],
)
def test_a_value_of_another_kind_is_refused(change, error):
    with pytest.raises(error):
        from_dict(Episode, {**to_dict(episode()), **change})


def test_a_missing_field_is_refused_and_a_new_one_ignored():
    data = to_dict(episode())
    assert from_dict(Episode, {**data, "later": 1}) == episode()
    del data["seed"]
    with pytest.raises(KeyError, match="seed"):
        from_dict(Episode, data)


def test_a_partners_seat_is_a_field_and_older_records_know_only_learners():
    seats = (Player("Player 1", "Speaker", "m"), Player("Player 2", "Judge", "p", learner=False))
    theirs = episode(players=seats, moves=(move(), move(1, player="Player 2", model="p")))
    assert theirs.partners == {"Player 2"}
    assert from_dict(Episode, to_dict(theirs)) == theirs
    assert [row.learner for row in move_rows(theirs)] == [True, False]
    data = to_dict(episode())
    for player in data["players"]:
        del player["learner"]
    assert from_dict(Episode, data) == episode()


@pytest.mark.parametrize("cls", [Pair, TrainRow, Drop, MoveRow, EpisodeRow], ids=lambda c: c.__name__)
def test_polars_arrow_and_hub_agree_on_every_schema(cls):
    names = [f.name for f in dataclasses.fields(cls)]
    assert list(polars_schema(cls)) == names
    assert list(hub_features(cls)) == names
    assert hub_features(cls).arrow_schema.remove_metadata().equals(arrow_schema(cls))


@pytest.mark.parametrize(("cls", "row"), [(MoveRow, next(move_rows(episode()))), (EpisodeRow, episode_row(episode()))])
def test_a_row_survives_parquet_and_the_data_set(cls, row, tmp_path):
    import datasets

    with TableWriter(tmp_path / "t.parquet", cls) as table:
        table.write(row)
    assert read_table(tmp_path / "t.parquet", cls) == [row]
    loaded = datasets.load_dataset("parquet", data_files=str(tmp_path / "t.parquet"), cache_dir=str(tmp_path / "c"))
    assert loaded["train"].features == hub_features(cls)
    assert from_dict(cls, loaded["train"][0]) == row


def test_ids_are_the_same_on_every_machine():
    assert content_id("a", 1, None) == content_id("a", 1, None) == "153c46a9588fd9b6"
    assert content_id("a", 1) != content_id("a", "1")


def test_an_episode_is_named_by_what_was_said():
    assert episode().episode_id == episode(main_score=1.0).episode_id
    assert episode().episode_id != episode(moves=(move(reply="B"),)).episode_id
    assert episode().key == EpisodeKey("g", "e", 3, 0)


def test_an_instance_is_named_by_what_it_asks():
    assert instance_hash("g", {"game_id": 1, "word": "x"}) == instance_hash("g", {"word": "x", "game_id": 2})
    assert instance_hash("g", {"game_id": 1, "word": "x"}) != instance_hash("g", {"game_id": 1, "word": "y"})
