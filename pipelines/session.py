"""A rollout as a person asks for it: its configuration, its run folder, what is left to play, and its manifest."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairgen import store
from pairgen.clem.client import DEMO_GAMES, HASH_SEED, GameServer
from pairgen.console import progress, say
from pairgen.engines import Engine, EngineOptions, Sampling
from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Episode, EpisodeKey, Fault, InstanceKey, to_dict
from pipelines import eval_split, runs, scoring
from pipelines.decontaminate import Net
from pipelines.plan import Work, label_of, make_plan
from pipelines.rollout import Setting, Tally, play_all
from pipelines.supervise import Supervised

RESULTS = "clem"
"""Where in a run folder clemcore's own layout lies."""


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """Every option of `pairgen rollout` that decides what is played and how; names are the options' names."""

    model: str
    engine: str = "auto"
    revision: str | None = None
    base_url: tuple[str, ...] = ()
    clembench: str | None = None
    games: tuple[str, ...] = ()
    limit: int = 0
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 300
    seed: int = 42
    stop: tuple[str, ...] = ()
    exclude_eval: bool | None = None
    only_eval: bool = False
    eval_keys: tuple[str, ...] = ()
    eval_split: str = ""
    eval_results: tuple[str, ...] = ()
    concurrency: int = 64
    max_model_len: int | None = None
    dtype: str = "auto"
    timeout: float = 600.0
    restarts: int = 3
    engine_arg: tuple[str, ...] = ()
    chat_template_kwargs: tuple[str, ...] = ()


MAY_GROW = frozenset({"games", "limit", "samples"})
"""What a resumed run may be given anew: it plays what is missing of the larger plan."""

MAY_CHANGE = frozenset(
    {"engine", "base_url", "clembench", "concurrency", "max_model_len", "dtype", "timeout", "engine_arg"}
)
"""What a resumed run may be given anew since it does not say what is played: where and how fast."""


def resumed(saved: dict[str, Any], config: RolloutConfig, given: Collection[str]) -> RolloutConfig:
    """The saved configuration with what was `given` on the command line and may differ.

    Raises UsageProblem that names every option that contradicts what was played so far.
    """
    fields = {f.name: f for f in dataclasses.fields(RolloutConfig)}
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in saved.items() if k in fields}
    base = RolloutConfig(**known)
    contradictions = [
        f"--{name.replace('_', '-')} {getattr(config, name)} (the run has {getattr(base, name)})"
        for name in fields
        if name in given and name not in MAY_GROW | MAY_CHANGE and getattr(config, name) != getattr(base, name)
    ]
    if contradictions:
        raise UsageProblem(
            f"--resume goes on with the run's own settings; leave out {', '.join(contradictions)}, "
            "or play a new run with another --out."
        )
    changes = {name: getattr(config, name) for name in given if name in MAY_GROW | MAY_CHANGE}
    if len(changes.get("games", ())):
        changes["games"] = tuple(dict.fromkeys([*base.games, *changes["games"]]))
    return dataclasses.replace(base, **changes)


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
            elif not config.model and not config.base_url:
                raise UsageProblem("--model is missing: give a checkpoint folder or a Hub id.")
            return asyncio.run(_session(run, config))
    except BaseException as error:
        if made and not (run / store.JOURNAL).exists():
            shutil.rmtree(run, ignore_errors=True)
        if isinstance(error, asyncio.CancelledError):  # SIGTERM
            raise KeyboardInterrupt from None
        raise


async def _session(run: Path, config: RolloutConfig) -> dict[str, Any]:
    from pairgen.engines.select import make_engine

    engine = Supervised(make_engine(engine_options(config)), config.restarts, _say_restart)
    with _stoppable():
        return await _session_to_its_end(run, config, engine)


async def _session_to_its_end(run: Path, config: RolloutConfig, engine: Engine) -> dict[str, Any]:
    async with GameServer(run / "logs") as server:
        catalog = await _catalog(server, config)
        label = label_of(config.model or engine.model or "model")
        left_out = _choose_instances(catalog["games"], config)
        plan = make_plan(catalog["games"], limit=config.limit, samples=config.samples, seed=config.seed, label=label)
        owed = _owed(run, plan, catalog["games"])
        sampling = Sampling(config.temperature, config.top_p, config.max_tokens, config.seed, config.stop)
        tally = Tally()
        if owed:
            say(f"loading {config.model or 'the model'} ({engine.name})")
            started = time.monotonic()
            await engine.start()
            say(f"ready in {time.monotonic() - started:.0f} s; playing {len(owed)} of {len(plan)} episodes")
            store.write_json(run / store.CONFIG, runs.saved("rollout", dataclasses.asdict(config)))
            setting = Setting(label, sampling, (run / RESULTS).resolve())
            tally = await _play(run, server, engine, catalog["games"], owed, setting, config.concurrency)
        else:
            say(f"all {len(plan)} episodes have been played already")
    return _finish(run, config, catalog, engine, tally, left_out)


def _say_restart(why: str) -> None:
    say(f"the engine died ({why}); starting it again, its open episodes are played from their start")


def engine_options(config: RolloutConfig) -> EngineOptions:
    """The part of the configuration that the engine needs."""
    return EngineOptions(
        name=config.engine, model=config.model, revision=config.revision, base_urls=config.base_url,
        concurrency=config.concurrency, max_model_len=config.max_model_len, dtype=config.dtype,
        timeout_s=config.timeout, max_tokens=config.max_tokens, seed=config.seed, engine_args=config.engine_arg,
        chat_template_kwargs=config.chat_template_kwargs,
    )  # fmt: skip


