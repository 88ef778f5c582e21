"""From run folders to a pair set on disk: reads the runs, has the pairs made, writes the set. Shows progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pairgen.console import progress, say
from pairgen.errors import UsageProblem, did_you_mean
from pairgen.records import Episode
from pairgen.store import stream_episodes
from pairgen.strategy import Strategy
from pipelines import corrupt, eval_split, manifest, pairset
from pipelines.corrupt import CorruptConfig
from pipelines.decontaminate import unmatched_games
from pipelines.manifest import Manifest, RunUsed


def assemble(
    runs: Sequence[Path],
    out: Path,
    config: CorruptConfig,
    strategies: Mapping[str, Strategy],
    *,
    eval_keys: Sequence[Path] = (),
    eval_results: Sequence[Path] = (),
    overwrite: bool = False,
) -> Manifest:
    """Make the pair set `out` of some runs; the manifest says what came of it, also where no pair did.

    Raises UsageProblem and PairgenError with the fix, before anything is written.
    """
    choices = corrupt.choose(config.strategy, config.style, strategies)
    pairset.check_out(out, overwrite=overwrite)
    evaluation = eval_split.read_eval_split(
        keys=eval_keys, split=config.eval_split, results=eval_results, none=config.no_eval_split
    )
    episodes, used = _read_runs(runs, config.games)
    notes = unmatched_games(evaluation, {e.game for e in episodes})
    for note in notes:
        say(note)
    built = corrupt.build(episodes, config, choices, strategies, evaluation, _watched)
    made = manifest.make_manifest(built, config, evaluation, notes, episodes, used, pairset.versions(episodes))
    pairset.write_pairset(out, built.train, built.test, built.drops, made, overwrite=overwrite)
    return made


def _read_runs(runs: Sequence[Path], games: Sequence[str]) -> tuple[list[Episode], list[RunUsed]]:
    episodes: list[Episode] = []
    played: set[str] = set()
    used = []
    for run in sorted(runs, key=lambda r: (r.resolve().name, str(r.resolve()))):
        before = len(episodes)
        with progress(None, f"reading {run.name}", "episode") as bar:
            for episode in stream_episodes(run):
                played.add(episode.game)
                if not games or episode.game in games:
                    episodes.append(episode)
                bar.update()
        used.append(pairset.describe_run(run, len(episodes) - before))
    for game in games:
        if game not in played:
            raise UsageProblem(f"--games {game}: the run has no such game, {did_you_mean(game, played)}")
    return episodes, used


def _watched(moves: Sequence[Any], what: str) -> Iterable[Any]:
    def watched() -> Iterator[Any]:
        with progress(len(moves), what, "move") as bar:
            for move in moves:
                yield move
                bar.update()

    return watched()
