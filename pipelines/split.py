"""Split: train and test by instance, never by row, so that no task is on both sides. Knows no file.

The same task under two numbers (equal content) counts as one.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from pairgen.records import InstanceKey, Pair, content_id


class Split(NamedTuple):
    """The pairs of each side, each with its side noted, by id."""

    train: list[Pair]
    test: list[Pair]


def split(pairs: Iterable[Pair], test_size: float, seed: int) -> Split:
    """Put about `test_size` of the pairs of each game into test, whole instances at a time.

    Each game keeps at least one instance in train; where there are two instances or more, one at least is in test
    (unless `test_size` is 0). What a game cannot give exactly, the next one makes up for.
    """
    by_game: dict[str, list[list[Pair]]] = defaultdict(list)
    for group in _by_instance(sorted(pairs, key=lambda p: p.pair_id)):
        by_game[group[0].game].append(group)
    for groups in by_game.values():
        groups.sort(key=lambda g: _rank(seed, g))
    train: list[Pair] = []
    test: list[Pair] = []
    owed = 0.0
    for game in sorted(by_game):
        groups = by_game[game]
        owed += test_size * sum(map(len, groups))
        left = len(groups)
        for group in groups:
            if left > 1 and abs(owed - len(group)) < abs(owed):
                test += group
                owed -= len(group)
                left -= 1
            else:
                train += group
    if test_size and not test:
        train, test = _give_one([g for groups in by_game.values() for g in groups], seed)
    return Split(_sided(train, "train"), _sided(test, "test"))


def _give_one(groups: list[list[Pair]], seed: int) -> tuple[list[Pair], list[Pair]]:
    """The smallest instance to test, where there are two or more."""
    ordered = sorted(groups, key=lambda g: (len(g), _rank(seed, g)))
    given = ordered[:1] if len(ordered) > 1 else []
    return [p for g in ordered[len(given) :] for p in g], [p for g in given for p in g]


def _by_instance(pairs: list[Pair]) -> list[list[Pair]]:
    """The pairs of each task together: by key, and keys with equal content joined."""
    parent: dict[InstanceKey | str, InstanceKey | str] = {}

    def root(node: InstanceKey | str) -> InstanceKey | str:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for pair in pairs:
        if pair.instance_hash:
            parent[root(pair.instance_hash)] = root(pair.instance)
    groups: dict[InstanceKey | str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[root(pair.instance)].append(pair)
    return list(groups.values())


def _rank(seed: int, group: list[Pair]) -> str:
    return content_id(seed, min(p.instance for p in group))


def _sided(pairs: list[Pair], side: str) -> list[Pair]:
    return [dataclasses.replace(p, split=side) for p in sorted(pairs, key=lambda p: p.pair_id)]
