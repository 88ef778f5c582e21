"""Lengths: how long one column of a pair set is, in characters or tokens."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


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


@dataclass(frozen=True, slots=True)
class Bin:
    """So many are at least `low` and below `high` long."""

    low: int
    high: int
    pairs: int


def bins_of(sizes: Sequence[int], most: int = 36) -> tuple[Bin, ...]:
    """A histogram from 0 in at most so many bins, all equally wide; none without sizes."""
    if not sizes:
        return ()
    width = max(1, math.ceil((max(sizes) + 1) / most))
    counts = Counter(size // width for size in sizes)
    return tuple(Bin(i * width, (i + 1) * width, counts[i]) for i in range(max(counts) + 1))


class Five(NamedTuple):
    """The spread of some numbers: the least, the quartiles, the most."""

    low: int
    q1: int
    median: int
    q3: int
    high: int


def five_of(sizes: Sequence[tuple[int, int]]) -> Five:
    """The spread of `(size, how many)`; there is one at least. Quartiles are sizes that occur."""
    listed = sorted(sizes)
    total = sum(number for _, number in listed)

    def at(share: float) -> int:
        left = math.floor(share * (total - 1)) + 1
        for size, number in listed:
            left -= number
            if left <= 0:
                return size
        return listed[-1][0]

    return Five(listed[0][0], at(0.25), at(0.5), at(0.75), listed[-1][0])
