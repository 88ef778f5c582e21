"""Likeness: sketches of texts that say how alike two are without keeping them. MinHash by datasketch; knows no pair.

A text of few different word triples (an answer, a list of five words) has no sketch, since there a triple more or less
would decide, and neither has one that repeats them (a grid, whose triples say little of its order): such texts count as
short and are alike only when they are equal.
"""

from __future__ import annotations

import functools
import hashlib
import re
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from datasketch import MinHash

PERMUTATIONS = 128
SEED = 1
MIN_SHINGLES = 24
MIN_VARIETY = 0.7
"""Different triples, and their share of all, below which a text is short."""
BANDS, BAND_ROWS = 16, 8
"""Two texts of likeness 0.9 share a band in 9,999 of 10,000 cases, of 0.5 in 6 of 100."""

Sketch = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
_WORDS = re.compile(r"\w+|[^\w\s]")


def _same(value: int) -> int:
    return value


@functools.cache
def _empty() -> MinHash:
    from datasketch import MinHash  # brings scipy with it: half a second that short texts need not wait for

    return MinHash(num_perm=PERMUTATIONS, seed=SEED, hashfunc=_same, scheme="affine32")


def exact_name(text: str) -> int:
    """A 64-bit name of a text; texts that differ in case or white space alone have the same one."""
    return _named(_WORDS.findall(text.casefold()))


def words_name(text: str) -> int:
    """A 64-bit name of the text's words in any order, or 0 for a text of few different ones."""
    words = sorted(_WORDS.findall(text.casefold()))
    return _named(words) if len(set(words)) >= MIN_SHINGLES else 0


def _named(words: Sequence[str]) -> int:
    known = " ".join(words).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(known, digest_size=8).digest(), "big")


def sketch(text: str, variety: float = MIN_VARIETY) -> Sketch | None:
    """The MinHash of the text's word triples, or None for a short text."""
    words = _WORDS.findall(text.casefold())
    if len(words) < MIN_SHINGLES + 2:
        return None
    codes = np.fromiter((zlib.crc32(w.encode("utf-8", "surrogatepass")) for w in words), np.uint64, len(words))
    mixed = codes[:-2] * np.uint64(0x9E3779B97F4A7C15) + codes[1:-1] * np.uint64(0xC2B2AE3D27D4EB4F) + codes[2:]
    triples = np.unique((mixed * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))
    if len(triples) < max(MIN_SHINGLES, variety * (len(words) - 2)):
        return None
    minhash = _empty().copy()
    minhash.update_batch(triples.tolist())
    return np.asarray(minhash.hashvalues, dtype=np.uint32)


class Sketches:
    """Texts by number: the name of each, and the sketch of those that are not short (512 bytes each)."""

    def __init__(self, texts: Iterable[str], variety: float = MIN_VARIETY):
        names: list[int] = []
        places: list[int] = []
        made: list[Sketch] = []
        for text in texts:
            drawn = sketch(text, variety)
            names.append(exact_name(text))
            places.append(-1 if drawn is None else len(made))
            if drawn is not None:
                made.append(drawn)
        self.names = np.array(names, dtype=np.uint64)
        self._places = np.array(places, dtype=np.int64)
        self._made = np.vstack(made) if made else np.zeros((1, PERMUTATIONS), np.uint32)

    def long(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Which of these texts have a sketch."""
        return self._places[numbers] >= 0

    def alike(self, one: int, others: Numbers) -> npt.NDArray[np.float64]:
        """The likeness of a text to others, in 0 to 1: estimated, and 1 or 0 where either is short."""
        return self.alike_to(self, others, one)

    def alike_to(self, foreign: Sketches, others: Numbers, one: int = 0) -> npt.NDArray[np.float64]:
        """The likeness of the text `one` of `foreign` to these of the own."""
        equal = self.names[others] == foreign.names[one]
        places = self._places[others]
        if foreign._places[one] < 0:
            return np.asarray(equal, dtype=np.float64)
        shared = (self._made[np.maximum(places, 0)] == foreign._made[foreign._places[one]]).mean(axis=1)
        likeness: npt.NDArray[np.float64] = np.where(equal, 1.0, np.where(places < 0, 0.0, shared))
        return likeness

    def bands(self, numbers: Numbers) -> Keys:
        """Of each text 16 keys; two that are alike share one in its place. A short text has its name in all places."""
        rows = (
            self._made[np.maximum(self._places[numbers], 0)].reshape(len(numbers), BANDS, BAND_ROWS).astype(np.uint64)
        )
        keys = np.zeros((len(numbers), BANDS), dtype=np.uint64)
        for i in range(BAND_ROWS):
            keys = mix(keys, rows[:, :, i])
        return np.where(self.long(numbers)[:, None], keys, self.names[numbers][:, None])


def mix(key: Keys, more: Keys) -> Keys:
    """A key of two; 64 bits, equal for equal ones."""
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + more
    return mixed ^ (mixed >> np.uint64(32))
