"""Lengths: how long one column of a pair set is, in characters or tokens."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lengths:
    """Characters, or tokens, of one column."""

    column: str
    median: int
    p90: int
    max: int


def lengths_of(column: str, sizes: Sequence[int]) -> Lengths:
    """The lengths of a column; `sizes` has one at least."""
    return Lengths(column, round(statistics.median(sizes)), sorted(sizes)[(len(sizes) * 9) // 10], max(sizes))
