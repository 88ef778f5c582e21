"""A training's folder: only whole checkpoints count, and nothing that was not begun stays."""

import json

import pytest

from pairgen.errors import UsageProblem
from pipelines import train_folder


def checkpoint(out, step, state=None):
    folder = out / train_folder.CHECKPOINTS / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    if state is not None:
        (folder / train_folder.STATE).write_text(state)
    return folder


def test_the_newest_whole_checkpoint_is_gone_on_with_and_torn_ones_go(tmp_path):
    assert train_folder.newest_checkpoint(tmp_path) is None
    whole = [checkpoint(tmp_path, step, json.dumps({"global_step": step})) for step in (9, 10)]
    torn = [checkpoint(tmp_path, 11), checkpoint(tmp_path, 12, '{"global_st')]
    assert train_folder.newest_checkpoint(tmp_path) == whole[1]
    train_folder.drop_torn(tmp_path)
    assert [p.exists() for p in (*whole, *torn)] == [True, True, False, False]


def test_a_folder_in_which_nothing_was_begun_is_taken_away_and_another_stays(tmp_path):
    for name, begun in (("a", False), ("b", True)):
        out = tmp_path / name
        with train_folder.open_training(out, "dpo", resume=False, overwrite=False, writes=True) as known:
            assert known == {}
            if begun:
                train_folder.begin(out, "dpo", {"model": "m"}, "pairs", "hash")
        assert out.exists() == begun
    with train_folder.open_training(tmp_path / "b", "dpo", resume=True, overwrite=False, writes=True) as known:
        assert (known["config"], known["content"]) == ({"model": "m"}, "hash")


def test_a_folder_of_another_command_or_of_none_is_not_gone_on_with(tmp_path):
    train_folder.begin(tmp_path, "sft", {}, "run", "hash")
    with pytest.raises(UsageProblem, match="written by pairgen sft, not dpo"):
        train_folder.saved(tmp_path, "dpo")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    with pytest.raises(UsageProblem, match="holds no training"):
        train_folder.saved(tmp_path / "mine", "dpo")


def test_a_process_that_is_not_the_first_writes_nothing(tmp_path):
    with train_folder.open_training(tmp_path / "out", "dpo", resume=False, overwrite=False, writes=False) as known:
        assert known == {}
    assert not (tmp_path / "out").exists()
