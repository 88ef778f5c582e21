"""Dedup: a pair that says what another one says goes, and its record names the one that stayed. Knows no file.

The limits hold within each strategy: who asks for several strategies wants several spoilt sides of one move, and a
limit over all of them would keep one of these at random; `across_strategies` sets that limit all the same.
Of equal pairs the one with the smallest id stays, so the order of the input never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipelines.first_prompts import Templates
from pipelines.near import near_repeats
from pipelines.slim import decisions, without


class Limits(NamedTuple):
    """At most so many pairs of equal (prompt, chosen), prompts of equal (game, role, chosen), pairs a prompt; 0: all.

    `near` is the similarity, in 0 to 1, from which two pairs count as one; 0 leaves near duplicates in. The strategies
    in `several` set a reply against many others on purpose: they may repeat (prompt, chosen), and differ in what they
    reject alone.
    """

    per_chosen: int = 1
    per_completion: int = 2
    per_prompt: int = 0
    near: float = 0.9
    across_strategies: bool = False
    several: frozenset[str] = frozenset()


DEFAULT_LIMITS = Limits()


def repeats(
    rows: pl.DataFrame,
    limits: Limits = DEFAULT_LIMITS,
    pairs: pl.LazyFrame | None = None,
    templates: Templates | None = None,
) -> pl.DataFrame:
    """Decisions on slim rows: exact duplicates, then repeated (prompt, chosen), near duplicates, and the two caps.

    `pairs` and the `templates` of (game, role) serve near duplicates, which are left in without them. The keeper named
    is always a pair that stays. `score` is 1 where what the rule compares is equal.
    """
    order = rows.sort("pair_id", "strategy", "row")
    scope = () if limits.across_strategies else ("strategy",)
    made = [_over(order, ("prompt", "chosen", "rejected"), 1, "duplicate")]
    left = without(order, made[0])

    def take(decided: pl.DataFrame) -> None:
        nonlocal left
        made.append(decided)
        left = without(left, decided)

    single = ~pl.col("strategy").is_in(sorted(limits.several))
    take(_over(left.filter(single), ("prompt", "chosen", *scope), limits.per_chosen, "repeated_chosen"))
    if limits.near and pairs is not None and templates is not None:
        take(near_repeats(left.filter(single), pairs, templates, limits.near, scope))
    take(_prompts_over(left, ("game", "role", "chosen", *scope), limits.per_completion, "max_per_completion"))
    take(_over(left, ("prompt", *scope), limits.per_prompt, "max_per_prompt"))
    return _to_keepers(pl.concat(made), set(left["pair_id"].to_list()))


def _over(order: pl.DataFrame, by: Sequence[str], limit: int, reason: str) -> pl.DataFrame:
    """What of each group comes after its first `limit`; the first one is named as keeper."""
    if not limit:
        return decisions()
    placed = order.with_columns(
        place=pl.int_range(pl.len()).over(by), keeper=pl.col("pair_id").first().over(by), score=pl.lit(1.0)
    )
    return decisions(placed.filter(pl.col("place") >= limit), reason)


def _prompts_over(order: pl.DataFrame, by: Sequence[str], limit: int, reason: str) -> pl.DataFrame:
    """What of each group comes with another prompt than its first `limit` ones; its first pair is named as keeper."""
    first = order.unique([*by, "prompt"], keep="first", maintain_order=True)
    over = _over(first, by, limit, reason)
    group = [*by, "prompt"]
    gone = first.join(over.select("row", "keeper", "score"), on="row", how="inner").select(*group, "keeper", "score")
    return decisions(order.join(gone, on=group, how="inner", maintain_order="left"), reason) if limit else over


def _to_keepers(decided: pl.DataFrame, kept: set[str]) -> pl.DataFrame:
    """Where a keeper was dropped by a later rule, the one that it was dropped for."""
    keeper = dict(zip(decided["pair_id"].to_list(), decided["keeper"].to_list(), strict=True))

    def last(name: str) -> str:
        met = set()
        while name not in kept and name in keeper and name not in met:
            met.add(name)
            name = keeper[name]
        return name

    return decided.with_columns(pl.Series("keeper", [last(k) for k in decided["keeper"].to_list()], dtype=pl.String))
