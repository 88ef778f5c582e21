"""What a mixture says of itself: both sets it was made of, what was wrong in the general one, how many were taken."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.audit import Shortcut

GENERAL = "general"
"""The game and strategy that a general pair is filed under."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """So many rows of the general set are no pair for this reason; the first of them, by its place (from 0)."""

    flaw: str
    count: int
    first: int
    example: str


@dataclass(frozen=True, slots=True)
class Stratum:
    """So many of the general pairs are of this value of the column that they were stratified by."""

    name: str
    pairs: int


@dataclass(frozen=True, slots=True)
class Mixed:
    """A mixture. `content` and `revision` name exactly what was mixed; `before` is the own set's audit over all pairs.

    Of `read` general rows some have `flaws`, some are `repeated`, `over_cap` or asked `in_test`; of what is left
    `general_taken` were taken where `wanted_general` were wanted.
    """

    pairset: str
    content: str
    general: str
    revision: str
    license: str
    ratio: str
    stratify: str
    max_per_prompt: int
    seed: int
    read: int
    flaws: tuple[Flaw, ...]
    repeated: int
    over_cap: int
    in_test: int
    own: int
    general_taken: int
    wanted_own: int
    wanted_general: int
    before: tuple[Shortcut, ...]
    strata: tuple[Stratum, ...]
