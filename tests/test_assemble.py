"""Several runs make one set: each keeps the verdicts on its own episodes, and nothing is asked twice."""

import dataclasses
import json
from pathlib import Path

from factories import write_run
from test_verify import games, trip  # noqa: F401 (fixtures)

from pairgen.strategy import Corruption, Strategy
from pipelines.assemble import assemble
from pipelines.corrupt import CorruptConfig
from pipelines.pairset import read_drops, read_pairs


def loose(material, chance, options):
    """Mostly what the game master accepts."""
    return Corruption(f"{chance.choice(('', 'STOP: ', 'STOP: ', 'STOP: '))}{chance.choice('abcd')}", "loose")


LOOSE = {"loose": Strategy("loose", "", loose, requires_violation=True)}
CONFIG = CorruptConfig(strategy=("loose",), per_player=0, no_eval_split=True, test_size=0.0)


def notes(run: Path) -> list[list[str]]:
    return [json.loads(line) for line in (run / "verdicts.jsonl").read_text().splitlines()]


def test_verdicts_stay_with_the_run_of_their_episode_and_are_asked_once(tmp_path, monkeypatch, trip):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAIRGEN_NO_PROGRESS", "1")
    first, second = tmp_path / "first", tmp_path / "second"
    write_run(first, [trip])
    write_run(second, [dataclasses.replace(trip, source="later", sample=1), trip])
    assemble([first, second], tmp_path / "a", CONFIG, LOOSE)
    known = {run: notes(run) for run in (first, second)}
    assert {len({line[0] for line in found}) for found in known.values()} == {len(trip.moves)}
    assert not {line[0] for line in known[first]} & {line[0] for line in known[second]}
    assemble([second, first], tmp_path / "b", CONFIG, LOOSE)
    assert {run: notes(run) for run in (first, second)} == known
    pairs, drops = read_pairs(tmp_path / "a"), read_drops(tmp_path / "a")
    assert pairs == read_pairs(tmp_path / "b")
    assert {p.rejected_verdict for p in pairs} == {"violation"}
    assert len(pairs) + sum(d.stage in ("verify", "dedup") for d in drops) == 2 * len(trip.moves)
