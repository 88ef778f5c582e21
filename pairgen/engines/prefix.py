"""Attention states of past prompts and replies, so that a prompt which goes on from one is not computed again.

Games send the same template in every episode and the whole conversation in every turn: most of a prompt is known.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

Layers = list[tuple[Any, Any]]  # the keys and values of each layer, as heads x tokens x width


class Known(NamedTuple):
    """The tokens of a past sequence and their states."""

    ids: np.ndarray[Any, np.dtype[np.int64]]
    layers: Layers


class PrefixStore:
    """The sequences used last, within `budget` bytes."""

    def __init__(self, budget: int) -> None:
        self._budget, self._used = budget, 0
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._next = 0

    def longest(self, ids: list[int]) -> tuple[Known | None, int]:
        """The sequence that shares the longest beginning with `ids`, and how many tokens; one token is always left."""
        wanted = np.asarray(ids[:-1], dtype=np.int64)
        best, most = None, 0
        for key, known in self._known.items():
            shared = common(known.ids, wanted)
            if shared > most:
                best, most = key, shared
        if best is None:
            return None, 0
        self._known.move_to_end(best)
        return self._known[best], most

    def put(self, ids: list[int], layers: Layers) -> None:
        """Keep the states of `ids`; what it continues is dropped, and then what was used longest ago."""
        new = Known(np.asarray(ids, dtype=np.int64), layers)
        for key, known in list(self._known.items()):
            shared = common(known.ids, new.ids)
            if shared == len(new.ids):
                self._known.move_to_end(key)
                return
            if shared == len(known.ids):
                self._drop(key)
        self._known[self._next] = new
        self._next += 1
        self._used += _size(new)
        while self._used > self._budget and len(self._known) > 1:
            self._drop(next(iter(self._known)))

    def _drop(self, key: int) -> None:
        self._used -= _size(self._known.pop(key))


def common(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> int:
    """How many first elements are equal."""
    n = min(len(a), len(b))
    different = np.flatnonzero(a[:n] != b[:n])
    return int(different[0]) if len(different) else n


def _size(known: Known) -> int:
    return sum(t.numel() * t.element_size() for pair in known.layers for t in pair)
