"""Shortcut audit: how often a rule that reads no prompt tells the rejected side from the chosen one. Knows no file.

A rule gives each side a number and takes the side with the higher one for the rejected side; equal numbers are a coin
toss. What it looks for is learned from train and measured on test, beside the 0.5 that a coin gets.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from pairgen.records import content_id
from pipelines.slim import said, texts

SAMPLE = 10_000
"""Pairs looked at, of each strategy and side of the split; at 10,000 an accuracy has a standard error of 0.5 points."""
STRINGS = 10
MIN_SHARE, MIN_PAIRS = 0.01, 3
ENDING_WORDS = (1, 2, 3, 4, 6, 8)
GRAM_WORDS = (1, 2, 3)
COIN = 0.5

_WORDS = re.compile(r"\w+|[^\w\s]")
_PUNCTUATION = re.compile(r"[^\w\s]")


class Sides(NamedTuple):
    """Both sides of a pair, as text; token counts are -1 where no tokenizer was asked."""

    chosen: str
    rejected: str
    chosen_tokens: int = -1
    rejected_tokens: int = -1


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One rule on one strategy ("" for all pairs). Accuracies are in 0 to 1; `test` is -1 where there is no test side.

    `tells` says what marks the rejected side, `found` the strings that were learned, most telling first.
    """

    strategy: str
    rule: str
    tells: str
    found: tuple[str, ...]
    train_pairs: int
    test_pairs: int
    train: float
    test: float
    majority: float = COIN


Score = Callable[[str, int], float]


class Rule(NamedTuple):
    """What was learned: the number that a side gets from its text and its tokens, and how to say it."""

    tells: str
    found: tuple[str, ...]
    score: Score


Learner = Callable[[Sequence[Sides]], Rule]


def audit(rows: pl.DataFrame, pairs: pl.LazyFrame, seed: int = 42, sample: int = SAMPLE) -> list[Shortcut]:
    """Every rule on all pairs and on each strategy, for slim rows whose `split` is set.

    Rows may bring `chosen_tokens` and `rejected_tokens`. At most `sample` pairs of each side and strategy are read.
    """
    ranked = _ranked(rows, seed)
    place = pl.int_range(pl.len())
    all_pairs = ranked.filter(place.over("split") < sample)
    by_strategy = ranked.filter(place.over("split", "strategy") < sample)
    read = _read(pl.concat([all_pairs, by_strategy]).unique("row"), pairs)
    found = _audit_one("", all_pairs, read)
    names = sorted(rows["strategy"].unique())
    if len(names) > 1:
        for name in names:
            found += _audit_one(name, by_strategy.filter(pl.col("strategy") == name), read)
    return found


def audit_sides(strategy: str, train: Sequence[Sides], test: Sequence[Sides]) -> list[Shortcut]:
    """Every rule, fitted on train and measured on both."""
    found = []
    for name, learner in LEARNERS.items():
        if name == "longer_tokens" and any(s.chosen_tokens < 0 for s in (*train, *test)):
            continue
        if train:
            rule = learner(train)
            found.append(
                Shortcut(
                    strategy, name, rule.tells, rule.found, len(train), len(test),
                    accuracy(rule, train), accuracy(rule, test),
                )
            )  # fmt: skip
    return found


def accuracy(rule: Rule, pairs: Sequence[Sides]) -> float:
    """The share of pairs in which the rule finds the rejected side; a tie counts half, and -1 stands for no pairs."""
    return sum(_hit(rule.score, pair) for pair in pairs) / len(pairs) if pairs else -1.0


def _hit(score: Score, pair: Sides) -> float:
    rejected, chosen = score(pair.rejected, pair.rejected_tokens), score(pair.chosen, pair.chosen_tokens)
    return COIN if rejected == chosen else float(rejected > chosen)


def _audit_one(strategy: str, rows: pl.DataFrame, read: dict[int, Sides]) -> list[Shortcut]:
    sides = {
        side: [read[row] for row in rows.filter(pl.col("split") == side)["row"].to_list()] for side in ("train", "test")
    }
    return audit_sides(strategy, sides["train"], sides["test"])


