"""How many pairs of each side a mixture takes, and which: by ratio, caps and strata. Pure; a seed decides the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pairgen.errors import UsageProblem
from pairgen.records import content_id


class Ratio(NamedTuple):
    """`own` to `general`, both above 0."""

    own: int
    general: int


class Shares(NamedTuple):
    """How many of each are taken, and how many were wanted."""

    own: int
    general: int
    wanted_own: int
    wanted_general: int


class Row(NamedTuple):
    """A sound row of the general set by its place; equal `prompt` and `pair` hashes mean equal texts."""

    place: int
    stratum: str
    prompt: str
    pair: str


def parse_ratio(text: str) -> Ratio:
    """`OWN:GENERAL` in whole numbers. Raises UsageProblem."""
    left, colon, right = text.partition(":")
    if not (colon and left.isdecimal() and right.isdecimal() and int(left) and int(right)):
        raise UsageProblem(f"--ratio {text}: give two whole numbers above 0, such as 1:1 or 2:1.")
    return Ratio(int(left), int(right))


def shares(own: int, general: int, ratio: Ratio, total: int = 0) -> Shares:
    """What to take of so many own and general pairs: all own ones (or their part of `total`), general ones to match.

    Own pairs are never given up because the general set is short: then the mixture has more of them than asked.
    """
    if total:
        wanted = round(total * ratio.own / (ratio.own + ratio.general))
        wanted_general = total - wanted
    else:
        wanted, wanted_general = own, round(own * ratio.general / ratio.own)
    return Shares(min(wanted, own), min(wanted_general, general), wanted, wanted_general)


def capped(prompts: Sequence[str], names: Sequence[str], most: int, seed: int) -> list[bool]:
    """Which items stay when at most `most` may have the same prompt (0: any number); `names` are their own ids."""
    if not most:
        return [True] * len(prompts)
    groups: dict[str, list[int]] = defaultdict(list)
    for place, prompt in enumerate(prompts):
        groups[prompt].append(place)
    stay = [True] * len(prompts)
    for places in groups.values():
        if len(places) > most:
            for place in _ranked(places, names, seed)[most:]:
                stay[place] = False
    return stay


def chosen(rows: Sequence[Row], count: int, seed: int) -> list[Row]:
    """So many of the rows, each stratum in proportion (the largest remainders make up the count), in their order."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.stratum].append(row)
    quota = proportional({stratum: len(group) for stratum, group in groups.items()}, count)
    taken = []
    for stratum, group in groups.items():
        order = _ranked(range(len(group)), [row.pair for row in group], seed)
        taken += [group[place] for place in order[: quota[stratum]]]
    return sorted(taken)


def proportional(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """`count` (at most the sum of `sizes`) shared out as the sizes are, in whole numbers that add up to it."""
    total = sum(sizes.values())
    if not total:
        return dict(sizes)
    parts = {name: divmod(size * count, total) for name, size in sizes.items()}
    quota = Counter({name: whole for name, (whole, _) in parts.items()})
    missing = count - sum(quota.values())
    by_rest = sorted(parts, key=lambda name: (-parts[name][1], name))
    quota.update(by_rest[:missing])
    return dict(quota)


def _ranked(places: Sequence[int], names: Sequence[str], seed: int) -> list[int]:
    """In an order that only the seed and the names decide."""
    return sorted(places, key=lambda place: (content_id(seed, names[place]), names[place], place))
