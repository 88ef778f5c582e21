"""Screen: the third net over everything that was played, before anything is made of it, and what the nets removed.

An instance that one player's prompt gives away is an evaluation instance for all of its moves. Pure: what game masters
are asked for comes from the `Prompter` that it is handed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from pairgen.records import InstanceKey, Message, Pair, fields_of
from pipelines.decontaminate import Catch, EvalSplit, Net
from pipelines.first_prompts import EvalPrompt, Templates, templates_of
from pipelines.remainder_net import Blind, net_remainders
from pipelines.slim import frame_of, slim

INSTANCE = ("game", "experiment", "task_id")
NOT_ASKED = "no game master was asked"
EMPTY: dict[Any, Any] = {str: "", int: 0}


class Prompted(NamedTuple):
    """First prompts of evaluation instances, and of each one that is not to be had the reason."""

    prompts: Sequence[EvalPrompt]
    failed: Mapping[InstanceKey, str]


Prompter = Callable[[Sequence[InstanceKey]], Prompted]


def ask_nobody(keys: Sequence[InstanceKey]) -> Prompted:
    return Prompted((), dict.fromkeys(keys, NOT_ASKED))


@dataclass(frozen=True, slots=True)
class Removed:
    """An instance that was taken out: the net that caught it, and the evaluation instance that it collides with.

    `net` is `eval_key`, `eval_content`, `eval_prompt` or `eval_prompt_near`; `score` is the likeness of prompts.
    """

    game: str
    experiment: str
    task_id: int
    net: str = ""
    evaluation: str = ""
    score: float | None = None
    pairs: int = 0


class Played(NamedTuple):
    """The first prompts of all that was played, whoever got them, and those of evaluation instances among them.

    Templates are learned from all of them.
    """

    prompts: Sequence[EvalPrompt]
    evaluation: Sequence[EvalPrompt]


class Screened(NamedTuple):
    """`found` are the instances that ask what an evaluation instance asks; `notes` say what the net could not see.

    `templates` are those of all first prompts that are known, for the stages that follow.
    """

    found: dict[InstanceKey, Catch]
    notes: tuple[str, ...]
    templates: Templates


def screen(played: Played, evaluation: EvalSplit, net: Net, prompter: Prompter = ask_nobody) -> Screened:
    """Find the evaluation instances that `net` knows neither by name nor by content.

    `prompter` is asked about the evaluation instances of games of which others are left, and whose prompts are not
    known.
    """
    frame = frame_of(map(_probe, sorted(set(played.prompts))))
    rows = slim(frame)
    met = {prompt.key for prompt in played.evaluation}
    left = {prompt.key for prompt in played.prompts} - met
    asked = _evaluation_prompts({key.game for key in left}, played, evaluation, net, prompter)
    templates = templates_of(rows, frame, asked.prompts)
    if not (evaluation.sources and left):
        return Screened({}, tuple(_unknown(asked.failed)), templates)
    here = pl.DataFrame(sorted(left), schema={name: rows.schema[name] for name in INSTANCE}, orient="row")
    rows = rows.join(here, on=INSTANCE, how="semi", maintain_order="left")
    netted = net_remainders(rows, frame, asked.prompts, templates)
    hits = netted.decided.join(rows.select("row", *INSTANCE), on="row", how="left", maintain_order="left")
    best = hits.sort("score", "reason", "keeper", descending=[True, False, False])
    found: dict[InstanceKey, Catch] = {}
    for *key, reason, keeper, score in best.select(*INSTANCE, "reason", "keeper", "score").iter_rows():
        found.setdefault(InstanceKey(*key), Catch(reason, keeper, score))
    return Screened(found, (*_unknown(asked.failed), *_unseen(_all_blind(netted.blind, rows))), templates)


def removed(rows: pl.DataFrame, decided: pl.DataFrame) -> tuple[Removed, ...]:
    """The instances of slim rows that the nets took out."""
    named = decided.join(rows.select("row", *INSTANCE), on="row", how="left", maintain_order="left")
    met = named.group_by(*INSTANCE, "reason", "keeper", "score").len().sort(*INSTANCE, "reason", "keeper")
    return tuple(Removed(*row) for row in met.iter_rows())


def _evaluation_prompts(
    games: Collection[str], played: Played, evaluation: EvalSplit, net: Net, prompter: Prompter
) -> Prompted:
    known = {*evaluation.prompts, *played.evaluation}
    there = {net.known(prompt.key) for prompt in known}
    owed = sorted(key for key in evaluation.keys if key.game in games and key not in there)
    told = prompter(owed) if owed else Prompted((), {})
    return Prompted(sorted({*known, *told.prompts}), told.failed)


def _probe(prompt: EvalPrompt) -> Pair:
    """A first prompt in the shape that the net looks at."""
    known: dict[str, Any] = {name: EMPTY.get(hint) for name, hint in fields_of(Pair)}
    said = {"prompt": (Message("user", prompt.text),), "chosen": (), "rejected": ()}
    return Pair(**{**known, **prompt.key._asdict(), "role": prompt.role, **said})


def _all_blind(blind: Iterable[Blind], rows: pl.DataFrame) -> tuple[Blind, ...]:
    """What the net could not judge in games of which it sees no player's prompt."""
    seen = {(b.game, b.role) for b in blind}
    sighted = {game for game, role in rows.select("game", "role").unique().iter_rows() if (game, role) not in seen}
    return tuple(b for b in blind if b.game not in sighted)


def _unknown(failed: Mapping[InstanceKey, str]) -> list[str]:
    """A line for each reason why evaluation instances could not be compared by what they ask."""
    by_reason: dict[str, Counter[str]] = {}
    for key, why in sorted(failed.items()):
        by_reason.setdefault(why, Counter())[key.game] += 1
    return [
        f"What {sum(games.values())} evaluation instances ask is not known ({why}), so the third net could not compare "
        f"with them: {', '.join(f'{n} of {game}' for game, n in sorted(games.items()))}. Give --clembench DIR, or "
        "--eval-results DIR with an evaluation of them."
        for why, games in sorted(by_reason.items())
    ]


def _unseen(blind: Iterable[Blind]) -> list[str]:
    games = sorted({b.game for b in blind if b.why == "all_template"})
    return (
        [
            f"The first prompts of {', '.join(games)} are the same for all instances, so these were held against the "
            "evaluation split by name and content alone."
        ]
        if games
        else []
    )
