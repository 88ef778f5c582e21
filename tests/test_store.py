"""A run folder loses nothing but the line that a crash tore, and is written by one process at a time."""

import json
import multiprocessing
from pathlib import Path

import pytest
from test_records import PROMPT, episode, move

from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Message, MoveRow
from pairgen.store import (
    JOURNAL,
    Journal,
    TableWriter,
    claim_folder,
    lock_folder,
    read_episodes,
    read_journal,
    write_json,
    write_tables,
)


def journal_of(folder, *episodes):
    journal = Journal(folder)
    journal.append(*episodes)
    journal.close()


def long_game(moves=40):
    prompt, made = PROMPT, []
    for index in range(moves):
        made.append(move(index, prompt=prompt, reply=f"move {index}"))
        prompt = (*prompt, Message("assistant", f"move {index}"), Message("user", f"go on {index} " + "x" * 500))
    return episode(moves=tuple(made))


def test_what_was_journaled_is_read_back(tmp_path):
    episodes = [episode(task_id=2), long_game(), episode(task_id=1, moves=())]
    journal_of(tmp_path, *episodes)
    assert list(read_journal(tmp_path)) == episodes
    assert [e.task_id for e in read_episodes(tmp_path)] == [1, 2, 3]


def test_a_long_game_takes_linear_space(tmp_path):
    short, long = tmp_path / "short", tmp_path / "long"
    for folder, moves in ((short, 20), (long, 80)):
        folder.mkdir()
        journal_of(folder, long_game(moves))
    sizes = [(folder / JOURNAL).stat().st_size for folder in (short, long)]
    assert 3.5 < sizes[1] / sizes[0] < 4.5


def test_a_prompt_that_does_not_go_on_from_the_last_one_is_kept_whole(tmp_path):
    other = (Message("user", "A new start."),)
    odd = episode(moves=(move(0), move(1, prompt=other), move(2, player="Player 2"), move(3, prompt=PROMPT)))
    journal_of(tmp_path, odd)
    assert list(read_journal(tmp_path)) == [odd]


@pytest.mark.parametrize("cut", [1, 5, 50, 200])
def test_a_torn_last_line_is_left_out_and_then_written_over(tmp_path, cut):
    journal_of(tmp_path, episode(task_id=1), episode(task_id=2))
    path = tmp_path / JOURNAL
    path.write_bytes(path.read_bytes()[:-cut])
    assert [e.task_id for e in read_journal(tmp_path)] == [1]
    journal_of(tmp_path, episode(task_id=5))
    assert [e.task_id for e in read_journal(tmp_path)] == [1, 5]


def test_a_bad_line_in_the_middle_is_named(tmp_path):
    journal_of(tmp_path, episode(task_id=1))
    with (tmp_path / JOURNAL).open("a") as handle:
        handle.write('{"schema": 1, "game": "g"}\n')
    journal_of(tmp_path, episode(task_id=2))
    with pytest.raises(PairgenError, match="line 2 cannot be read .*remove that line"):
        list(read_journal(tmp_path))


def test_a_damaged_import_is_imported_again(tmp_path):
    journal_of(tmp_path, episode(task_id=1))
    (tmp_path / JOURNAL).write_text("{}\n")
    (tmp_path / "run.json").write_text('{"command": "import", "config": {}}')
    with pytest.raises(PairgenError, match="line 1 cannot be read .*import the results again with --overwrite"):
        list(read_journal(tmp_path))


def test_a_journal_from_before_there_were_partners_is_read(tmp_path):
    journal_of(tmp_path, episode())
    path = tmp_path / JOURNAL
    data = json.loads(path.read_text())
    for player in data["players"]:
        del player["learner"]
    path.write_text(json.dumps({**data, "schema": 1}) + "\n")
    assert list(read_journal(tmp_path)) == [episode()]


def test_another_schema_version_is_refused(tmp_path):
    journal_of(tmp_path, episode())
    path = tmp_path / JOURNAL
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}) + "\n")
    with pytest.raises(PairgenError, match="schema version 99"):
        list(read_journal(tmp_path))


def test_a_folder_without_a_journal_is_no_run(tmp_path):
    with pytest.raises(PairgenError, match="is not a run.*pairgen rollout"):
        list(read_journal(tmp_path))


def test_the_last_word_on_an_episode_counts(tmp_path):
    journal_of(tmp_path, episode(outcome="error"), episode(outcome="success"))
    assert [e.outcome for e in read_episodes(tmp_path)] == ["success"]


def test_tables_are_the_same_bytes_for_the_same_episodes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_tables(tmp_path / name, [long_game(), episode(task_id=9)])
    for table in ("episodes.parquet", "moves.parquet"):
        assert (tmp_path / "a" / table).read_bytes() == (tmp_path / "b" / table).read_bytes()


def test_a_table_that_fails_half_way_leaves_the_old_one(tmp_path):
    path = tmp_path / "moves.parquet"
    path.write_text("old")
    with pytest.raises(RuntimeError), TableWriter(path, MoveRow):
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["moves.parquet"]


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageProblem, match="--overwrite"):
        claim_folder(tmp_path, resume=False, overwrite=False)
    with pytest.raises(UsageProblem, match="not written by pairgen"):
        claim_folder(tmp_path, resume=False, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_overwrite_empties_what_pairgen_wrote(tmp_path):
    write_json(tmp_path / "run.json", {})
    (tmp_path / "clem").mkdir()
    claim_folder(tmp_path, resume=False, overwrite=True)
    assert list(tmp_path.iterdir()) == []


def hold(folder: Path, held, done):
    with lock_folder(folder):
        held.set()
        done.wait(30)


def test_a_second_process_is_refused_while_the_first_lives(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(tmp_path, held, done))
    process.start()
    assert held.wait(30)
    with pytest.raises(UsageProblem, match="another pairgen process"), lock_folder(tmp_path):
        pass
    process.kill()
    process.join()
    with lock_folder(tmp_path):
        pass


def test_a_damaged_file_is_named_with_what_to_do(tmp_path):
    from pairgen.store import read_json, read_table

    (tmp_path / "run.json").write_text("{")
    (tmp_path / "moves.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(PairgenError, match="run.json cannot be read"):
        read_json(tmp_path / "run.json")
    with pytest.raises(PairgenError, match="moves.parquet cannot be read"):
        read_table(tmp_path / "moves.parquet", MoveRow)


def test_a_torn_journal_is_known_as_one(tmp_path):
    from pairgen.store import is_torn

    journal_of(tmp_path, episode())
    assert not is_torn(tmp_path)
    with (tmp_path / JOURNAL).open("a") as handle:
        handle.write("{")
    assert is_torn(tmp_path)


def test_a_place_that_cannot_be_written_to_is_said_at_once():
    from pathlib import Path

    with pytest.raises(UsageProblem, match="cannot be written to"):
        claim_folder(Path("/proc/self/pairgen"), resume=False, overwrite=False)
