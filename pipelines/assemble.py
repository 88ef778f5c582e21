"""From run folders to a pair set on disk: reads the runs, has the pairs made, writes the set. Shows progress."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pairgen.clem.client import DEMO_GAMES, GameServer
from pairgen.console import progress, say
from pairgen.errors import UsageProblem, did_you_mean
from pairgen.records import Episode, Pair
from pairgen.store import CONFIG, JOURNAL, is_torn, read_json, stream_episodes
from pairgen.strategy import Strategy
from pipelines import corrupt, drafts, eval_split, manifest, pairset, verify
from pipelines.answerers import Answering
from pipelines.asking import Desk, answerers_for
from pipelines.corrupt import CorruptConfig
from pipelines.decontaminate import unmatched_games
from pipelines.manifest import Manifest, RunUsed
from pipelines.verdicts import Try, Verdict, tries_of


def assemble(
    runs: Sequence[Path],
    out: Path,
    config: CorruptConfig,
    strategies: Mapping[str, Strategy],
    *,
    clembench: Path | None = None,
    eval_keys: Sequence[Path] = (),
    eval_results: Sequence[Path] = (),
    overwrite: bool = False,
    answering: Answering = Answering(),  # noqa: B008
) -> Manifest:
    """Make the pair set `out` of some runs; the manifest says what came of it, also where no pair did.

    `answering` says who is asked where a strategy needs a model's word. Raises UsageProblem and PairgenError with the
    fix, before anything is written.
    """
    choices = corrupt.choose(config.strategy, config.style, strategies)
    pairset.check_out(out, overwrite=overwrite)
    evaluation = eval_split.read_eval_split(
        keys=eval_keys, split=config.eval_split, results=eval_results, none=config.no_eval_split
    )
    episodes, used = _read_runs(runs, config.games)
    answerers = answerers_for(choices, strategies, answering, runs)
    notes = unmatched_games(evaluation, {e.game for e in episodes})
    for note in notes:
        say(note)
    referee = _Referee(runs, episodes, clembench) if config.verify else None
    proof = [choice.name for choice in choices if strategies[choice.name].requires_proof]
    if proof and not (referee and referee.may_find_games):
        fix = "give --clembench DIR with the games that were played" if referee else "leave out --no-verify"
        raise UsageProblem(f"{' and '.join(proof)} keeps only what the game master accepts: {fix}.")
    desk = Desk(answerers, runs[0] / drafts.FILE)
    built = corrupt.build(episodes, config, choices, strategies, evaluation, _watched, referee, desk)
    made = manifest.make_manifest(built, config, evaluation, notes, episodes, used, pairset.versions(episodes))
    pairset.write_pairset(out, built.train, built.test, built.drops, made, overwrite=overwrite)
    return made


def _read_runs(runs: Sequence[Path], games: Sequence[str]) -> tuple[list[Episode], list[RunUsed]]:
    episodes: list[Episode] = []
    played: set[str] = set()
    used = []
    for run in sorted(runs, key=lambda r: (r.resolve().name, str(r.resolve()))):
        before = len(episodes)
        if is_torn(run):
            say(f"the last line of {run / JOURNAL} is torn: that episode is left out (rollout --resume plays it again)")
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


class _Referee:
    """Asks the game masters about pairs; says once which games are not to be had."""

    def __init__(self, runs: Sequence[Path], episodes: Sequence[Episode], clembench: Path | None):
        self._runs, self._episodes = runs, episodes
        saved = [read_json(run / CONFIG) for run in runs if (run / CONFIG).exists()]
        played_from = [(entry.get("config") or {}).get("clembench") for entry in saved]
        found = [clembench and str(clembench.resolve()), *played_from]
        self._clembench = next((folder for folder in found if folder and Path(folder).is_dir()), None)

    @property
    def may_find_games(self) -> bool:
        return bool(self._clembench or places_of_games(Path.cwd(), sorted({e.game for e in self._episodes})))

    def __call__(self, pairs: Sequence[Pair]) -> Mapping[Try, Verdict]:
        names = sorted({pair.game for pair in pairs})
        if self._clembench or places_of_games(Path.cwd(), names):
            return asyncio.run(self._ask(pairs, names))
        self._say_missing(names, {})
        return {}

    async def _ask(self, pairs: Sequence[Pair], names: Sequence[str]) -> Mapping[Try, Verdict]:
        with tempfile.TemporaryDirectory(prefix="pairgen-") as logs:
            async with GameServer(Path(logs)) as server:
                found = await self._games(server, names)
                notebook = verify.Notebook(self._runs[0] / "verdicts.jsonl", found["edition"])
                owed = verify.owed(tries_of(pairs), notebook.known)
                specs = {game["game"]: game["spec"] for game in found["games"]}
                self._say_missing(names, specs)
                episodes = [e for e in self._episodes if e.episode_id in owed and e.game in specs]
                with progress(len(episodes), "verifying", "episode") as bar:

                    def note(verdicts: dict[Try, Verdict]) -> None:
                        notebook.add(verdicts)
                        bar.update()

                    await verify.ask_referee(server, specs, episodes, owed, note)
                return notebook.known

    async def _games(self, server: GameServer, names: Sequence[str]) -> dict[str, Any]:
        worker = await server.worker()
        try:
            return await worker.ask(
                "", op="catalog", clembench=self._clembench, cwd=str(Path.cwd()), selectors=list(names), lenient=True
            )
        finally:
            await worker.close()

    def _say_missing(self, names: Sequence[str], specs: Mapping[str, Any]) -> None:
        missing = [name for name in names if name not in specs]
        if missing:
            say(
                f"not verified, since the games are not here: {', '.join(missing)} "
                "(give --clembench DIR, the checkout that they were played from)"
            )


def places_of_games(cwd: Path, names: Sequence[str]) -> bool:
    """Whether a game could be found at all without a checkout being named: importing clemcore to see takes seconds."""
    demo = {path.name for path in DEMO_GAMES.iterdir()}
    here = (pattern for depth in range(4) for pattern in cwd.glob("*/" * depth + "clemgame.json"))
    return bool(
        demo & set(names) or os.environ.get("CLEMBENCH_HOME") or (cwd / "game_registry.json").exists() or any(here)
    )


def _watched(moves: Sequence[Any], what: str) -> Iterable[Any]:
    def watched() -> Iterator[Any]:
        with progress(len(moves), what, "move") as bar:
            for move in moves:
                yield move
                bar.update()

    return watched()
