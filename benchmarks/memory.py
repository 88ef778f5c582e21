"""Memory of a long rollout: the real command with a scripted engine, its processes looked at from outside.

Prints the curve, and exits 1 unless driver and workers stay steady once a fifth of the episodes was played.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import polars as pl
from processes import resident_mb, workers

from pairgen.clem.client import DEMO_GAMES
from pairgen.console import table

REPLIES = {"default": "SENTENCE: A short answer that misses the words."}
HEADER = ("episodes", "seconds", "driver MiB", "workers MiB", "workers")
WARM_UP = 0.2
BYTES_AN_EPISODE = 100
"""What an episode may leave behind before memory is called growing; its key alone, kept as an object, is larger."""


class Sample(NamedTuple):
    """Resident MiB when so many episodes had ended, `seconds` after the start; `played` once no worker is left."""

    episodes: int
    seconds: float
    driver: float
    workers: float
    processes: int
    played: bool


@click.command()
@click.option("--episodes", default=100_000, show_default=True, help="At least so many: whole samples are played.")
@click.option("--game", default="wordweave", show_default=True, help="A demo game.")
@click.option("--concurrency", default=64, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--points", default=20, show_default=True, help="Lines of the curve.")
def main(episodes: int, game: str, concurrency: int, seed: int, points: int) -> None:
    """Play, print the curve, and judge it."""
    experiments = json.loads((DEMO_GAMES / game / "in" / "instances.json").read_text())["experiments"]
    instances = sum(len(e["game_instances"]) for e in experiments)
    samples = -(-episodes // instances)
    command = [sys.executable, "-m", "pairgen.cli", "rollout", "--engine", "scripted", "--games", game]
    command += ["--samples", str(samples), "--temperature", "0.7", "--seed", str(seed), "--concurrency"]
    with tempfile.TemporaryDirectory() as folder:
        replies, run = Path(folder) / "replies.json", Path(folder) / "run"
        replies.write_text(json.dumps(REPLIES))
        found = play([*command, str(concurrency), "--model", str(replies), "--out", str(run)], run)
        keys = pl.read_parquet(run / "episodes.parquet", columns=["game", "experiment", "task_id", "sample"])
    sys.exit(0 if report(found, keys, samples * instances, points) else 1)


def report(found: list[Sample], keys: pl.DataFrame, total: int, points: int) -> bool:
    """Print the curve; whether every episode is there once, and memory was steady."""
    playing, finishing = [s for s in found if not s.played], [s for s in found if s.played]
    print("\n".join(table(list(map(row, spread(playing, points))), HEADER)))
    peak = max((s.driver for s in finishing), default=0.0)
    print(f"tables and manifest: {found[-1].seconds - playing[-1].seconds:.0f} s, the driver's peak {peak:.0f} MiB")
    print(f"{keys.height} episodes, {keys.n_unique()} different, {playing[-1].seconds:.0f} s to play with start-up")
    good = keys.height == keys.n_unique() == total
    for name in ("driver", "workers"):
        left = slope([(s.episodes, getattr(s, name)) for s in playing if s.episodes >= WARM_UP * keys.height])
        good &= left <= BYTES_AN_EPISODE
        print(
            f"{name}: an episode leaves {left:.0f} bytes behind ({'steady' if left <= BYTES_AN_EPISODE else 'GROWS'})"
        )
    return good


def row(sample: Sample) -> tuple[int, ...]:
    s = sample
    return s.episodes, round(s.seconds), round(s.driver), round(s.workers), s.processes


def play(command: list[str], run: Path) -> list[Sample]:
    """Run the command to its end, which must be good, and look at it all the while."""
    with (run.parent / "said").open("w+") as said:
        driver = subprocess.Popen(command, stdout=said, stderr=said)
        found = list(watch(driver, run))
        if driver.wait():
            said.seek(0)
            raise SystemExit(f"rollout ended with {driver.returncode}: {said.read()[-2000:]}")
    return found


def watch(driver: subprocess.Popen[bytes], run: Path) -> Iterator[Sample]:
    """A sample every half second, from the first finished episode on."""
    started, episodes, place = time.monotonic(), 0, 0
    while driver.poll() is None:
        time.sleep(0.5)
        if not (run / "episodes.jsonl").exists():
            continue
        with (run / "episodes.jsonl").open("rb") as journal:
            journal.seek(place)
            new = journal.read()
        place, episodes = place + len(new), episodes + new.count(b"\n")
        games = workers(driver.pid)
        driver_mb = resident_mb(driver.pid)
        if driver_mb and episodes:
            seconds = time.monotonic() - started
            workers_mb = resident_mb(*games)  # 0 where they have just ended
            yield Sample(episodes, seconds, driver_mb, workers_mb, len(games), not workers_mb)


def spread(samples: list[Sample], points: int) -> list[Sample]:
    """About so many of the samples, evenly spread over the episodes, the first and the last among them."""
    step = max(1, samples[-1].episodes // points)
    first = {sample.episodes // step: sample for sample in reversed(samples)}
    return sorted({*first.values(), samples[-1]})


def slope(points: list[tuple[int, float]]) -> float:
    """Bytes an episode by least squares; 0 where there are too few points to tell."""
    if len(points) < 3:
        return 0.0
    n, sx, sy = len(points), sum(x for x, _ in points), sum(y for _, y in points)
    sxx, sxy = sum(x * x for x, _ in points), sum(x * y for x, y in points)
    return (n * sxy - sx * sy) / max(1, n * sxx - sx * sx) * 2**20


if __name__ == "__main__":
    main()
