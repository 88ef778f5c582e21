"""Reads a strategy's options, a word or a number, and draws what was left open.

Raises UsageProblem that names what is known.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping

from pairgen.errors import UsageProblem, did_you_mean


def one_of(strategy: str, options: Mapping[str, str], key: str, known: Collection[str]) -> str | None:
    """The option's value, or None where it was not given."""
    value = options.get(key)
    if value is not None and value not in known:
        raise UsageProblem(f"{strategy}:{key}={value} is not known: {did_you_mean(value, known)}")
    return value


def whole_number(strategy: str, options: Mapping[str, str], key: str, least: int, most: int, default: int) -> int:
    """The option's value as a number from `least` to `most`."""
    value = options.get(key, str(default))
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise UsageProblem(
            f"{strategy}:{key}={value} is no whole number from {least} to {most}, give for example {key}={default}"
        )
    return int(value)


def in_turn(given: str | None, weights: Mapping[str, int], rng: random.Random) -> Iterator[str]:
    """What to try, one after the other: only what was given, or all keys in a random order, heavy ones rather first."""
    left = dict(weights) if given is None else {given: 1}
    while left:
        (name,) = rng.choices(list(left), list(left.values()))
        del left[name]
        yield name
