"""Decontaminate: no pair of an evaluation instance stays, by its name or by its content. Reads no file.

What is an evaluation instance comes from `pipelines.eval_split`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pairgen.records import Drop, Episode, InstanceKey, Pair
from pipelines.funnel import drop_pair


@dataclass(frozen=True, slots=True)
class EvalSource:
    """Where evaluation instances were read from; `keys` and `contents` count what it named. No machine path is kept."""

    kind: str
    name: str
    revision: str
    keys: int
    contents: int


class EvalSplit(NamedTuple):
    """The evaluation instances, by key and by `instance_hash`. Without a source nothing is checked."""

    keys: frozenset[InstanceKey]
    contents: frozenset[str]
    sources: tuple[EvalSource, ...]


NO_EVAL_SPLIT = EvalSplit(frozenset(), frozenset(), ())


class Clean(NamedTuple):
    """`kept` and `drops` are the input; `removed` names the evaluation instances that were met."""

    kept: list[Pair]
    drops: list[Drop]
    removed: tuple[InstanceKey, ...]


class Net:
    """Tells evaluation instances from others. After `learn`, one met by name is known by content too."""

    def __init__(self, split: EvalSplit):
        self._keys = set(split.keys)
        self._bare = {_bare(key) for key in split.keys}
        self._contents = set(split.contents)

    def learn(self, episodes: Iterable[Episode]) -> None:
        """Note the content of the episodes' instances that are evaluation instances by key."""
        for episode in episodes:
            if episode.instance_hash and self._has_key(episode.key.instance):
                self._contents.add(episode.instance_hash)

    def catch(self, key: InstanceKey, instance_hash: str) -> str:
        """`eval_key`, `eval_content`, or nothing for an instance that may be trained on."""
        if self._has_key(key):
            return "eval_key"
        return "eval_content" if instance_hash and instance_hash in self._contents else ""

    def _has_key(self, key: InstanceKey) -> bool:
        # clembench writes an experiment as `high_en` or, with its place in the file, as `0_high_en`
        return key in self._keys or key in self._bare or _bare(key) in self._keys


def decontaminate(pairs: Iterable[Pair], net: Net) -> Clean:
    """Take out each pair of an evaluation instance."""
    kept: list[Pair] = []
    drops: list[Drop] = []
    removed: set[InstanceKey] = set()
    for pair in pairs:
        reason = net.catch(pair.instance, pair.instance_hash)
        if reason:
            drops.append(drop_pair(pair, "decontaminate", reason))
            removed.add(pair.instance)
        else:
            kept.append(pair)
    return Clean(kept, drops, tuple(sorted(removed)))


def unmatched_games(split: EvalSplit, played: Iterable[str]) -> list[str]:
    """A line for a person where the names of the games do not meet, since a renamed game would slip through by key."""
    if not split.sources:
        return []
    known, names = {key.game for key in split.keys}, set(played)
    lines = []
    if unplayed := sorted(known - names):
        guesses = [(game, difflib.get_close_matches(game, names - known, n=1, cutoff=0.75)) for game in unplayed]
        listed = ", ".join(f"{game} (renamed {guess[0]}?)" if guess else game for game, guess in guesses)
        lines.append(f"The evaluation split names games of which there is nothing here under that name: {listed}.")
    if unknown := sorted(names - known):
        lines.append(f"The evaluation split names no instance of {', '.join(unknown)}: all of it is kept.")
    return lines


def _bare(key: InstanceKey) -> InstanceKey:
    return key._replace(experiment=re.sub(r"^\d+_", "", key.experiment))
