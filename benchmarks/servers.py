"""Two servers, one of them killed on the way and started again later: nothing may be lost, and both must be used.

Prints which server answered how much before the kill, while it rested, and after. Exits 1 where an episode is missing,
was played twice, or failed, where the other server did not take over, or where the killed one was not used again.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import click
from scripted_server import MODEL, ServerProcess, demo_instances

from pairgen.console import table
from pairgen.engines.openai_ import REST_S
from pairgen.records import Episode, EpisodeKey
from pairgen.store import read_journal


class Times(NamedTuple):
    """When the first server was killed, and when it was there again (of `time.time`)."""

    killed: float
    back: float


@click.command()
@click.option("--samples", default=2, show_default=True)
@click.option("--concurrency", default=12, show_default=True)
@click.option("--latency", default=4.5, show_default=True, help="Seconds a reply; the run must last beyond the rest.")
@click.option("--kill-at", default=0.3, show_default=True, help="Share of the episodes after which one server dies.")
@click.option("--away", default=10.0, show_default=True, help="Seconds until it is started again.")
@click.option("--seed", default=1, show_default=True)
def main(samples: int, concurrency: int, latency: float, kill_at: float, away: float, seed: int) -> None:
    """Play with both, kill one, start it again, and see who answered what."""
    total = samples * demo_instances()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, servers = Path(name), [ServerProcess(Path(name), latency_s=latency) for _ in range(2)]
        for server in servers:
            stack.callback(server.kill)
            server.start()
        command = [sys.executable, "-m", "pairgen.cli", "rollout", "--games", "demo", "--samples", str(samples)]
        command += ["--temperature", "0.7", "--concurrency", str(concurrency), "--seed", str(seed), "--model", MODEL]
        command += [word for server in servers for word in ("--base-url", server.url)]
        with (folder / "said").open("w+") as said:
            driver = subprocess.Popen([*command, "--out", str(folder / "run")], stdout=said, stderr=said)
            stack.callback(driver.kill)
            times = disturb(driver, folder / "run", servers[0], int(kill_at * total), away)
            if driver.wait():
                raise SystemExit(f"rollout ended with {driver.returncode}: {(folder / 'said').read_text()[-2000:]}")
        episodes = list(read_journal(folder / "run"))
        problems = judge(episodes, servers, times, total)
    print(f"{len(episodes)} episodes; a server that failed rests for {REST_S:g} s")
    print("\n".join(problems) or "nothing lost; the other server took over; the killed one was used again")
    sys.exit(1 if problems else 0)


def disturb(driver: subprocess.Popen[bytes], run: Path, server: ServerProcess, after: int, away: float) -> Times:
    """Kill the server after so many episodes, and start it again `away` seconds later."""
    journal = run / "episodes.jsonl"
    while driver.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= after):
        time.sleep(0.05)
    server.kill()
    killed = time.time()
    time.sleep(away)
    server.start()
    return Times(killed, time.time())


def judge(episodes: list[Episode], servers: list[ServerProcess], times: Times, total: int) -> list[str]:
    """Print who answered what and when; returns what is not as it must be. The seed of a request names its move."""
    moves = {(e.seed + index) % 2**31: e.key for e in episodes for index in range(len(e.moves))}
    answers = [
        (number, moves[answer.seed], answer.when)
        for number, server in enumerate(servers)
        for answer in server.served()
        if answer.seed in moves
    ]
    ends = (times.killed, times.back, times.killed + REST_S, float("inf"))
    phases = ("both serve", "the first is dead", "it is back, and left alone", "it is tried again")
    rows, starts = [], (0.0, *ends)
    for name, start, end in zip(phases, starts, ends, strict=False):
        within = [(number, key) for number, key, when in answers if start <= when < end]
        counts = [(sum(n == i for n, _ in within), len({key for n, key in within if n == i})) for i in range(2)]
        rows.append((name, *(cell for count in counts for cell in count)))
    header = ("when", "first: replies", "episodes", "second: replies", "episodes")
    print("\n".join(table(rows, header)))
    return _problems(episodes, answers, rows, times, total)


def _problems(
    episodes: list[Episode],
    answers: list[tuple[int, EpisodeKey, float]],
    rows: list[tuple[str, int, int, int, int]],
    times: Times,
    total: int,
) -> list[str]:
    keys = Counter(episode.key for episode in episodes)
    before = [(n, key) for n, key, when in answers if when < times.killed]
    moved = {key for n, key in before if n == 0} & {key for n, key, when in answers if n == 1 and when > times.killed}
    print(f"episodes that the first server began and the second one ended: {len(moved)}")
    found = {
        f"{total - len(keys)} episodes are missing": len(keys) != total,
        "an episode was played twice": max(keys.values()) > 1,
        "an episode failed": any(episode.outcome == "error" for episode in episodes),
        "an episode changed its server without need": len(set(before)) != len({key for _, key in before}),
        "no episode went on at the other server": rows[1][1] > 0 or not moved,
        "the killed server was not used again": not rows[3][1],
    }
    return [problem for problem, is_so in found.items() if is_so]


if __name__ == "__main__":
    main()
