"""Reads clemcore's result layout, every one since 2.4. Imports no clemcore; judges nothing.

An episode is a folder with `interactions.json`: RUN/GAME/EXPERIMENT/EPISODE. EXPERIMENT is `0_high_en` or `high_en`,
EPISODE is `episode_3` or `instance_00003` (with `branch_00001` below it in branching runs), and RUN may hold folders
like `epoch_00001`. Names and order of folders say nothing: what was played stands in `meta`. Beside it lie
`instance.json`, `scores.json`, and the calls to the models in `requests.json` (to 3.4.1) or `player_1.requests.json`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.clem.calls import Call, call_of
from pairgen.records import Player

INTERACTIONS, INSTANCE, SCORES, EXPERIMENT = "interactions.json", "instance.json", "scores.json", "experiment.json"
SCRIPTED = frozenset({"programmatic", "mock"})
"""What clemcore calls players that the game scripts itself."""
HUMAN = frozenset({"human", "terminal"})
_BRANCH, _EPOCH = re.compile(r"branch_\d+"), re.compile(r"epoch_\d+")


class Unreadable(Exception):
    """An episode folder that cannot be read; the text says why."""


class Found(NamedTuple):
    """Episode folders in natural order of their paths, and those that were begun but hold no interactions."""

    episodes: list[Path]
    unfinished: list[Path]


class Recorded(NamedTuple):
    """An episode as its folder has it. `calls` has the calls of each player, "" for those that name none.

    `scores` are the episode scores, `instance` the instance; None where there is no such file or it cannot be read
    (`unread` then names it).
    """

    game: str
    experiment: str
    task_id: int
    clemcore_version: str
    players: tuple[Player, ...]
    events: list[dict[str, Any]]
    calls: dict[str, list[Call]]
    scores: dict[str, Any] | None
    instance: dict[str, Any] | None
    unread: tuple[str, ...]


def find_episodes(root: Path) -> Found:
    """Every episode folder at or below `root`."""
    episodes, begun, seen = [], [], set()
    for folder, below, files in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link in a circle
            below.clear()
            continue
        seen.add(real)
        if INTERACTIONS in files:
            episodes.append(Path(folder))
        elif INSTANCE in files:
            begun.append(Path(folder))
    with_branches = {folder.parent for folder in episodes}
    unfinished = [folder for folder in begun if folder not in with_branches]
    return Found(sorted(episodes, key=natural), sorted(unfinished, key=natural))


def natural(path: Path) -> list[tuple[bool, int, str]]:
    """A sort key that has episode_10 behind episode_9."""
    parts = [p for p in re.split(r"([0-9]+|/)", path.as_posix()) if p]
    return [(False, int(p), p) if "0" <= p[0] <= "9" else (True, 0, p) for p in parts]


def run_folder(episode: Path, root: Path) -> Path:
    """The folder of the run (as a rule: of the model) that an episode folder found below `root` lies in.

    It may lie above `root`, where that is a game's or an experiment's folder.
    """
    experiment = episode.parent.parent if _BRANCH.fullmatch(episode.name) else episode.parent
    run = experiment.parent.parent
    is_layout = (experiment / EXPERIMENT).exists() or run.is_relative_to(root)
    return run if run.name and is_layout else root


def name_runs(folders: Iterable[Path]) -> dict[Path, str]:
    """A name for each run folder: as few of its last parts as tell it from the others."""
    folders = sorted(set(folders), key=natural)
    lengths = {folder: 2 if _EPOCH.fullmatch(folder.name) else 1 for folder in folders}
    while True:
        names = {f: "/".join(f.parts[max(f.is_absolute(), len(f.parts) - lengths[f]) :]) for f in folders}
        taken = list(names.values())
        doubled = [f for f in folders if taken.count(names[f]) > 1 and lengths[f] < len(f.parts)]
        if not doubled:
            return names
        for folder in doubled:
            lengths[folder] += 1


def read_episode(folder: Path) -> Recorded:
    """The episode of a folder. Raises Unreadable where its interactions are torn or are not clemcore's."""
    data = _object(folder / INTERACTIONS)
    beside = [folder, folder.parent] if _BRANCH.fullmatch(folder.name) else [folder]
    unread: list[str] = []
    instance = _optional([f / INSTANCE for f in beside], unread)
    scores = _optional([folder / SCORES], unread)
    game, experiment, task_id = _key(data, instance, beside[-1].parent)
    players = _players(data.get("players"))
    return Recorded(
        game=game,
        experiment=experiment,
        task_id=task_id,
        clemcore_version=str(data["meta"].get("clem_version") or ""),
        players=players,
        events=_events(data.get("turns")),
        calls=_calls(beside, [p.name for p in players], unread),
        scores=None if scores is None else _mapping(scores.get("episode scores")),
        instance=instance,
        unread=tuple(unread),
    )


