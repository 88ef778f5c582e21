"""Refine: clean pairs become both sides of a set: dedup, trainer checks, balance, split, thinning, audit. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from pairgen.records import Drop, Pair
from pipelines.audit import Shortcut, audit
from pipelines.balance import Quota, Shortage, balance
from pipelines.dedup import Limits, repeats
from pipelines.first_prompts import Templates, with_asked
from pipelines.funnel import StageCount, count_stage
from pipelines.lengths import Bin, Lengths, bins_of, lengths_of
from pipelines.slim import dropped, frame_of, slim, without
from pipelines.split import shared, sides
from pipelines.thin import Thinning, thin
from pipelines.tokens import COUNTED, Counted, Tokenizer, check_tokens


class Plan(NamedTuple):
    """What the set is to be like. `max_shortcut` is the most that the length rule may be right, in 0.5 to 1; 0: any.

    Without `limits` repeats stay. `max_length` is in tokens; 0 is no limit.
    """

    limits: Limits | None
    quota: Quota
    test_size: float
    seed: int
    max_shortcut: float = 0.0
    max_length: int = 0


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """The pairs as a trainer sees them, in tokens of one tokenizer.

    `needed_length` is the max_length that cuts nothing of the sound pairs, dropped ones over `max_length` among them.
    `broken_prefix` counts pairs whose prompt the chat template writes otherwise once a reply follows. `totals` counts
    the finished pairs by the tokens of the prompt and the longer side.
    """

    max_length: int
    needed_length: int
    broken_prefix: int
    lengths: tuple[Lengths, ...]
    totals: tuple[Bin, ...] = ()


@dataclass(frozen=True, slots=True)
class Quality:
    """What the finished set is like.

    `shortcuts` is the audit; `thinned` the length rule before and after thinning; `short` what there was too little of;
    `shared` counts tasks that train and test both ask; `tokens` is there where a tokenizer was.
    """

    shortcuts: tuple[Shortcut, ...] = ()
    thinned: tuple[Thinning, ...] = ()
    short: tuple[Shortage, ...] = ()
    shared: int = 0
    tokens: TokenCheck | None = None


NO_QUALITY = Quality()


class Refined(NamedTuple):
    """`train`, `test` (by id, each pair with its side noted) and `drops` are the input."""

    train: list[Pair]
    test: list[Pair]
    drops: list[Drop]
    stages: tuple[StageCount, ...]
    quality: Quality


def refine(pairs: Sequence[Pair], templates: Templates, plan: Plan, tokenizer: Tokenizer | None = None) -> Refined:
    """Take out what repeats, what a trainer would trip over, and what is over a quota; split the rest and audit it.

    Trainer checks come before quotas, so that these are filled with sound pairs.
    """
    listed = sorted(pairs, key=lambda p: (p.pair_id, p.strategy))
    frame = frame_of(listed)
    rows = slim(frame)
    drops: list[Drop] = []
    stages: list[StageCount] = []

    def take(stage: str, decided: pl.DataFrame) -> None:
        nonlocal rows
        gone = dropped(listed, decided, stage)
        stages.append(count_stage(stage, "pairs", rows.height, rows.height - len(gone), gone))
        drops.extend(gone)
        rows = without(rows, decided)

    short: tuple[Shortage, ...] = ()
    thinned: tuple[Thinning, ...] = ()
    if plan.limits:
        take("dedup", repeats(rows, plan.limits, frame, templates))
    counted = check_tokens(rows, frame, tokenizer, plan.max_length) if tokenizer else None
    if counted:
        rows = counted.rows
        take("tokens", counted.decided)
    if plan.quota != Quota():
        balanced = balance(rows, plan.quota, plan.seed)
        short = balanced.short
        take("balance", balanced.decided)
    rows = sides(with_asked(rows, frame, templates), plan.test_size, plan.seed, "asked")
    both = shared(rows, "asked").height
    if plan.max_shortcut and rows.height:
        found = thin(rows, plan.max_shortcut)
        thinned = found.sides
        take("shortcut", found.decided)
    quality = Quality(
        tuple(audit(rows, frame, plan.seed)), thinned, _short(short, plan.quota.total, rows.height), both,
        _checked(plan.max_length, counted, rows) if counted else None,
    )  # fmt: skip
    return Refined(*_parts(listed, rows), drops, tuple(stages), quality)


def _short(short: Sequence[Shortage], total: int, pairs: int) -> tuple[Shortage, ...]:
    """With the total as it is in the end: thinning takes pairs, too."""
    other = [s for s in short if s.option != "total"]
    return (*other, *([Shortage("total", "", total, pairs)] if pairs < total else []))


def _checked(max_length: int, counted: Counted, rows: pl.DataFrame) -> TokenCheck:
    totals = rows.select(pl.col("prompt_tokens") + pl.max_horizontal("chosen_tokens", "rejected_tokens")).to_series()
    return TokenCheck(
        max_length, counted.needed_length, counted.broken_prefix, _tokens(rows), bins_of(totals.to_list())
    )


def _tokens(rows: pl.DataFrame) -> tuple[Lengths, ...]:
    return tuple(lengths_of(name.removesuffix("_tokens"), rows[name].to_list()) for name in COUNTED if rows.height)


def _parts(listed: Sequence[Pair], rows: pl.DataFrame) -> tuple[list[Pair], list[Pair]]:
    found: dict[str, list[Pair]] = {"train": [], "test": []}
    for row, side in rows.sort("row").select("row", "split").iter_rows():
        found[side].append(dataclasses.replace(listed[row], split=side))
    return found["train"], found["test"]
