"""Spread: of all pairs that one prompt could have, those that show as many replies as can be. Knows no file.

Where a strategy gives several corruptions for a move, a prompt that was played often would fill a set by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pairgen.records import Messages, Pair, content_id

Sides = tuple[str, str]


class Spread(NamedTuple):
    """`kept` and `over` are the input, in its order."""

    kept: list[Pair]
    over: list[Pair]


def spread(pairs: Sequence[Pair], most: int, seed: int) -> Spread:
    """At most `most` distinct (chosen, rejected) for each game, role and prompt; 0 keeps all.

    Each rejected side comes up once before one comes up again, and with it the chosen side that came up least. What is
    the same in text counts once and goes or stays together. The order of the input does not matter.
    """
    if not most:
        return Spread(list(pairs), [])
    prompts: dict[tuple[str, str, Messages], set[Sides]] = defaultdict(set)
    for pair in pairs:
        prompts[_prompt(pair)].add(_sides(pair))
    chosen = {prompt: _choose(sides, most, seed) for prompt, sides in prompts.items()}
    kept: list[Pair] = []
    over: list[Pair] = []
    for pair in pairs:
        (kept if _sides(pair) in chosen[_prompt(pair)] else over).append(pair)
    return Spread(kept, over)


def _choose(sides: Iterable[Sides], most: int, seed: int) -> set[Sides]:
    left = {s: content_id(seed, "spread", s) for s in sides}
    taken: set[Sides] = set()
    won: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    while left and len(taken) < most:
        best = min(left, key=lambda s: (lost[s[1]], won[s[0]], left[s]))
        del left[best]
        taken.add(best)
        won[best[0]] += 1
        lost[best[1]] += 1
    return taken


def _prompt(pair: Pair) -> tuple[str, str, Messages]:
    return pair.game, pair.role, pair.prompt


def _sides(pair: Pair) -> Sides:
    return pair.chosen[0].content, pair.rejected[0].content
