"""Pairs come from a set, a file, or a folder that datasets can load; what is to be known of them comes along."""

import dataclasses
import json

import datasets
import pytest
from click.testing import CliRunner
from factories import make_episodes, write_run

from pairgen import store
from pairgen.cli import main
from pairgen.errors import UsageProblem
from pairgen.records import to_dict
from pipelines import pairset
from pipelines.train_pairs import load_pairs, rows_of


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


@pytest.fixture
def pairs(tmp_path):
    run = write_run(tmp_path / "run", make_episodes(tasks=4))
    arguments = ["corrupt", str(run), "--no-eval-split", "--no-verify", "--out", str(tmp_path / "pairs")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    return tmp_path / "pairs"


def test_a_set_keeps_its_split_and_its_content_and_gives_three_columns(pairs):
    loaded = load_pairs(str(pairs))
    manifest = pairset.read_manifest(pairs)
    assert (len(loaded.train), len(loaded.test), loaded.content) == (manifest.train, manifest.test, manifest.content)
    assert list(rows_of(loaded.train)[0]) == ["prompt", "chosen", "rejected"]
    assert any("the longer side" in line for line in loaded.lines)


def test_what_the_run_gave_its_chat_template_comes_along(pairs):
    manifest = pairset.read_manifest(pairs)
    runs = tuple(dataclasses.replace(r, chat_template_kwargs=("enable_thinking=false",)) for r in manifest.runs)
    store.write_json(pairs / store.MANIFEST, to_dict(dataclasses.replace(manifest, runs=runs)))
    assert load_pairs(str(pairs)).template == ("enable_thinking=false",)


def test_a_folder_without_a_manifest_is_loaded_as_a_data_set_with_its_test_split(pairs):
    kept = load_pairs(str(pairs))
    loaded = load_pairs(str(pairs / "default"))
    assert (len(loaded.train), len(loaded.test)) == (len(kept.train), len(kept.test))
    assert rows_of(loaded.test) == rows_of(kept.test)


def test_a_file_is_split_by_instance_and_names_what_repeats(tmp_path):
    row = {"chosen": "A", "rejected": "B and more"}
    rows = [{**row, "prompt": f"Guess {i % 5}.", "game": "x"} for i in range(10)]
    (tmp_path / "pairs.json").write_text(json.dumps(rows))
    loaded = load_pairs(str(tmp_path / "pairs.json"))
    asked = [{p.prompt for p in side} for side in (loaded.train, loaded.test)]
    assert len(loaded.train) + len(loaded.test) == 10
    assert not asked[0] & asked[1]
    assert any("duplicate" in line for line in loaded.lines)
    assert "game" in loaded.extra


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(UsageProblem, match="is not there"):
        load_pairs(str(tmp_path / "pairs.json"))
