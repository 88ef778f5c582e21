"""The third net: takes out pairs whose first prompt asks what an evaluation instance asks, exactly or nearly.

Compared is what remains without the game's template, of prompts of one game and role. Where a prompt is all template
(the target word stays with the game master) this net sees nothing, and says so; where the template is not known, equal
prompts count as asking the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from pipelines.decontaminate import name_of
from pipelines.first_prompts import KIND, EvalPrompt, Templates, asks_of, first_prompts, plain
from pipelines.likeness import Sketches, exact_name, words_name
from pipelines.slim import decisions
from pipelines.template import UNKNOWN

NEAR = 0.9


class Blind(NamedTuple):
    """Pairs of a game and role that this net could not judge, and why: `all_template` or `no_evaluation_prompt`."""

    game: str
    role: str
    why: str
    pairs: int


class Netted(NamedTuple):
    decided: pl.DataFrame
    blind: tuple[Blind, ...]


class Found(NamedTuple):
    reason: str
    evaluation: str
    score: float


def net_remainders(
    rows: pl.DataFrame, pairs: pl.LazyFrame, evaluation: Iterable[EvalPrompt], templates: Templates, near: float = NEAR
) -> Netted:
    """Decisions on slim rows: `eval_prompt` and `eval_prompt_near`, the keeper being the evaluation instance.

    `templates` are best learned with the evaluation prompts among the others (`first_prompts.templates_of`). `near` is
    the likeness, in 0 to 1, from which two remainders count as one; 0 compares exactly alone.
    """
    known = _by_kind(evaluation)
    hits: list[tuple[object, ...]] = []
    blind: Counter[tuple[str, str, str]] = Counter()
    sizes = {(*r[:-1],): r[-1] for r in rows.group_by(KIND).len().iter_rows()}
    shelves: dict[tuple[str, str], _Shelf] = {}
    for prompt in first_prompts(rows, pairs):
        kind, name = (prompt["game"], plain(prompt["role"])), tuple(prompt[k] for k in KIND)
        asks = asks_of(prompt, templates)
        if not known.get(kind) or not asks:
            why = "all_template" if known.get(kind) else "no_evaluation_prompt"
            blind[prompt["game"], prompt["role"], why] += sizes[name]
        else:
            if kind not in shelves:
                shelves[kind] = _Shelf(
                    (e, templates.get(kind, UNKNOWN).asks(e.text, e.key.experiment)) for e in known[kind]
                )
            found = shelves[kind].find(asks, near)
            if found:
                hits.append((*name, *found))
    schema = {**{k: rows.schema[k] for k in KIND}, "reason": pl.String(), "keeper": pl.String(), "score": pl.Float64()}
    met = rows.join(pl.DataFrame(hits, schema=schema, orient="row"), on=[*KIND], how="inner", maintain_order="left")
    decided = [decisions(met.filter(pl.col("reason") == r), r) for r in ("eval_prompt", "eval_prompt_near")]
    return Netted(pl.concat(decided), tuple(Blind(*key, n) for key, n in sorted(blind.items())))


def _by_kind(evaluation: Iterable[EvalPrompt]) -> Mapping[tuple[str, str], list[EvalPrompt]]:
    kinds: dict[tuple[str, str], list[EvalPrompt]] = defaultdict(list)
    for prompt in sorted(evaluation):
        kinds[prompt.key.game, plain(prompt.role)].append(prompt)
    return kinds


class _Shelf:
    """What the evaluation instances of one game and role ask, to be found by name, by words or by likeness."""

    def __init__(self, asked: Iterable[tuple[EvalPrompt, str]]):
        self._names: dict[int, str] = {}
        self._words: dict[int, str] = {}
        self._owners: list[str] = []
        kept: list[str] = []
        for prompt, asks in asked:
            if asks and exact_name(asks) not in self._names:
                self._names[exact_name(asks)] = name_of(prompt.key)
                self._words.setdefault(words_name(asks), name_of(prompt.key))
                self._owners.append(name_of(prompt.key))
                kept.append(asks)
        self._words.pop(0, None)
        self._sketches = Sketches(kept)
        self._bands: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, keys in enumerate(self._sketches.bands(np.arange(len(kept)))):
            for band, key in enumerate(keys.tolist()):
                self._bands[band, key].append(number)

    def find(self, asks: str, near: float) -> Found | None:
        """The evaluation instance that asks this: exactly, with the same words in another order, or nearly."""
        exact = self._names.get(exact_name(asks))
        if exact:
            return Found("eval_prompt", exact, 1.0)
        if not near:
            return None
        shuffled = self._words.get(words_name(asks))
        if shuffled:
            return Found("eval_prompt_near", shuffled, 1.0)
        own = Sketches([asks])
        keys = own.bands(np.arange(1))[0].tolist()
        mates = sorted({n for band, key in enumerate(keys) for n in self._bands.get((band, key), ())})
        if not mates:
            return None
        alike = self._sketches.alike_to(own, np.array(mates, dtype=np.int64))
        best = int(np.argmax(alike))
        return Found("eval_prompt_near", self._owners[mates[best]], float(alike[best])) if alike[best] >= near else None
