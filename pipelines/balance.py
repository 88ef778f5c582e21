"""Balance: caps and shares for games, instances and strategies, drawn by the seed and spread evenly. Knows no file.

A cap never takes from one corner alone: of a game it goes round its strategies, experiments and instances. What could
not be filled is said, not made up for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from pairgen.records import content_id
from pipelines.slim import decisions, without

INSTANCE = ("game", "experiment", "task_id")


@dataclass(frozen=True, slots=True)
class Quota:
    """The most pairs of an instance and of a game, the weights of strategies (1 where not named), and the wanted total.

    0 is no limit, and no weights leave the strategies as they are.
    """

    per_instance: int = 0
    per_game: int = 0
    per_strategy: tuple[tuple[str, float], ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class Shortage:
    """Fewer pairs than asked for: of a game, of a strategy, or in all."""

    option: str
    name: str
    wanted: int
    got: int


class Balanced(NamedTuple):
    decided: pl.DataFrame
    short: tuple[Shortage, ...]


def balance(rows: pl.DataFrame, quota: Quota, seed: int) -> Balanced:
    """Decisions on slim rows: per instance, then per strategy, per game, and the total with its proportions kept."""
    left = _ranked(rows, seed)
    made = [decisions()]
    short: list[Shortage] = []

    def take(kept: pl.DataFrame, reason: str) -> None:
        nonlocal left
        gone = without(left, kept).with_columns(keeper=pl.lit(""), score=pl.lit(None, dtype=pl.Float64))
        made.append(decisions(gone, reason))
        left = without(left, gone)

    if quota.per_instance:
        take(_even(left, INSTANCE, ("strategy", "role"), quota.per_instance), "per_instance")
    if quota.per_strategy:
        take(_weighted(left, dict(quota.per_strategy), short), "per_strategy")
    if quota.per_game:
        take(_even(left, ("game",), ("strategy", *INSTANCE), quota.per_game), "per_game")
        short += _short(left, "game", quota.per_game)
    if quota.total:
        if left.height < quota.total:
            short.append(Shortage("total", "", quota.total, left.height))
        take(_proportional(left, ("game", "strategy"), quota.total), "total")
    return Balanced(pl.concat(made), tuple(short))


def allot(sizes: Sequence[int], total: int) -> list[int]:
    """`total` shared out in proportion to the sizes, none over its size; what remains goes to the largest fractions."""
    whole = sum(sizes)
    if total >= whole:
        return list(sizes)
    shares = [size * total // whole for size in sizes]
    fractions = sorted(range(len(sizes)), key=lambda i: (-(sizes[i] * total % whole), i))
    for i in fractions[: total - sum(shares)]:
        shares[i] += 1
    return shares


def _ranked(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    ranks = [content_id(seed, "balance", name) for name in rows["pair_id"].to_list()]
    return rows.with_columns(rank=pl.Series(ranks, dtype=pl.String)).sort("rank", "pair_id", "row")


def _even(rows: pl.DataFrame, group: Sequence[str], within: Sequence[str], limit: int) -> pl.DataFrame:
    """At most `limit` of each group, the first of each of its parts before the second of any.

    Parts are nested: the first name of `within` is filled evenly before the next one is looked at.
    """
    order = rows
    for depth in range(len(within), 0, -1):
        keys = [*group, *within[:depth]]
        order = order.with_columns(turn=pl.int_range(pl.len()).over(keys)).sort("turn", maintain_order=True)
    return order.with_columns(place=pl.int_range(pl.len()).over(*group)).filter(pl.col("place") < limit)


def _weighted(rows: pl.DataFrame, weights: Mapping[str, float], short: list[Shortage]) -> pl.DataFrame:
    """As many of each strategy as the weights and the scarcest one allow; one of weight 0 goes."""
    have = dict(rows.group_by("strategy").len().sort("strategy").iter_rows())
    wanted = {name: weights.get(name, 1.0) for name in have}
    short += [Shortage("per_strategy", name, 1, 0) for name in sorted(weights) if weights[name] and name not in have]
    scale = min((have[name] / weight for name, weight in wanted.items() if weight), default=0.0)
    kept = [
        _even(rows.filter(pl.col("strategy") == name), ("strategy",), INSTANCE, round(scale * weight))
        for name, weight in wanted.items()
        if weight
    ]
    return pl.concat([rows.clear().with_columns(turn=pl.lit(0, pl.Int64), place=pl.lit(0, pl.Int64)), *kept])


def _proportional(rows: pl.DataFrame, group: Sequence[str], total: int) -> pl.DataFrame:
    sizes = rows.group_by(*group).len().sort(*group)
    quota = sizes.select(*group).with_columns(quota=pl.Series(allot(sizes["len"].to_list(), total), dtype=pl.Int64))
    placed = rows.with_columns(place=pl.int_range(pl.len()).over(*group))
    return placed.join(quota, on=[*group], how="left", maintain_order="left").filter(pl.col("place") < pl.col("quota"))


def _short(rows: pl.DataFrame, name: str, wanted: int) -> list[Shortage]:
    counts = rows.group_by(name).len().filter(pl.col("len") < wanted).sort(name)
    return [Shortage(f"per_{name}", key, wanted, got) for key, got in counts.iter_rows()]
