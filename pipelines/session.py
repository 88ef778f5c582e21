"""A rollout as a person asks for it: its run folder, what is left to play, and its manifest."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import shlex
import shutil
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pairgen import store
from pairgen.clem.client import HASH_SEED, GameServer
from pairgen.console import progress, say
from pairgen.engines import Engine, Sampling
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Episode, EpisodeKey, Fault
from pipelines import runs, scoring
from pipelines.faults import grouped_faults
from pipelines.instances import choose_instances, find_games
from pipelines.plan import Work, make_plan
from pipelines.rollout import Tally, play_all
from pipelines.rollout_config import RolloutConfig, check_partner, repeats, resumed
from pipelines.speakers import Labels, labels_of, make_speakers, notice_adapter
from pipelines.workers import Setting

RESULTS = "clem"
"""Where in a run folder clemcore's own layout lies."""


def roll_out(
    run: Path, config: RolloutConfig, *, given: Collection[str] = (), resume: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Play what `config` asks for (or what is missing of it) into the folder `run`; returns the run's manifest.

    Raises UsageProblem and PairgenError with the fix; a run folder that this call made and that holds no episode is
    taken away again.
    """
    if not (math.isfinite(config.temperature) and math.isfinite(config.top_p)):
        raise UsageProblem("--temperature and --top-p take finite numbers, such as --temperature 0.7 --top-p 0.95.")
    store.check_folder(run, resume=resume, overwrite=overwrite)
    if not (resume and (run / store.CONFIG).exists()):
        if resume and not config.model and not config.base_url:
            raise UsageProblem(f"{run} holds no run to go on with: check --out, or give --model to play a new one.")
        _check(config)
    made = not run.exists()
    try:
        with store.lock_folder(run):
            store.claim_folder(run, resume=resume, overwrite=overwrite)
            if resume and (run / store.CONFIG).exists():
                saved = store.read_json(run / store.CONFIG)
                if saved.get("command") != "rollout":
                    raise UsageProblem(
                        f"{run} was not played by pairgen rollout, so it cannot be resumed: use another --out."
                    )
                config = resumed(saved["config"], config, given)
            return asyncio.run(_session(run, config))
    except BaseException as error:
        if made and not (run / store.JOURNAL).exists():
            shutil.rmtree(run, ignore_errors=True)
        if isinstance(error, asyncio.CancelledError):  # SIGTERM
            raise KeyboardInterrupt from None
        raise


def _check(config: RolloutConfig) -> None:
    """Raise UsageProblem for a new run that cannot be meant, before an old one is overwritten by it."""
    if not config.model and not config.base_url:
        raise UsageProblem("--model is missing: give a checkpoint folder or a Hub id.")
    check_partner(config.partner)
    if repeats(config.samples, config.temperature):
        raise UsageProblem(
            f"--samples {config.samples} at temperature 0 would play every episode alike: add --temperature 0.7, "
            "or leave --samples at 1."
        )


async def _session(run: Path, config: RolloutConfig) -> dict[str, Any]:
    engine = make_speakers(config, _say_restart)
    with _stoppable():
        return await _session_to_its_end(run, config, engine)


async def _session_to_its_end(run: Path, config: RolloutConfig, engine: Engine) -> dict[str, Any]:
    async with GameServer(run / "logs") as server:
        catalog = await find_games(server, config)
        labels = labels_of(config)
        left_out = choose_instances(catalog["games"], config)
        plan = make_plan(
            catalog["games"], limit=config.limit, samples=config.samples, seed=config.seed, label=labels.learner,
            partner=labels.partner, learner=config.learner,
        )  # fmt: skip
        owed = _owed(run, plan, catalog["games"])
        sampling = Sampling(config.temperature, config.top_p, config.max_tokens, config.seed, config.stop)
        tally = Tally()
        if owed:
            await asyncio.to_thread(notice_adapter, config)
            say(f"loading {config.model or 'the model'} ({engine.name})")
            started = time.monotonic()
            await engine.start()
            say(f"ready in {time.monotonic() - started:.0f} s; playing {len(owed)} of {len(plan)} episodes")
            store.write_json(run / store.CONFIG, runs.saved("rollout", dataclasses.asdict(config)))
            setting = Setting(labels.learner, sampling, (run / RESULTS).resolve(), labels.partner)
            tally = await _play(run, server, engine, catalog["games"], owed, setting, config.concurrency)
        else:
            say(f"all {len(plan)} episodes have been played already")
    return _finish(run, config, catalog, engine, labels, tally, left_out)


def _say_restart(why: str) -> None:
    say(f"the engine died ({why}); starting it again, its open episodes are played from their start")


def _owed(run: Path, plan: Sequence[Work], games: Sequence[dict[str, Any]]) -> list[Work]:
    """What of the plan has not been played to an end."""
    if not plan:
        names = ", ".join(g["game"] for g in games)
        raise PairgenError(f"no instance of {names} is left to play: choose other --games, or say --no-exclude-eval.")
    done: set[EpisodeKey] = set()
    if (run / store.JOURNAL).exists():
        done = {e.key for e in store.read_journal(run) if e.outcome != "error"}
    return [work for work in plan if work.key not in done]


async def _play(
    run: Path,
    server: GameServer,
    engine: Engine,
    games: Sequence[dict[str, Any]],
    owed: Sequence[Work],
    setting: Setting,
    concurrency: int,
) -> Tally:
    journal = store.Journal(run)
    bar = progress(len(owed), "playing", "episode")

    def on_episode(episode: Episode, tally: Tally) -> None:
        rate = tally.completion_tokens / max(tally.seconds, 1e-9)
        bar.set_postfix_str(f"{rate:.0f} tok/s, last: {episode.game} {episode.outcome}", refresh=False)
        bar.update()

    try:
        return await play_all(
            server, engine, games, owed, setting, journal, concurrency=concurrency, on_episode=on_episode
        )
    finally:
        bar.close()
        journal.close()
        await engine.close()


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends the rollout as Ctrl-C does: in order, with the journal closed."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.remove_signal_handler(signal.SIGTERM)


def _finish(
    run: Path,
    config: RolloutConfig,
    catalog: dict[str, Any],
    engine: Engine,
    labels: Labels,
    tally: Tally,
    left_out: dict[str, Any],
) -> dict[str, Any]:
    """Derive the tables and write the manifest, last."""
    faults: list[tuple[str, Fault]] = []
    versions: set[str] = set()
    seats: Counter[str] = Counter()
    for episode in store.stream_episodes(run):
        versions |= {episode.clemcore_version} - {""}
        if episode.partners:
            seats.update(player.name for player in episode.players if player.learner and not player.programmatic)
        if episode.fault:
            faults.append((episode.game, episode.fault))
    extra = {
        "engine": engine.name,
        "model": config.model or engine.model,
        "learner": labels.learner,
        "partner": labels.partner,
        "learner_seats": dict(sorted(seats.items())),
        "clemcore_versions": sorted(versions),
        "clembench_commit": catalog["clembench_commit"],
        "games": [game["game"] for game in catalog["games"]],
        "evaluation": left_out,
        "python_hash_seed": HASH_SEED,
        "faults": grouped_faults(faults),
        "last_session": dataclasses.asdict(tally),
    }
    return runs.finish_run(run, "rollout", dataclasses.asdict(config), extra)


def summary(run: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What `pairgen rollout --json` prints."""
    keys = (
        "model",
        "learner",
        "partner",
        "episodes",
        "played",
        "outcomes",
        "model_moves",
        "average_played",
        "average_quality",
        "clemscore",
        "faults",
    )
    return {"out": str(run), **{key: manifest[key] for key in keys}, "last_session": manifest["last_session"]}


def lines(run: Path, manifest: dict[str, Any]) -> list[str]:
    """The same for a person."""
    text = scoring.table_lines(manifest)
    for fault in manifest["faults"]:
        fix = f" → {fault['fix']}" if fault["fix"] else ""
        text.append(f"{fault['game']}: {fault['episodes']} episodes, {fault['kind']}: {fault['message']}{fix}")
    if manifest["partner"]:
        seats = ", ".join(f"{n} episodes as {name}" for name, n in manifest["learner_seats"].items())
        text.append(
            f"learner {manifest['learner']}, partner {manifest['partner']}; with the partner: {seats or 'none'}"
        )
    last = manifest["last_session"]
    if last["episodes"]:
        text.append(
            f"{last['episodes']} episodes and {last['moves']} moves in {last['seconds']:.0f} s "
            f"({last['episodes'] / max(last['seconds'], 1e-9):.2f} episodes/s, "
            f"{last['completion_tokens'] / max(last['seconds'], 1e-9):.0f} output tokens/s)"
        )
    text.append(f"run: {run}")
    text.append(f"next: pairgen corrupt {shlex.quote(str(run))} --strategy verbose --out PAIRS")
    return text
