"""Dedup: a pair that says what another one says goes, and its record names the one that stayed. Knows no file.

The keeper is the pair with the smallest id, so the order of the input never matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from pairgen.records import Drop, Messages, Pair
from pipelines.funnel import drop_pair


class Dedup(NamedTuple):
    """`kept` (by id) and `drops` are the input."""

    kept: list[Pair]
    drops: list[Drop]


def dedup(pairs: Iterable[Pair], per_chosen: int = 1, several: Collection[str] = ()) -> Dedup:
    """One pair for each (prompt, chosen, rejected), and at most `per_chosen` for each (prompt, chosen, strategy).

    The strategies in `several` give more than one for a reply, and are bounded elsewhere.
    """
    kept: list[Pair] = []
    drops: list[Drop] = []
    exact: dict[tuple[Messages, Messages, Messages], str] = {}
    groups: dict[tuple[Messages, Messages, str], list[str]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda p: (p.pair_id, p.strategy)):
        same = exact.get((pair.prompt, pair.chosen, pair.rejected))
        group = groups[pair.prompt, pair.chosen, pair.strategy]
        if same is not None:
            drops.append(drop_pair(pair, "dedup", "duplicate", kept_id=same))
        elif len(group) >= per_chosen and pair.strategy not in several:
            drops.append(drop_pair(pair, "dedup", "repeated_chosen", kept_id=group[0]))
        else:
            exact[pair.prompt, pair.chosen, pair.rejected] = pair.pair_id
            group.append(pair.pair_id)
            kept.append(pair)
    return Dedup(kept, drops)
