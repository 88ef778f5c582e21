"""Thin: takes pairs out until the rule "the longer side loses" (or wins) is right no more often than wanted.

Of the pairs that the rule gets right, those whose sides differ most in length go first, in each game and strategy in
proportion. Where no pair goes against the rule thinning cannot help; then nothing is taken and it is said what would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from pipelines.balance import allot
from pipelines.slim import decisions

LENGTHS = ("chosen_chars", "rejected_chars")


@dataclass(frozen=True, slots=True)
class Thinning:
    """The length rule on one side of the split before and after, in 0 to 1.

    `missing` pairs in which the other side is the longer would be needed where taking out is not enough; else 0.
    """

    split: str
    pairs: int
    removed: int
    before: float
    after: float
    missing: int


class Thinned(NamedTuple):
    decided: pl.DataFrame
    sides: tuple[Thinning, ...]


def thin(rows: pl.DataFrame, max_shortcut: float, lengths: tuple[str, str] = LENGTHS) -> Thinned:
    """Decisions on slim rows after which the length rule is right in at most `max_shortcut` of the pairs.

    Train and test are thinned each for itself, so that what is measured on test is under it too. `max_shortcut` is
    over 0.5 and below 1; ties count half.
    """
    chosen, rejected = (pl.col(c).cast(pl.Int64) for c in lengths)
    told = rows.with_columns(told=(rejected - chosen).sign(), gap=(rejected - chosen).abs() / (chosen + rejected + 1))
    ways = 1 if told["told"].sum() >= 0 else -1
    made, sides = [decisions()], []
    for (name,), side in sorted(told.group_by("split"), key=lambda item: str(item[0])):
        decided, thinning = _thin_side(str(name), side.with_columns(pl.col("told") * ways), max_shortcut)
        made.append(decided)
        sides.append(thinning)
    return Thinned(pl.concat(made), tuple(sides))


def length_rule(rows: pl.DataFrame, lengths: tuple[str, str] = LENGTHS) -> float:
    """How often "the longer side is the rejected one" is right, ties counting half; 0.5 without pairs."""
    chosen, rejected = (pl.col(c).cast(pl.Int64) for c in lengths)
    mean = rows.select((rejected - chosen).sign().mean()).item()
    return 0.5 if mean is None else (1 + float(mean)) / 2


def _thin_side(name: str, side: pl.DataFrame, limit: float) -> tuple[pl.DataFrame, Thinning]:
    count = side.height
    able = int((side["told"] > 0).sum())
    right = able + int((side["told"] == 0).sum()) / 2
    before = right / count
    excess = math.ceil(round((right - limit * count) / (1 - limit), 9))
    if excess <= 0:
        return decisions(), Thinning(name, count, 0, before, before, 0)
    if able == count or excess > able:
        return decisions(), Thinning(name, count, 0, before, before, math.ceil(round(right / limit - count, 9)))
    order = side.filter(pl.col("told") > 0).sort(["gap", "pair_id", "row"], descending=[True, False, False])
    groups = order.group_by("game", "strategy").len().sort("game", "strategy")
    shares = dict(
        zip(groups.select("game", "strategy").iter_rows(), allot(groups["len"].to_list(), excess), strict=True)
    )
    quota = pl.DataFrame([(*key, n) for key, n in shares.items()], schema=["game", "strategy", "quota"], orient="row")
    placed = order.with_columns(place=pl.int_range(pl.len()).over("game", "strategy")).join(
        quota, on=["game", "strategy"], how="left", maintain_order="left"
    )
    gone = placed.filter(pl.col("place") < pl.col("quota")).with_columns(
        keeper=pl.lit(""), score=pl.lit(None, dtype=pl.Float64)
    )
    after = (right - gone.height) / (count - gone.height)
    return decisions(gone, "shortcut"), Thinning(name, count, gone.height, before, after, 0)