async def _catalog(server: GameServer, config: RolloutConfig) -> dict[str, Any]:
    answer = await server.ask(
        op="catalog", clembench=config.clembench and str(Path(config.clembench).resolve()),
        cwd=str(Path.cwd()), selectors=list(config.games),
    )  # fmt: skip
    if "problem" in answer:
        raise UsageProblem(answer["problem"])
    for game in answer["games"]:
        if game["problem"]:
            say(f"{game['game']} is left out: its instances cannot be read ({game['problem']})")
    return answer


def _choose_instances(games: Sequence[dict[str, Any]], config: RolloutConfig) -> dict[str, Any]:
    """Take evaluation instances out of the games' lists, or all others with `only_eval`; says what was done.

    Where nothing is said, the playpen split is asked for, and without it everything is played: corrupt takes out what
    must not be trained on. Raises PairgenError when the split is needed and cannot be read.
    """
    asked = bool(config.eval_keys or config.eval_split or config.eval_results)
    built_in = all(str(DEMO_GAMES) in str(game["spec"]["game_path"]) for game in games)
    if (config.exclude_eval is False and not config.only_eval) or (built_in and not asked and not config.only_eval):
        return {"sources": [], "left_out": 0}
    try:
        split = eval_split.read_eval_split(
            keys=[Path(p) for p in config.eval_keys], split=config.eval_split,
            results=[Path(p) for p in config.eval_results], none=False,
        )  # fmt: skip
    except PairgenError as error:
        if asked or config.only_eval or config.exclude_eval:
            raise
        say(f"evaluation instances are played too, and left to corrupt to take out ({str(error).split(':')[0]})")
        return {"sources": [], "left_out": 0}
    net, left_out = Net(split), 0
    for game in games:
        kept = [
            row for row in game["instances"]
            if bool(net.catch(InstanceKey(game["game"], row[0], row[1]), row[2])) is config.only_eval
        ]  # fmt: skip
        left_out += len(game["instances"]) - len(kept)
        game["instances"] = kept
    what = "that are no evaluation instances" if config.only_eval else "of the evaluation split"
    say(f"{left_out} instances {what} are left out")
    return {"sources": [to_dict(source) for source in split.sources], "left_out": left_out}


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
    run: Path, config: RolloutConfig, catalog: dict[str, Any], engine: Engine, tally: Tally, left_out: dict[str, Any]
) -> dict[str, Any]:
    """Derive the tables and write the manifest, last."""
    faults: list[tuple[str, Fault]] = []
    versions: set[str] = set()
    for episode in store.stream_episodes(run):
        versions |= {episode.clemcore_version} - {""}
        if episode.fault:
            faults.append((episode.game, episode.fault))
    extra = {
        "engine": engine.name,
        "model": config.model or engine.model,
        "clemcore_versions": sorted(versions),
        "clembench_commit": catalog["clembench_commit"],
        "games": [game["game"] for game in catalog["games"]],
        "evaluation": left_out,
        "python_hash_seed": HASH_SEED,
        "faults": grouped_faults(faults),
        "last_session": dataclasses.asdict(tally),
    }
    return runs.finish_run(run, "rollout", dataclasses.asdict(config), extra)


def grouped_faults(faults: Iterable[tuple[str, Fault]]) -> list[dict[str, Any]]:
    """Why episodes could not be played, by game and cause, the most frequent first, with the fix where it is known."""
    counts = Counter((game, fault.kind, _one_line(fault.message)) for game, fault in faults)
    return [
        {"game": game, "kind": kind, "message": message, "episodes": n, "fix": fix_for(kind, message)}
        for (game, kind, message), n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _one_line(message: str) -> str:
    """The telling part of a fault's text: NLTK frames its messages with stars and blank lines."""
    words = " ".join(line.strip() for line in message.splitlines() if line.strip(" *"))
    return words if len(words) <= 300 else words[:299] + "…"


def fix_for(kind: str, message: str) -> str:
    """What to do about a fault, in one sentence, or ""."""
    if resource := re.search(r"nltk\.download\('([\w.-]+)'\)", message):
        return f"python -m nltk.downloader {resource[1]}"
    if module := re.search(r"No module named '([\w.]+)'", message):
        return f'pip install "pairgen[clembench]" (it brings {module[1].split(".")[0]})'
    if kind == "context_exceeded":
        return "give a larger --max-model-len or a smaller --max-tokens"
    if kind == "timeout":
        return "give a larger --timeout or a smaller --concurrency"
    if kind == "game_setup" or kind == "game_load":
        return "game and clemcore are of different versions: update the clembench checkout"
    return ""


def summary(run: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What `pairgen rollout --json` prints."""
    keys = ("episodes", "played", "outcomes", "model_moves", "average_played", "average_quality", "clemscore", "faults")
    return {"out": str(run), **{key: manifest[key] for key in keys}, "last_session": manifest["last_session"]}


def lines(run: Path, manifest: dict[str, Any]) -> list[str]:
    """The same for a person."""
    text = scoring.table_lines(manifest)
    for fault in manifest["faults"]:
        fix = f" → {fault['fix']}" if fault["fix"] else ""
        text.append(f"{fault['game']}: {fault['episodes']} episodes, {fault['kind']}: {fault['message']}{fix}")
    last = manifest["last_session"]
    if last["episodes"]:
        text.append(
            f"{last['episodes']} episodes and {last['moves']} moves in {last['seconds']:.0f} s "
            f"({last['episodes'] / max(last['seconds'], 1e-9):.2f} episodes/s, "
            f"{last['completion_tokens'] / max(last['seconds'], 1e-9):.0f} output tokens/s)"
        )
    text.append(f"run: {run}")
    text.append(f"next: pairgen corrupt {run} --strategy verbose --out PAIRS")
    return text
