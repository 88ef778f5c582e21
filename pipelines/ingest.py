"""Takes clembench results into a run: one folder at a time, so that memory holds one episode, not the results.

An episode is named by game, experiment, task and sample. Each run folder (as a rule one a model) is a `source` of its
own; where sources, or repeated plays within one, hold the same instance, the plays are numbered 0, 1, 2, … as samples,
sources and folders in natural order. So the number of a play depends on what else is imported with it; its source does
not, unless two run folders have the same name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.clem.layout import (
    INTERACTIONS,
    Recorded,
    Unreadable,
    error_of,
    find_episodes,
    name_runs,
    natural,
    read_episode,
    run_folder,
)
from pairgen.console import progress
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Episode, InstanceKey
from pairgen.store import CONFIG, JOURNAL, MANIFEST, check_folder, read_json
from pipelines.recorded import Taken, take
from pipelines.runs import finish_run, open_run

EPISODES_A_SYNC = 64
LAYOUT = f"RESULTS/MODEL/GAME/EXPERIMENT/EPISODE/{INTERACTIONS}"


class Place(NamedTuple):
    """An episode folder, the name of the run that it belongs to, and what to call it in a message."""

    folder: Path
    source: str
    shown: str


class Skip(NamedTuple):
    """An episode that could not be taken in, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Checks:
    """What the import has seen so far: prompts held against those sent, and what was left out or is incomplete."""

    prompts_checked: int = 0
    prompts_differ: int = 0
    first_difference: str = ""
    violations: int = 0
    unread: list[Skip] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    models: set[str] = field(default_factory=set)


def import_results(results: Sequence[Path], out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Import every episode at or below the `results` folders into the run `out`; returns the run's manifest.

    Raises UsageProblem for paths that cannot work and PairgenError when nothing could be read; `out` is then untouched.
    """
    check_folder(out, resume=False, overwrite=overwrite)
    _keep_what_is_dear(out)
    for folder in results:
        _refuse(folder, out)
    places, skipped = survey(results)
    checks = Checks(skipped=skipped)
    episodes = _read_all(places, checks)
    first = next(episodes, None)
    if first is None:
        raise PairgenError(_nothing(results, checks.skipped))
    config = {"results": [str(folder) for folder in results]}
    with open_run(out, "import", config, overwrite=overwrite) as journal:
        for batch in _batches(chain([first], episodes), EPISODES_A_SYNC):
            journal.append(*batch)
        return finish_run(out, "import", config, _found(checks))


def _keep_what_is_dear(out: Path) -> None:
    """An import replaces imports alone: play and paid answers are not to be had again for nothing."""
    known = read_json(out / CONFIG) if (out / CONFIG).exists() else {}
    if known.get("command") == "rollout" or ((out / MANIFEST).exists() and not (out / JOURNAL).exists()):
        what = "was played by pairgen rollout" if known else "is a pair set"
        raise UsageProblem(f"{out} {what}, which an import never replaces: use another --out.")


def _refuse(folder: Path, out: Path) -> None:
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise UsageProblem(f"{folder} {problem}: give a folder with clembench results ({LAYOUT}).")
    if folder.resolve().is_relative_to(out.resolve()):
        raise UsageProblem(f"{folder} lies in {out}, which --out replaces: use another --out.")
    if out.resolve().is_relative_to(folder.resolve()):
        raise UsageProblem(f"{out} lies in {folder}, which is only read: use another --out.")


def _nothing(results: Sequence[Path], skipped: Sequence[Skip]) -> str:
    path, reason = skipped[0]
    return (
        f"none of the {len(skipped)} episodes in {', '.join(map(str, results))} can be read (first: {path}: {reason}): "
        "give results that clem run has written to their end."
    )


def survey(results: Sequence[Path]) -> tuple[list[Place], list[Skip]]:
    """Every episode folder once, in the order of sources and paths, and those that never got their interactions.

    Raises PairgenError for a folder of `results` that holds none.
    """
    found: dict[Path, tuple[Path, Path, str]] = {}
    skipped: dict[Path, Skip] = {}
    for given in results:
        root = Path(os.path.abspath(given))  # noqa: PTH100 (no link is followed: its name is the one to show)
        below = find_episodes(root)
        if not (below.episodes or below.unfinished):
            raise PairgenError(f"{given} holds no {INTERACTIONS}: give a folder with clembench results ({LAYOUT}).")
        for folder in below.episodes:
            shown = str(given / folder.relative_to(root))
            found.setdefault(folder.resolve(), (folder, run_folder(folder, root), shown))
        for folder in below.unfinished:
            skipped.setdefault(folder.resolve(), Skip(str(given / folder.relative_to(root)), _unfinished(folder)))
    names = name_runs(run for _, run, _ in found.values())
    places = [Place(folder, names[run], shown) for folder, run, shown in found.values()]
    return sorted(places, key=lambda p: (natural(Path(p.source)), natural(p.folder))), list(skipped.values())


def _unfinished(folder: Path) -> str:
    error = error_of(folder)
    return f"not played to its end: there is no {INTERACTIONS}{f' ({error})' if error else ''}"


def _read_all(places: Sequence[Place], checks: Checks) -> Iterator[Episode]:
    """The episodes one at a time; `checks` grows as they are read."""
    plays: Counter[InstanceKey] = Counter()
    with progress(len(places), "importing", "episode") as bar:
        for place in places:
            try:
                recorded = read_episode(place.folder)
            except Unreadable as problem:
                checks.skipped.append(Skip(place.shown, str(problem)))
                continue
            finally:
                bar.update()
            key = InstanceKey(recorded.game, recorded.experiment, recorded.task_id)
            taken = take(recorded, plays[key], place.source)
            plays[key] += 1
            _note(checks, place, recorded, taken)
            yield taken.episode


def _note(checks: Checks, place: Place, recorded: Recorded, taken: Taken) -> None:
    checks.unread += [Skip(place.shown, reason) for reason in recorded.unread]
    checks.violations += sum(bool(move.violation) for move in taken.episode.moves)
    checks.models |= {move.model for move in taken.episode.moves}
    for move, same in zip(taken.episode.moves, taken.same_prompt, strict=True):
        checks.prompts_checked += same is not None
        if same is False:
            checks.prompts_differ += 1
            checks.first_difference = checks.first_difference or f"{place.shown}, move {move.index} ({move.player})"


def _batches(episodes: Iterable[Episode], size: int) -> Iterator[list[Episode]]:
    batch: list[Episode] = []
    for episode in episodes:
        batch.append(episode)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _found(checks: Checks) -> dict[str, Any]:
    """What the manifest says beyond the numbers of the episodes."""
    return {
        "model": ", ".join(sorted(checks.models)),
        "prompts_checked": checks.prompts_checked,
        "prompts_differ": checks.prompts_differ,
        "first_difference": checks.first_difference,
        "violations": checks.violations,
        "skipped": [skip._asdict() for skip in checks.skipped],
        "unread": [skip._asdict() for skip in checks.unread],
    }
