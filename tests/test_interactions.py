"""Dialogues in the shape of playpen's interactions become episodes whose moves are its assistant's turns."""

import json

import pytest

from pairgen.errors import PairgenError, UsageProblem
from pipelines.interactions import read_interactions


def row(outcome="success", task=3, **meta):
    said = [("user", "Describe it."), ("assistant", "CLUE: red"), ("user", "Wrong."), ("user", "Again."),
            ("assistant", "CLUE: round")]  # fmt: skip
    about = {"game": "taboo", "experiment": "high_en", "task_id": task, "player_name": "Player 1",
             "game_role": "WordDescriber", "model": "m", "outcome": outcome}  # fmt: skip
    return {"messages": [{"role": role, "content": text} for role, text in said], "meta": {**about, **meta}}


def written(tmp_path, *rows, name="interactions.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, rows)) if path.suffix == ".jsonl" else json.dumps(list(rows)))
    return str(path)


@pytest.mark.parametrize("name", ["interactions.jsonl", "interactions.json"])
def test_each_turn_is_a_move_with_the_prompt_before_it(tmp_path, name):
    (episode,) = read_interactions(written(tmp_path, row(), name=name))
    assert (episode.game, episode.experiment, episode.task_id, episode.outcome) == ("taboo", "high_en", 3, "success")
    first, second = episode.moves
    assert [(m.role, m.content) for m in first.prompt] == [("user", "Describe it.")]
    assert (first.reply, second.reply) == ("CLUE: red", "CLUE: round")
    assert (first.player, first.role, first.model) == ("Player 1", "WordDescriber", "m")


def test_two_messages_of_a_user_in_a_row_are_one_as_the_model_saw_them(tmp_path):
    (episode,) = read_interactions(written(tmp_path, row()))
    assert [m.role for m in episode.moves[1].prompt] == ["user", "assistant", "user"]
    assert episode.moves[1].prompt[-1].content == "Wrong.\n\nAgain."


def test_outcomes_have_the_names_that_episodes_have(tmp_path):
    rows = [row("failure"), row("aborted"), row("success"), {"messages": row()["messages"]}]
    outcomes = [e.outcome for e in read_interactions(written(tmp_path, *rows))]
    assert outcomes == ["lose", "aborted", "success", "success"]


def test_rows_of_one_instance_are_its_samples_and_have_ids_of_their_own(tmp_path):
    episodes = read_interactions(written(tmp_path, row(), row(), row(task=4)))
    assert [e.sample for e in episodes] == [0, 1, 0]
    assert len({e.episode_id for e in episodes}) == 3


def test_a_folder_of_files_is_read_whole(tmp_path):
    written(tmp_path, row(), name="a.jsonl")
    written(tmp_path, row(task=4), name="b.json")
    assert [e.task_id for e in read_interactions(str(tmp_path))] == [3, 4]


def test_what_is_no_dialogue_is_named_by_its_row(tmp_path):
    with pytest.raises(PairgenError, match="row 2 is no dialogue"):
        read_interactions(written(tmp_path, row(), {"text": "hello"}))
    with pytest.raises(PairgenError, match="row 1 is no dialogue"):
        read_interactions(written(tmp_path, row("drawn")))


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(UsageProblem, match="is not there"):
        read_interactions(str(tmp_path / "nothing.jsonl"))
    with pytest.raises(UsageProblem, match="holds neither a run nor a file"):
        read_interactions(str(tmp_path))
