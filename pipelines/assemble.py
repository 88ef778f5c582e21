"""From run folders to a pair set on disk: reads the runs, has the pairs made, writes the set. Shows progress."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pairgen.console import progress, say
from pairgen.errors import UsageProblem, did_you_mean
from pairgen.records import Episode
from pairgen.store import JOURNAL, check_run, is_torn, stream_episodes
from pairgen.strategy import Strategy
from pipelines import corrupt, eval_split, manifest, pairset
from pipelines.answerers import Answering
from pipelines.asking import Desk, answerers_for
from pipelines.corrupt import CorruptConfig
from pipelines.decontaminate import unmatched_experiments, unmatched_games
from pipelines.game_masters import GameMasters
from pipelines.manifest import Manifest, RunUsed
from pipelines.tokens import load_tokenizer


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
    tokenizer: str = "",
) -> Manifest:
    """Make the pair set `out` of some runs; the manifest says what came of it, also where no pair did.

    `answering` says who is asked where a strategy needs a model's word; `tokenizer` is a folder or a Hub name. Raises
    UsageProblem and PairgenError with the fix, before anything is written; what can be told from the command alone,
    before anything is read.
    """
    if config.require_verified and not config.verify:
        raise UsageProblem("--require-verified keeps what a game master has judged, so leave out --no-verify.")
    choices = corrupt.choose(config.strategy, config.style, strategies)
    corrupt.plan_of(config, [choice.name for choice in choices], strategies)
    runs = sorted(runs, key=lambda r: (r.resolve().name, str(r.resolve())))
    for run in runs:
        check_run(run)
    pairset.check_out(out, overwrite=overwrite)
    evaluation = eval_split.read_eval_split(
        keys=eval_keys, split=config.eval_split, results=eval_results, none=config.no_eval_split
    )
    reader = load_tokenizer(tokenizer) if tokenizer else None
    episodes, used, homes = read_runs(runs, config.games)
    answerers = answerers_for(choices, strategies, answering, runs)
    notes = [
        *unmatched_games(evaluation, {e.game for e in episodes}),
        *unmatched_experiments(evaluation, {(e.game, e.experiment) for e in episodes}),
    ]
    for note in notes:
        say(note)
    with contextlib.ExitStack() as stack:
        masters = stack.enter_context(GameMasters(homes, episodes, clembench))
        referee = masters if config.verify else None
        proof = [choice.name for choice in choices if strategies[choice.name].requires_proof]
        if proof and not (referee and referee.may_find_games):
            fix = "give --clembench DIR with the games that were played" if referee else "leave out --no-verify"
            raise UsageProblem(f"{' and '.join(proof)} keeps only what the game master accepts: {fix}.")
        evaluation = masters.with_contents(evaluation)
        desk = Desk(answerers, homes)
        built = corrupt.build(
            episodes, config, choices, strategies, evaluation, _watched, referee, desk, masters.first_prompts, reader
        )
    for note in built.notes:
        say(note)
    made = manifest.make_manifest(built, config, evaluation, notes, episodes, used, pairset.versions(episodes))
    pairset.write_pairset(out, built.train, built.test, built.drops, made, overwrite=overwrite)
    return made


def read_runs(runs: Sequence[Path], games: Sequence[str]) -> tuple[list[Episode], list[RunUsed], dict[str, Path]]:
    """The episodes, what the runs say of themselves, and in which run each episode (by id) is."""
    episodes: list[Episode] = []
    homes: dict[str, Path] = {}
    played: set[str] = set()
    used = []
    for run in runs:
        before = len(episodes)
        if is_torn(run):
            say(f"the last line of {run / JOURNAL} is torn: that episode is left out (rollout --resume plays it again)")
        with progress(None, f"reading {run.name}", "episode") as bar:
            for episode in stream_episodes(run):
                played.add(episode.game)
                if not games or episode.game in games:
                    episodes.append(episode)
                    homes.setdefault(episode.episode_id, run)
                bar.update()
        used.append(pairset.describe_run(run, len(episodes) - before))
    for game in games:
        if game not in played:
            raise UsageProblem(f"--games {game}: the run has no such game, {did_you_mean(game, played)}")
    return episodes, used, homes


def _watched(moves: Sequence[Any], what: str) -> Iterable[Any]:
    def watched() -> Iterator[Any]:
        with progress(len(moves), what, "move") as bar:
            for move in moves:
                yield move
                bar.update()

    return watched()
