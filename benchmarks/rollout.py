"""Rollout speed: against `clem run` on the same server, and the driver's own cost. Prints a table with medians."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from pairgen.clem.client import DEMO_GAMES, GameServer
from pairgen.console import say, table
from pairgen.engines import Sampling
from pairgen.engines.precision import cpu_likes_bfloat16
from pairgen.engines.scripted import ScriptedEngine
from pairgen.engines.select import cpu_vllm
from pairgen.store import Journal
from pipelines.fetch_model import fetch
from pipelines.plan import make_plan
from pipelines.rollout import play_all
from pipelines.workers import Setting

NAME = "smollm2"
DEMO = ("hintmatch", "roundtrip", "wordweave")


class Task(NamedTuple):
    """What both play: some games of a folder, with at most `max_tokens` new tokens a reply."""

    folder: Path
    games: tuple[str, ...]
    max_tokens: int


@click.command()
@click.option("--limit", default=8, show_default=True, help="Instances a game.")
@click.option("--concurrency", default=64, show_default=True)
@click.option("--repeat", default=3, show_default=True)
@click.option("--driver-episodes", default=3000, show_default=True, help="0: the driver alone is not measured.")
@click.option("--model", default="", help="A checkpoint folder [SmolLM2-135M-Instruct].")
@click.option("--clembench", type=click.Path(exists=True, path_type=Path), help="Their checkout [the demo games].")
@click.option("--games", default=",".join(DEMO), show_default=True, help="Separated by commas.")
@click.option("--max-tokens", default=300, show_default=True)
@click.option("--server-arg", multiple=True, help="For vLLM's server, such as --server-arg=--load-format=dummy.")
def main(
    limit: int, concurrency: int, repeat: int, driver_episodes: int, model: str, clembench: Path | None, games: str,
    max_tokens: int, server_arg: tuple[str, ...],
) -> None:  # fmt: skip
    """Measure and print."""
    rows = [driver(driver_episodes, repeat)] if driver_episodes else []
    with tempfile.TemporaryDirectory() as folder:
        names = tuple(games.split(","))
        task = Task(checkout(Path(folder), clembench or DEMO_GAMES, names, limit), names, max_tokens)
        with server(Path(folder), model or str(fetch()), server_arg) as url:
            clem, ours = [], []
            for _ in range(repeat):
                clem.append(timed(clem_run, task, url, Path(folder)))
                ours.append(timed(pairgen_run, task, url, Path(folder), concurrency))
                say(f"clem run {clem[-1]:.1f} s, pairgen rollout {ours[-1]:.1f} s")
    episodes = sum(len(e["game_instances"]) for e in _experiments(task))
    base = statistics.median(clem)
    for name, times in (("clem run", clem), (f"pairgen rollout, {concurrency} open", ours)):
        median = statistics.median(times)
        rows.append(
            (name, f"{median:.1f} s", f"{min(times):.1f} to {max(times):.1f}", f"{base / median:.1f} x clem run")
        )
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, {episodes} episodes, medians of {repeat}")
    print("\n".join(table(rows, ("what", "median", "range", "ratio"))))


def checkout(folder: Path, source: Path, names: Sequence[str], limit: int) -> Path:
    """The games with some of their instances alone (from each experiment in turn), so that both play the same."""
    games = folder / "games"
    for found in source.glob("*/clemgame.json"):
        entries = json.loads(found.read_text())
        listed = {entry["game_name"]: entry for entry in (entries if isinstance(entries, list) else [entries])}
        if not set(names) & set(listed):
            continue
        copied = games / found.parent.name
        shutil.copytree(found.parent, copied)
        kept = [entry for name, entry in listed.items() if name in names]
        (copied / "clemgame.json").write_text(json.dumps(kept))
        for entry in kept:
            path = copied / "in" / f"{entry.get('instances', 'instances')}.json"
            data = json.loads(path.read_text())
            data["experiments"] = limited(data["experiments"], limit)
            path.write_text(json.dumps(data))
    return games


def limited(experiments: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    taken, turn = [0] * len(experiments), 0
    while sum(taken) < limit and any(turn < len(e["game_instances"]) for e in experiments):
        for i, experiment in enumerate(experiments):
            if sum(taken) < limit and turn < len(experiment["game_instances"]):
                taken[i] += 1
        turn += 1
    pairs = zip(experiments, taken, strict=True)
    return [{**e, "game_instances": e["game_instances"][:n]} for e, n in pairs if n]


@contextlib.contextmanager
def server(folder: Path, model: str, arguments: Sequence[str]) -> Iterator[str]:
    """vLLM's OpenAI-compatible server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--served-model-name", NAME, "--max-model-len", "4096", *arguments]
    if cpu_vllm():
        command += ["--enforce-eager", "--dtype", "auto" if cpu_likes_bfloat16() else "float32"]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "2"})
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            if process.poll() is not None:
                raise SystemExit((folder / "server.log").read_text()[-3000:])
            time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(60)


