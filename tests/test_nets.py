"""The nets on real games: instances under other numbers are caught by content, and without it by their prompts."""

import dataclasses
import json
from pathlib import Path

import pytest
from factories import STRATEGIES, write_run
from test_session import rollout

from pairgen.records import InstanceKey
from pairgen.store import read_episodes
from pipelines.assemble import assemble
from pipelines.corrupt import CorruptConfig
from pipelines.pairset import read_drops, read_manifest

WORDS = r'sentence for the words "(?P<a>\w+), (?P<b>\w+), (?P<c>\w+)"'
SCRIPT = {"replies": [{"first": WORDS, "reply": r"SENTENCE: The \g<a> \g<b> at the \g<c>."}]}
CONFIG = CorruptConfig(strategy=("longer",), verify=False, max_per_completion=0)


@pytest.fixture(scope="module")
def episodes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("played")
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    assert rollout(folder / "script.json", folder / "run", "--games", "wordweave")[0] == 0
    return [e for e in read_episodes(folder / "run") if e.game == "wordweave" and e.outcome == "success"]


@pytest.mark.parametrize("net", ["eval_content", "eval_prompt"])
def test_evaluation_instances_under_other_numbers_are_caught(net, episodes, tmp_path, monkeypatch):
    """Known are the keys alone; the games that are here say what these hold, and what their players are asked."""
    monkeypatch.chdir(tmp_path)
    evaluation = {e.key.instance for e in episodes[::2]}
    keys = tmp_path / "keys.jsonl"
    keys.write_text("".join(json.dumps(key._asdict()) + "\n" for key in sorted(evaluation)))
    renamed = [dataclasses.replace(e, task_id=e.task_id + 1000) for e in episodes]
    if net == "eval_prompt":
        renamed = [dataclasses.replace(e, instance_hash="") for e in renamed]
    run = write_run(tmp_path / "run", renamed)
    assemble([run], Path("pairs"), CONFIG, STRATEGIES, eval_keys=[keys])
    caught = {(d.reason, InstanceKey(d.game, d.experiment, d.task_id - 1000)) for d in read_drops(Path("pairs"))
              if d.stage == "decontaminate"}  # fmt: skip
    assert len(evaluation) > 5 and caught == {(net, key) for key in evaluation}
    removed = read_manifest(Path("pairs")).evaluation.removed
    assert {r.evaluation for r in removed} == {"/".join(map(str, key)) for key in evaluation}