def _ranked(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    """In an order that only the seed and the ids decide."""
    ranks = [content_id(seed, name) for name in rows["pair_id"].to_list()]
    return rows.with_columns(rank=pl.Series(ranks, dtype=pl.String)).sort("rank", "pair_id", "row")


def _read(rows: pl.DataFrame, pairs: pl.LazyFrame) -> dict[int, Sides]:
    counted = [c for c in ("chosen_tokens", "rejected_tokens") if c in rows.columns]
    tokens = {row: tuple(counts) for row, *counts in rows.select("row", *counted).iter_rows()}
    read = {}
    for batch in texts(pairs, rows["row"], [said("chosen").alias("c"), said("rejected").alias("r")]):
        for row, chosen, rejected in batch.iter_rows():
            read[row] = Sides(chosen, rejected, *tokens[row])
    return read


def _directed(what: str, opposite: str, count: Score) -> Learner:
    """A rule on a count, in whichever direction train says."""

    def learn(pairs: Sequence[Sides]) -> Rule:
        rule = Rule(what, (), count)
        if accuracy(rule, pairs) >= COIN:
            return rule
        return Rule(opposite, (), lambda text, tokens: -count(text, tokens))

    return learn


def _marks(what: str, of: Callable[[str], Iterable[str]], pairs: Sequence[Sides]) -> Rule:
    """The strings that mark one side: taken one by one, each the most telling among the pairs not yet told apart."""
    least = max(MIN_PAIRS, MIN_SHARE * len(pairs))
    untold = [(r - c, c - r) for r, c in ((set(of(p.rejected)), set(of(p.chosen))) for p in pairs)]
    met = Counter(string for sides in untold for side in sides for string in side)
    counts = Counter({string: 0 for string, times in met.items() if times >= least})
    _count(counts, untold, 1)
    marks: dict[str, int] = {}
    while counts and len(marks) < STRINGS:
        best = max(counts, key=lambda s: (abs(counts[s]), len(s), s))
        if abs(counts[best]) < least:
            break
        marks[best] = 1 if counts[best] > 0 else -1
        _count(counts, [sides for sides in untold if best in sides[0] or best in sides[1]], -1)
        untold = [sides for sides in untold if best not in sides[0] and best not in sides[1]]

    def score(text: str, tokens: int) -> float:
        return sum(marks.get(string, 0) for string in set(of(text)))

    return Rule(what, tuple(f"{'' if sign > 0 else 'not '}{s!r}" for s, sign in marks.items()), score)


def _count(counts: Counter[str], untold: Iterable[tuple[set[str], set[str]]], times: int) -> None:
    """Add (or take away) what these pairs say of each string: for the rejected side, and against the chosen one."""
    for rejected, chosen in untold:
        for string in rejected & counts.keys():
            counts[string] += times
        for string in chosen & counts.keys():
            counts[string] -= times


def _best(rules: Sequence[Rule], pairs: Sequence[Sides]) -> Rule:
    return max(rules, key=lambda rule: accuracy(rule, pairs))


@functools.lru_cache(maxsize=4 * SAMPLE)
def _words(text: str) -> tuple[str, ...]:
    """The words of a text; kept for a while, since every size of every rule asks for them."""
    return tuple(_WORDS.findall(text))


def _ending(words: int) -> Callable[[str], Iterable[str]]:
    """The last so many words of a text; none where it has fewer."""

    def of(text: str) -> Iterable[str]:
        found = _words(text)
        return (" ".join(found[-words:]),) if len(found) >= words else ()

    return of


def _grams(size: int) -> Callable[[str], Iterable[str]]:
    def of(text: str) -> Iterable[str]:
        found = _words(text)
        return {" ".join(found[i : i + size]) for i in range(len(found) - size + 1)}

    return of


def _learn_endings(pairs: Sequence[Sides]) -> Rule:
    return _best([_marks("ends with one of the strings", _ending(words), pairs) for words in ENDING_WORDS], pairs)


def _learn_grams(pairs: Sequence[Sides]) -> Rule:
    return _best([_marks("holds one of the strings", _grams(words), pairs) for words in GRAM_WORDS], pairs)


LEARNERS: dict[str, Learner] = {
    "longer": _directed("is the longer", "is the shorter", lambda text, tokens: len(text)),
    "longer_tokens": _directed("has more tokens", "has fewer tokens", lambda text, tokens: tokens),
    "punctuation": _directed(
        "has more punctuation", "has less punctuation", lambda text, tokens: len(_PUNCTUATION.findall(text))
    ),
    "ending": _learn_endings,
    "n_gram": _learn_grams,
}
