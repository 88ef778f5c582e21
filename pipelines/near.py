"""Near duplicates: pairs of one game, role and strategy whose prompts and chosen sides are nearly the same.

Three parts must be alike, each for itself: what the first prompt asks (without the template), the play so far, and the
chosen side; so a long prompt never hides that the answers differ. What alike means is said in `likeness`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.first_prompts import KIND, Templates, asks_of
from pipelines.likeness import BANDS, MIN_VARIETY, Keys, Numbers, Sketches, mix
from pipelines.slim import decisions, first_text, later_text, once, said, texts

MAX_MATES = 64
"""The most pairs of one key that a pair is compared with, so that a crowd costs no square."""

Mask = npt.NDArray[np.bool_]


class Part(NamedTuple):
    """One part of each pair: sketches of the different texts, and the number of each pair's text."""

    sketches: Sketches
    numbers: Numbers

    def of(self, mask: Mask) -> Part:
        return Part(self.sketches, self.numbers[mask])


def near_repeats(
    rows: pl.DataFrame,
    pairs: pl.LazyFrame,
    templates: Templates,
    threshold: float,
    scope: Sequence[str] = ("strategy",),
) -> pl.DataFrame:
    """Decisions on slim rows in their order: an earlier pair that stays is the keeper of what is alike to it.

    `score` is the likeness of the part in which the two differ most.
    """

    family = _codes(rows, ("game", "role", *scope))
    parts: list[Part] = []

    def narrow(part: Part) -> None:
        """Pairs that no other one meets in the parts so far need no sketch of the next."""
        nonlocal rows, family, parts
        parts.append(part)
        mates, _ = _crowded(_keys(parts, family))
        rows, family, parts = rows.filter(pl.Series(mates)), family[mates], [p.of(mates) for p in parts]

    narrow(_part(rows, pairs, ("chosen",), said("chosen"), lambda row: row["text"]))
    narrow(_part(rows, pairs, KIND, first_text(), lambda row: asks_of(row, templates)))
    # a play so far repeats its game's phrases; where the first prompts are alike that is no reason to call it short
    narrow(_part(rows, pairs, ("prompt",), later_text(), lambda row: row["text"], variety=0.0))
    keys = _keys(parts, family)
    mates, shared = _crowded(keys)
    keeper, score = _pick(keys, shared, mates, parts, threshold)
    found = rows.with_columns(at=pl.Series(keeper), score=pl.Series(score)).filter(pl.col("at") >= 0)
    ids = rows["pair_id"].gather(found["at"])
    return decisions(found.with_columns(keeper=ids), "near_duplicate")


def _part(
    rows: pl.DataFrame,
    pairs: pl.LazyFrame,
    key: Sequence[str],
    text: pl.Expr,
    read: Callable[[Mapping[str, str]], str],
    variety: float = MIN_VARIETY,
) -> Part:
    """Sketch the different texts of a part; `key` says which are the same."""
    sorted_once = once(rows, [*key]).sort("row")

    def read_all() -> Iterator[str]:
        for batch in texts(pairs, sorted_once["row"], ["game", "role", "experiment", text.alias("text")]):
            yield from map(read, batch.iter_rows(named=True))

    numbered = sorted_once.select(*key).with_row_index("number")
    numbers = rows.select(*key).join(numbered, on=[*key], how="left", maintain_order="left")["number"]
    return Part(Sketches(read_all(), variety), numbers.to_numpy().astype(np.int64))


def _codes(rows: pl.DataFrame, columns: Sequence[str]) -> Keys:
    """A number for each combination of names."""
    names = rows.select(pl.concat_str(*columns, separator="\x1f").alias("name"))
    different = names.unique().sort("name").with_row_index("code")
    return names.join(different, on="name", how="left", maintain_order="left")["code"].to_numpy().astype(np.uint64)


def _keys(parts: Sequence[Part], family: Keys) -> Keys:
    """16 keys a pair: the bands of the first part that is long, with the names of all short parts and of the family."""
    count = len(family)
    fixed = mix(np.zeros(count, np.uint64), family)
    leading = np.zeros((count, BANDS), np.uint64)
    led = np.zeros(count, bool)
    for place, (sketches, numbers) in enumerate(parts, 1):
        long = sketches.long(numbers)
        fixed = mix(fixed, np.where(long, np.uint64(0), sketches.names[numbers]))
        leads = long & ~led
        leading[leads] = mix(sketches.bands(numbers[leads]), np.full((int(leads.sum()), BANDS), place, np.uint64))
        led |= leads
    return mix(leading, np.broadcast_to(fixed[:, None], leading.shape))


def _crowded(keys: Keys) -> tuple[Mask, Mask]:
    """Which pairs have a key that another has, and which keys these are."""
    shared: Mask = np.zeros(keys.shape, np.bool_)
    for band in range(keys.shape[1]):
        _, where, counts = np.unique(keys[:, band], return_inverse=True, return_counts=True)
        shared[:, band] = counts[where] > 1
    return np.asarray(shared.any(axis=1)), shared


def _pick(
    keys: Keys, shared: Mask, mates: Mask, parts: Sequence[Part], threshold: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """For each pair the earlier one that is most alike to it, or -1, and how alike they are."""
    keeper, score = np.full(len(keys), -1, np.int64), np.zeros(len(keys))
    kept: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place in np.flatnonzero(mates):
        own = {(band, int(keys[place, band])) for band in np.flatnonzero(shared[place])}
        met = np.array(sorted({mate for key in own for mate in kept.get(key, ())}), dtype=np.int64)
        if len(met):
            alike = np.min([p.sketches.alike(int(p.numbers[place]), p.numbers[met]) for p in parts], axis=0)
            best = int(np.argmax(alike))
            if alike[best] >= threshold:
                keeper[place], score[place] = met[best], alike[best]
                continue
        for key in own:
            if len(kept[key]) < MAX_MATES:
                kept[key].append(int(place))
    return keeper, score
