"""Decontaminate: no pair of an evaluation instance stays, by its name or by its content. Reads no file.

What is an evaluation instance comes from `eval_split`; the third net, by what prompts ask, is `remainder_net`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from pairgen.records import Episode, InstanceKey
from pipelines.first_prompts import EvalPrompt
from pipelines.slim import decisions


@dataclass(frozen=True, slots=True)
class EvalSource:
    """Where evaluation instances were read from; `keys` and `contents` count what it named. No machine path is kept."""

    kind: str
    name: str
    revision: str
    keys: int
    contents: int


class EvalSplit(NamedTuple):
    """The evaluation instances: their keys, the key of each `instance_hash`, and the first prompts that are known.

    Without a source nothing is checked.
    """

    keys: frozenset[InstanceKey]
    contents: Mapping[str, InstanceKey]
    sources: tuple[EvalSource, ...]
    prompts: tuple[EvalPrompt, ...] = ()


NO_EVAL_SPLIT = EvalSplit(frozenset(), MappingProxyType({}), ())


REASONS = ("eval_key", "eval_content", "eval_prompt", "eval_prompt_near")


class Catch(NamedTuple):
    """Which net caught an instance, and the evaluation instance that it collides with; `score` is how alike they are.

    `reason` is `eval_key`, `eval_content`, or what `remainder_net` says.
    """

    reason: str
    evaluation: str
    score: float = 1.0


class Net:
    """Tells evaluation instances from others. After `learn`, one met by name is known by content too.

    `note` adds those that are known by what they ask alone.
    """

    def __init__(self, split: EvalSplit):
        self._keys = {key: key for key in split.keys}
        self._bare = {_bare(key): key for key in sorted(split.keys)}
        self._asking: dict[InstanceKey, Catch] = {}
        self._contents = {content: name_of(key) for content, key in split.contents.items()}

    def learn(self, episodes: Iterable[Episode]) -> None:
        """Note the content of the episodes' instances that are evaluation instances by key."""
        for episode in episodes:
            known = self.known(episode.key.instance)
            if episode.instance_hash and known:
                self._contents[episode.instance_hash] = name_of(known)

    def note(self, asking: Mapping[InstanceKey, Catch]) -> None:
        self._asking.update(asking)

    def catch(self, key: InstanceKey, instance_hash: str) -> str:
        """The reason why an instance may not be trained on, or nothing."""
        found = self.find(key, instance_hash)
        return found.reason if found else ""

    def find(self, key: InstanceKey, instance_hash: str) -> Catch | None:
        """What catches this instance, key before content before prompt; None for one that may be trained on."""
        known = self.known(key)
        if known:
            return Catch("eval_key", name_of(known))
        if instance_hash and instance_hash in self._contents:
            return Catch("eval_content", self._contents[instance_hash])
        return self._asking.get(key)

    def known(self, key: InstanceKey) -> InstanceKey | None:
        """The evaluation instance of this name, as the evaluation split writes it."""
        # clembench writes an experiment as `high_en` or, with its place in the file, as `0_high_en`
        return self._keys.get(key) or self._bare.get(key) or self._keys.get(_bare(key))


def name_of(key: InstanceKey) -> str:
    """An instance as one word for people."""
    return "/".join(map(str, key))


def caught(rows: pl.DataFrame, net: Net) -> pl.DataFrame:
    """Decisions on slim rows, each instance looked at once; the keeper is the evaluation instance."""
    names = ["game", "experiment", "task_id", "instance_hash"]
    found = [
        (*row, *hit)
        for row in rows.select(names).unique().sort(names).iter_rows()
        if (hit := net.find(InstanceKey(*row[:3]), row[3]))
    ]
    schema = {**{n: rows.schema[n] for n in names}, "reason": pl.String(), "keeper": pl.String(), "score": pl.Float64()}
    hits = pl.DataFrame(found, schema=schema, orient="row")
    met = rows.join(hits, on=names, how="inner", maintain_order="left")
    return pl.concat([decisions(met.filter(pl.col("reason") == r), r) for r in REASONS])


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


def unmatched_experiments(split: EvalSplit, played: Iterable[tuple[str, str]]) -> list[str]:
    """The same for the experiments of games that both know; the place before an experiment's name does not count."""
    if not split.sources:
        return []
    known, here = _experiments((k.game, k.experiment) for k in split.keys), _experiments(played)
    lines = []
    for game in sorted(known.keys() & here.keys()):
        if unplayed := sorted(known[game] - here[game]):
            guesses = {e: difflib.get_close_matches(e, here[game] - known[game], n=1, cutoff=0.75) for e in unplayed}
            listed = ", ".join(f"{e} (renamed {g[0]}?)" if g else e for e, g in guesses.items())
            lines.append(
                f"The evaluation split names experiments of {game} of which there is nothing here under that name: "
                f"{listed}."
            )
        if unknown := sorted(here[game] - known[game]):
            lines.append(f"The evaluation split names no instance of {game}, {', '.join(unknown)}: all of it is kept.")
    return lines


def _experiments(named: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for game, experiment in named:
        found.setdefault(game, set()).add(_bare(InstanceKey(game, experiment, 0)).experiment)
    return found


def _bare(key: InstanceKey) -> InstanceKey:
    return key._replace(experiment=re.sub(r"^\d+_", "", key.experiment))
