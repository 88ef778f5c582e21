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
from collections.abc import Iterator
from pathlib import Path

import click

from pairgen.clem.client import DEMO_GAMES, GameServer
from pairgen.console import table
from pairgen.engines import Sampling
from pairgen.engines.scripted import ScriptedEngine
from pairgen.store import Journal
from pipelines.fetch_model import fetch
from pipelines.plan import make_plan
from pipelines.rollout import Setting, play_all

NAME = "smollm2"


@click.command()
@click.option("--limit", default=8, show_default=True, help="Instances a game.")
@click.option("--concurrency", default=64, show_default=True)
@click.option("--repeat", default=3, show_default=True)
@click.option("--driver-episodes", default=3000, show_default=True)
def main(limit: int, concurrency: int, repeat: int, driver_episodes: int) -> None:
    """Measure and print."""
    rows = [driver(driver_episodes, repeat)]
    with tempfile.TemporaryDirectory() as folder:
        games = checkout(Path(folder), limit)
        with server(Path(folder)) as url:
            clem = [timed(clem_run, games, url, Path(folder)) for _ in range(repeat)]
            ours = [timed(pairgen_run, games, url, Path(folder), concurrency) for _ in range(repeat)]
    base = statistics.median(clem)
    for name, times in (("clem run", clem), (f"pairgen rollout, {concurrency} open", ours)):
        median = statistics.median(times)
        rows.append(
            (name, f"{median:.1f} s", f"{min(times):.1f} to {max(times):.1f}", f"{base / median:.1f} x clem run")
        )
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, {3 * limit} episodes, medians of {repeat}")
    print("\n".join(table(rows, ("what", "median", "range", "ratio"))))


def checkout(folder: Path, limit: int) -> Path:
    """The demo games with their first instances alone, so that both play the same."""
    games = folder / "games"
    for name in ("hintmatch", "roundtrip", "wordweave"):
        shutil.copytree(DEMO_GAMES / name, games / name)
        path = games / name / "in" / "instances.json"
        data = json.loads(path.read_text())
        half = (limit + 1) // 2
        for experiment, size in zip(data["experiments"], (half, limit - half), strict=True):
            experiment["game_instances"] = experiment["game_instances"][:size]
        path.write_text(json.dumps(data))
    return games


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """vLLM's OpenAI-compatible server with SmolLM2-135M-Instruct."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(fetch()),
        "--served-model-name",
    ]
    command += [NAME, "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "4096", "--enforce-eager"]
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


def clem_run(games: Path, url: str, folder: Path) -> None:
    """As its user runs it: one request at a time."""
    work = games
    (work / "key.json").write_text(json.dumps({"openai_compatible": {"api_key": "none", "base_url": url}}))
    entry = {"model_name": NAME, "model_id": NAME, "backend": "openai_compatible", "model_config": {}}
    (work / "model_registry.json").write_text(json.dumps([entry]))
    shutil.rmtree(folder / "results", ignore_errors=True)
    command = [sys.executable, "-m", "clemcore.cli", "run", "-g", "hintmatch", "roundtrip", "wordweave", "-m", NAME]
    subprocess.run([*command, "-r", str(folder / "results")], cwd=work, check=True, capture_output=True)
    played = len(list((folder / "results").rglob("interactions.json")))
    expected = sum(len(e["game_instances"]) for e in _experiments(games))
    if played != expected:
        raise SystemExit(f"clem run played {played} of {expected} episodes: the comparison would be unfair")


def _experiments(games: Path) -> list[dict[str, list[object]]]:
    found = [json.loads(path.read_text())["experiments"] for path in games.glob("*/in/instances.json")]
    return [experiment for experiments in found for experiment in experiments]


def pairgen_run(games: Path, url: str, folder: Path, concurrency: int) -> None:
    command = [sys.executable, "-m", "pairgen.cli", "rollout", "--base-url", url, "--model", NAME, "--clembench"]
    command += [str(games), "--games", "hintmatch,roundtrip,wordweave", "--concurrency", str(concurrency)]
    subprocess.run([*command, "--out", str(folder / "run"), "--overwrite"], check=True, capture_output=True)


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
