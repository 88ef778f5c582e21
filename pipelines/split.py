"""Split: train and test by instance, never by row, so that no task is on both sides. Knows no file.

The same task under two numbers (equal content) counts as one, and so does, where it is known, what asks the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from pairgen.records import InstanceKey, content_id


class Task(NamedTuple):
    """Instances that are one task: the smallest key, and all their pairs."""

    key: InstanceKey
    pairs: int
    members: tuple[InstanceKey, ...]


def sides(rows: pl.DataFrame, test_size: float, seed: int, asked: str = "") -> pl.DataFrame:
    """The slim rows with `split` set: about `test_size` of the pairs of each game in test, whole instances at a time.

    Each game keeps at least one instance in train; where there are two instances or more, one at least is in test
    (unless `test_size` is 0). What a game cannot give exactly, the next one makes up for.

    `asked` may name a column that is equal where prompts ask the same, and null where that is not known: such
    instances then fall on one side too.
    """
    key = ["game", "experiment", "task_id"]
    asks = pl.concat_str(pl.lit("asks "), pl.col(asked)) if asked else pl.lit("")
    named = rows.select(*key, "instance_hash", asks.fill_null("").alias("asks"))
    counted = named.group_by(*key, "instance_hash", "asks").len().sort(*key, "instance_hash", "asks")
    met = [(InstanceKey(*row[:3]), row[3:5], row[5]) for row in counted.iter_rows()]
    test = _test_side(_tasks(met), test_size, seed)
    chosen = pl.DataFrame(sorted(test), schema={k: rows.schema[k] for k in key}, orient="row")
    marked = rows.drop("split", strict=False).join(
        chosen.with_columns(split=pl.lit("test")), on=key, how="left", maintain_order="left"
    )
    return marked.with_columns(pl.col("split").fill_null("train"))


def shared(rows: pl.DataFrame, asked: str = "first") -> pl.DataFrame:
    """What train and test both ask: `asked`, a game, and the pairs of each side; empty where the split holds.

    Rows whose `asked` is null (a prompt that is nothing but its game's template) are not looked at.
    """
    known = rows.filter(pl.col(asked).is_not_null())
    both = known.group_by(asked).agg(
        pl.col("game").min(), *((pl.col("split") == side).sum().alias(side) for side in ("train", "test"))
    )
    return both.filter((pl.col("train") > 0) & (pl.col("test") > 0)).sort("game", asked)


def _test_side(tasks: Sequence[Task], test_size: float, seed: int) -> set[InstanceKey]:
    by_game: dict[str, list[Task]] = defaultdict(list)
    rank = {task.key: content_id(seed, task.key) for task in tasks}
    for task in sorted(tasks, key=lambda t: rank[t.key]):
        by_game[task.key.game].append(task)
    test: list[Task] = []
    owed = 0.0
    for game in sorted(by_game):
        owed += test_size * sum(task.pairs for task in by_game[game])
        left = len(by_game[game])
        for task in by_game[game]:
            if left > 1 and abs(owed - task.pairs) < abs(owed):
                test.append(task)
                owed -= task.pairs
                left -= 1
    if test_size and not test and len(tasks) > 1:
        test = [min(tasks, key=lambda t: (t.pairs, rank[t.key]))]
    return {member for task in test for member in task.members}


def _tasks(met: Iterable[tuple[InstanceKey, tuple[str, ...], int]]) -> list[Task]:
    """Instances joined where a name of what they ask is equal; an empty name joins nothing."""
    parent: dict[InstanceKey | str, InstanceKey | str] = {}

    def root(node: InstanceKey | str) -> InstanceKey | str:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    pairs: dict[InstanceKey, int] = defaultdict(int)
    for key, names, count in met:
        pairs[key] += count
        for name in filter(None, names):
            parent[root(name)] = root(key)
    groups: dict[InstanceKey | str, list[InstanceKey]] = defaultdict(list)
    for key in pairs:
        groups[root(key)].append(key)
    return [Task(min(g), sum(pairs[k] for k in g), tuple(sorted(g))) for g in groups.values()]
