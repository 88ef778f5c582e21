"""Verification speed on a run: all pairs of an episode in one replay, against the game set up for each pair.

Counts the processor time of the game's process, so that what else runs on the machine matters less.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from corruptions import STRATEGIES
from pairgen.clem.client import GameServer
from pairgen.console import say, table
from pairgen.records import Episode, Pair
from pairgen.store import check_run, read_episodes
from pipelines.corrupt import CorruptConfig, build, choose
from pipelines.decontaminate import NO_EVAL_SPLIT
from pipelines.verdicts import Try, tries_of
from pipelines.verify import Referee, ask_referee


class Speed(NamedTuple):
    """Seconds of one game: its episodes replayed once each, and the sampled pairs put to a fresh replay each."""

    game: str
    episodes: int
    pairs: int
    together: list[float]
    sample: int
    apart: list[float]


def pairs_of(episodes: Sequence[Episode], strategies: Sequence[str], moves: int) -> list[Pair]:
    config = CorruptConfig(strategy=tuple(strategies), per_player=0, per_game=moves)
    built = build(episodes, config, choose(strategies, "", STRATEGIES), STRATEGIES, NO_EVAL_SPLIT)
    return [*built.train, *built.test]


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used (Linux); raises OSError elsewhere."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    server: GameServer,
    spec: dict[str, Any],
    episodes: Sequence[Episode],
    pairs: Sequence[Pair],
    sample: int,
    repeat: int,
) -> Speed | str:
    """The speed of one game, or why its game master could not be asked. Loading the game is not counted."""
    known = {e.episode_id: e for e in episodes}
    referee = Referee(server, spec)
    first = await _ask(referee, known, pairs[:1])
    if why := next(
        (f"{v.verdict} ({v.reason[:80].strip(' *')})" for v in first.values() if not (v.accepted or v.violation)), ""
    ):
        await referee.close()
        return why
    few = random.Random(1).sample(list(pairs), min(sample, len(pairs)))
    together, apart = [], []
    for _ in range(repeat):
        started = _clock(referee)
        await _ask(referee, known, pairs)
        together.append(_clock(referee) - started)
        started = _clock(referee)
        for pair in few:
            await _ask(referee, known, [pair])
        apart.append(_clock(referee) - started)
    await referee.close()
    return Speed(spec["game_name"], len({p.episode_id for p in pairs}), len(pairs), together, len(few), apart)


async def _ask(referee: Referee, episodes: dict[str, Episode], pairs: Sequence[Pair]) -> dict[Try, Any]:
    said: dict[Try, Any] = {}
    for name, tries in tries_of(pairs).items():
        said.update(await referee.verdicts(episodes[name], tries))
    return said


def _clock(referee: Referee) -> float:
    worker = referee._worker
    return cpu_seconds(worker.pid) if worker else 0.0


async def catalog(server: GameServer, clembench: Path, games: Sequence[str]) -> dict[str, dict[str, Any]]:
    worker = await server.worker()
    found = await worker.ask("", op="catalog", clembench=str(clembench.resolve()), cwd=str(Path.cwd()),
                             selectors=list(games), lenient=True)  # fmt: skip
    await worker.close()
    return {game["game"]: game["spec"] for game in found["games"]}


async def measure_all(
    episodes: Sequence[Episode], pairs: Sequence[Pair], clembench: Path, sample: int, repeat: int
) -> tuple[list[Speed], float]:
    """Each game by itself, and the wall-clock seconds for all of them on all cores, loading included."""
    by_game: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_game[pair.game].append(pair)
    speeds = []
    with tempfile.TemporaryDirectory() as logs:
        async with GameServer(Path(logs)) as server:
            specs = await catalog(server, clembench, sorted(by_game))
            for game, found in sorted(by_game.items()):
                if game not in specs:
                    say(f"{game} is left out: it is not in {clembench}")
                    continue
                speed = await measure(server, specs[game], episodes, found, sample, repeat)
                if isinstance(speed, str):
                    say(f"{game} is left out: {speed}")
                else:
                    speeds.append(speed)
                    say("  ".join(map(str, rows_of([speed])[0])))
            judged = [pair for pair in pairs if pair.game in {s.game for s in speeds}]
            started = time.monotonic()
            await ask_referee(server, specs, episodes, tries_of(judged), lambda _: None)
            return speeds, time.monotonic() - started


def rows_of(speeds: Sequence[Speed]) -> list[tuple[object, ...]]:
    """Pairs a second of one core, both ways, and the ratio; the last row weighs the games by their pairs."""
    rows: list[tuple[object, ...]] = []
    whole = [0.0, 0.0]
    for speed in speeds:
        together = statistics.median(speed.together) / speed.pairs
        apart = statistics.median(speed.apart) / speed.sample
        whole[0] += together * speed.pairs
        whole[1] += apart * speed.pairs
        rows.append((speed.game, speed.episodes, speed.pairs, *_rates(together, apart)))
    pairs = sum(s.pairs for s in speeds)
    if pairs:
        rows.append(("all", sum(s.episodes for s in speeds), pairs, *_rates(whole[0] / pairs, whole[1] / pairs)))
    return rows


def _rates(together: float, apart: float) -> tuple[str, str, str]:
    least = 1e-6  # a clock tick is 10 ms: what took none is no rate
    return f"{1 / max(together, least):.1f}", f"{1 / max(apart, least):.1f}", f"{apart / max(together, least):.1f}"


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--clembench", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option(
    "--strategy", multiple=True, default=("verbose", "looping", "format_break", "role_bleed"), show_default=True
)
@click.option("--games", default="", help="These games alone, separated by commas [all].")
@click.option("--moves", default=0, help="The most moves a game [all].")
@click.option("--sample", default=30, show_default=True, help="Pairs a game that are put to a replay of their own.")
@click.option("--repeat", default=3, show_default=True)
def main(
    run: Path, clembench: Path, strategy: tuple[str, ...], games: str, moves: int, sample: int, repeat: int
) -> None:
    """Measure and print."""
    check_run(run)
    names = {name for name in games.split(",") if name}
    episodes = [e for e in read_episodes(run) if not names or e.game in names]
    pairs = pairs_of(episodes, strategy, moves)
    speeds, wall = asyncio.run(measure_all(episodes, pairs, clembench, sample, repeat))
    header = ("game", "episodes", "pairs", "pairs/s of a core", "set up for each", "ratio")
    print("\n".join(table(rows_of(speeds), header)))
    judged = sum(s.pairs for s in speeds)
    print(f"all games on {os.cpu_count()} cores, loading included: {judged} pairs in {wall:.1f} s of wall clock "
          f"({judged / wall:.1f} pairs/s); medians of {repeat}")  # fmt: skip


if __name__ == "__main__":
    main()