def timed(function, *arguments) -> float:  # type: ignore[no-untyped-def]
    started = time.monotonic()
    function(*arguments)
    return time.monotonic() - started


def clem_run(task: Task, url: str, folder: Path) -> None:
    """As its user runs it: one request at a time."""
    work = task.folder
    (work / "key.json").write_text(json.dumps({"openai_compatible": {"api_key": "none", "base_url": url}}))
    entry = {"model_name": NAME, "model_id": NAME, "backend": "openai_compatible", "model_config": {}}
    (work / "model_registry.json").write_text(json.dumps([entry]))
    shutil.rmtree(folder / "results", ignore_errors=True)
    command = [sys.executable, "-m", "clemcore.cli", "run", "-g", *task.games, "-m", NAME, "-l", str(task.max_tokens)]
    subprocess.run([*command, "-r", str(folder / "results")], cwd=work, check=True, capture_output=True)
    played = len(list((folder / "results").rglob("interactions.json")))
    expected = sum(len(e["game_instances"]) for e in _experiments(task))
    if played != expected:
        raise SystemExit(f"clem run played {played} of {expected} episodes: the comparison would be unfair")


def _experiments(task: Task) -> list[dict[str, Any]]:
    entries = [e for path in task.folder.glob("*/clemgame.json") for e in json.loads(path.read_text())]
    names = {entry["game_name"]: entry.get("instances", "instances") for entry in entries}
    found = [p for n in sorted(set(names.values())) for p in task.folder.glob(f"*/in/{n}.json")]
    return [experiment for path in found for experiment in json.loads(path.read_text())["experiments"]]


def pairgen_run(task: Task, url: str, folder: Path, concurrency: int) -> None:
    command = [sys.executable, "-m", "pairgen.cli", "rollout", "--base-url", url, "--model", NAME, "--clembench"]
    command += [str(task.folder), "--games", ",".join(task.games), "--max-tokens", str(task.max_tokens)]
    command += ["--concurrency", str(concurrency), "--no-exclude-eval", "--out", str(folder / "run"), "--overwrite"]
    subprocess.run(command, check=True, capture_output=True)


def driver(episodes: int, repeat: int) -> tuple[str, str, str, str]:
    """Plays roundtrip with replies that are ready at once; counts the driver's own CPU, not that of the games."""

    async def play(folder: Path) -> tuple[float, float]:
        async with GameServer(folder / "logs") as games:
            worker = await games.worker()
            found = await worker.ask("", op="catalog", clembench=None, cwd=str(folder), selectors=["roundtrip"])
            await worker.close()
            samples = max(1, episodes // len(found["games"][0]["instances"]))
            plan = make_plan(found["games"], limit=0, samples=samples, seed=1, label="m")
            engine = ScriptedEngine(lambda request: f"STOP: x{'x' * len(request.messages)}")
            journal, setting = Journal(folder), Setting("m", Sampling(), folder / "clem")
            cpu = time.process_time()
            tally = await play_all(
                games, engine, found["games"], plan, setting, journal, concurrency=256, on_episode=lambda *_: None
            )
            journal.close()
            return tally.episodes / tally.seconds, 1000 * (time.process_time() - cpu) / tally.moves

    measured = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            measured.append(asyncio.run(play(Path(folder))))
    rates, costs = zip(*measured, strict=True)
    spread = f"{min(rates):.0f} to {max(rates):.0f}"
    cost = f"{statistics.median(costs):.2f} ms CPU a turn"
    return "driver alone", f"{statistics.median(rates):.0f} episodes/s", spread, cost


if __name__ == "__main__":
    main()
