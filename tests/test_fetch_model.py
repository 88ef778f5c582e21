"""The demo model is fetched once, from wherever it can be had, and never half."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from pairgen.errors import EngineError
from pipelines import fetch_model


def checkpoint(folder):
    folder.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


@pytest.fixture
def package_only(monkeypatch):
    """The Hub is out of reach, and the package yields a folder without any work."""
    monkeypatch.setattr(fetch_model, "_hub_answers", lambda: False)
    monkeypatch.setattr(fetch_model, "_from_package", lambda work, progress: checkpoint(work / "made"))


def test_a_ready_folder_is_used_at_once(tmp_path, monkeypatch):
    ready = checkpoint(tmp_path / fetch_model.FOLDER)
    monkeypatch.setattr(fetch_model, "_make", lambda *a: pytest.fail("it was fetched again"))
    assert fetch_model.fetch(tmp_path) == ready
    monkeypatch.setenv("PAIRGEN_CACHE", str(tmp_path))
    assert fetch_model.fetch() == ready


def test_a_part_of_a_folder_is_made_again(tmp_path, package_only):
    (tmp_path / fetch_model.FOLDER).mkdir()
    (tmp_path / fetch_model.FOLDER / "config.json").write_text("{}")
    assert fetch_model.is_ready(fetch_model.fetch(tmp_path))


def test_many_may_fetch_at_once_and_nothing_is_left_behind(tmp_path, package_only):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: fetch_model.fetch(tmp_path), range(8)))
    assert len(found) == 1
    assert fetch_model.is_ready(found.pop())
    assert [p.name for p in tmp_path.iterdir()] == [fetch_model.FOLDER]


def test_the_hub_comes_first_and_the_package_when_it_fails(tmp_path, package_only, monkeypatch):
    said = []
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(fetch_model, "_hub_answers", lambda: True)
    monkeypatch.setattr(fetch_model, "_from_hub", lambda folder, progress: checkpoint(folder))
    assert fetch_model.fetch(tmp_path / "a", said.append)

    def broken(folder, progress):
        raise ConnectionError("reset")

    monkeypatch.setattr(fetch_model, "_from_hub", broken)
    assert fetch_model.is_ready(fetch_model.fetch(tmp_path / "b", said.append))
    assert "ConnectionError" in said[-1]


def test_offline_the_hub_is_not_asked(tmp_path, package_only, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(fetch_model, "_hub_answers", lambda: pytest.fail("the Hub was asked"))
    assert fetch_model.fetch(tmp_path)


def test_an_index_that_does_not_have_it_is_one_sentence_with_the_fix(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_model, "_hub_answers", lambda: False)
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: No matching distribution found")
    monkeypatch.setattr(fetch_model.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(EngineError, match=r"No matching distribution.*hf download .* --model DIR"):
        fetch_model.fetch(tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_pip_and_uv_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_model, "_hub_answers", lambda: False)
    monkeypatch.setattr(fetch_model.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(fetch_model.shutil, "which", lambda name: None)
    with pytest.raises(EngineError, match="neither pip nor uv"):
        fetch_model.fetch(tmp_path)


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="PAIRGEN_CACHE"):
        fetch_model.fetch(tmp_path / "file" / "below")


@pytest.mark.model
def test_the_real_one_has_a_chat_template_and_ends_its_turns(smollm2):
    fetch_model.check(smollm2)
    named = json.loads((smollm2 / "generation_config.json").read_text())["eos_token_id"]
    assert named == 2 or 2 in named
