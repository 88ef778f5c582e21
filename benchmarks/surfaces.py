"""How varied verbose is: what it adds to the moves of a run, and how much longer its side is. Prints a table."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from corruptions import STRATEGIES
from pairgen.console import table
from pairgen.records import Episode
from pairgen.store import read_episodes
from pairgen.strategy import Choice
from pipelines.harvest import Caps, find_peers, harvest
from pipelines.spoil import corrupt


class Sides(NamedTuple):
    chosen: str
    rejected: str


def surface(sides: Sides) -> str:
    """What was added: the rejected side without the chosen one around or within it, white space as single spaces.

    The chosen side is taken out whole where it stands at an end, else as the longest beginning that the rejected side
    shares with it and the rest of it at the end.
    """
    chosen, rejected = sides.chosen.strip(), sides.rejected.strip()
    if rejected.startswith(chosen):
        added = rejected[len(chosen) :]
    elif rejected.endswith(chosen):
        added = rejected[: len(rejected) - len(chosen)]
    else:
        head = next((i for i, (a, b) in enumerate(zip(chosen, rejected, strict=False)) if a != b), len(chosen))
        rest = chosen[head:].strip()
        added = rejected[head:]
        added = added[: len(added) - len(rest)] if rest and added.endswith(rest) else added
    return " ".join(added.split())


def wording(sides: Sides) -> str:
    """The words of the surface alone: no case, no punctuation, no markup."""
    return " ".join(re.findall(r"\w+", surface(sides).casefold()))


def collect(episodes: Sequence[Episode], count: int) -> tuple[list[Sides], int, int]:
    """`count` pairs: all won moves with seed 1, then with seed 2, and so on; with the moves and seeds that it took."""
    moves, found, seed = harvest(episodes, Caps(0, 0), 0).kept, [], 0
    if not moves:
        raise SystemExit("this run has no move that was won")
    while len(found) < count:
        seed += 1
        made = corrupt(moves, [Choice("verbose", 1.0, {})], STRATEGIES, find_peers(episodes, seed), seed)
        found += [Sides(p.chosen[0].content, p.rejected[0].content) for p in made.pairs]
    return found[:count], len(moves), seed


def published(path: Path) -> list[Sides]:
    """The pairs of a file as preference sets are published: a list of objects whose sides are text or messages."""
    return [Sides(_text(row["chosen"]), _text(row["rejected"])) for row in json.loads(path.read_text(encoding="utf-8"))]


def _text(side: Any) -> str:
    return side if isinstance(side, str) else side[-1]["content"]


def measure(name: str, pairs: Sequence[Sides]) -> tuple[str, ...]:
    """One line: how many surfaces, the share of the most common one, and quartiles of the length ratio."""
    cells = [name, str(len(pairs))]
    for read in (surface, wording):
        counts = Counter(map(read, pairs))
        cells += [str(len(counts)), f"{counts.most_common(1)[0][1] / len(pairs):.1%}"]
    ratios = [len(p.rejected) / len(p.chosen) for p in pairs if p.chosen]
    quartiles = statistics.quantiles(ratios, n=4, method="inclusive")
    return (*cells, *(f"{x:.2f}" for x in (min(ratios), *quartiles, max(ratios))))


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--beside", type=click.Path(exists=True, dir_okay=False, path_type=Path), multiple=True,
              help="A published set (JSON, a list of pairs); repeatable.")  # fmt: skip
@click.option("--count", default=1000, show_default=True)
def main(run: Path, beside: tuple[Path, ...], count: int) -> None:
    """Measure `verbose` on a run, beside published sets."""
    pairs, moves, seeds = collect(read_episodes(run), count)
    rows = [measure("verbose", pairs), *(measure(path.name, published(path)) for path in beside)]
    print(f"verbose: the first {count} pairs of {moves} won moves with seeds 1 to {seeds}")
    header = (
        "set",
        "pairs",
        "surfaces",
        "most common",
        "wordings",
        "most common wording",
        "ratio min",
        "25%",
        "50%",
        "75%",
        "max",
    )
    print("\n".join(table(rows, header)))


if __name__ == "__main__":
    main()