def error_of(folder: Path) -> str:
    """Why an episode without interactions ended, as clemcore notes it since 3.7, in one line; or ""."""
    try:
        error = _object(folder / "error.json")
    except Unreadable:
        return ""
    told = " ".join(line.strip() for line in str(error.get("message", "")).splitlines() if line.strip(" *"))
    return f"{error.get('error', 'error')}: {told[:200]}"


def _object(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path.name} is no whole JSON ({error})") from None
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read ({error.strerror})") from None
    if not isinstance(data, dict):
        raise Unreadable(f"{path.name} holds no object")
    return data


def _optional(paths: Sequence[Path], unread: list[str]) -> dict[str, Any] | None:
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        return None
    try:
        return _object(path)
    except Unreadable as problem:
        unread.append(str(problem))
        return None


def _key(data: dict[str, Any], instance: dict[str, Any] | None, experiment: Path) -> tuple[str, str, int]:
    """Game, experiment and number from `meta`; what it lacks, from the instance and the experiment's file."""
    if not isinstance(data.get("meta"), dict):
        raise Unreadable(f"{INTERACTIONS} has no meta: it is not clemcore's, or older than 2.4")
    meta = dict(data["meta"])
    if any(meta.get(name) is None for name in ("game_name", "experiment_name", "game_id")):
        about = _optional([experiment / EXPERIMENT], []) or {}
        known = {"game_name": about.get("game_name"), "experiment_name": about.get("name")}
        known["game_id"] = (instance or {}).get("game_id")
        meta = {**known, **{k: v for k, v in meta.items() if v is not None}}
    game, name, number = meta["game_name"], meta["experiment_name"], meta["game_id"]
    if isinstance(number, str) and re.fullmatch(r"-?[0-9]+", number):
        number = int(number)
    if not (isinstance(game, str) and game and isinstance(name, str) and name and type(number) is int):
        raise Unreadable(f"meta of {INTERACTIONS} lacks game_name, experiment_name or a whole game_id")
    return game, name, number


def _players(found: Any) -> tuple[Player, ...]:
    if not isinstance(found, dict) or not all(isinstance(p, dict) for p in found.values()):
        raise Unreadable(f"players of {INTERACTIONS} are not described as clemcore does since 2.4")
    return tuple(
        Player(name, str(p.get("game_role") or name), "programmatic" if model in SCRIPTED else model)
        for name, p in found.items()
        for model in [str(p.get("model_name") or "unknown")]
        if name != "GM"
    )


def _events(turns: Any) -> list[dict[str, Any]]:
    try:
        events = [event for turn in turns for event in turn]
        if all(isinstance(e["action"]["type"], str) and isinstance(e["from"] + e["to"], str) for e in events):
            return events
    except (TypeError, KeyError):
        pass
    raise Unreadable(f"turns of {INTERACTIONS} are not lists of clemcore's events")


def _calls(folders: Sequence[Path], players: Sequence[str], unread: list[str]) -> dict[str, list[Call]]:
    names = {"": "requests.json", **{p: f"{'_'.join(p.lower().split())}.requests.json" for p in players}}
    calls: dict[str, list[Call]] = {}
    for player, name in names.items():
        path = next((f / name for f in folders if (f / name).exists()), None)
        if path is not None:
            calls[player] = _read_calls(path, unread)
    return calls


def _read_calls(path: Path, unread: list[str]) -> list[Call]:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        unread.append(f"{path.name} is no whole JSON ({error})")
        return []
    entries = data.get("calls") if isinstance(data, dict) else data
    found = [call_of(entry) for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [call for call in found if call]


def _mapping(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
