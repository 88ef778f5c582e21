"""Screen: the three nets over finished pairs, so that no evaluation instance stays by name, content or prompt.

An instance that one net catches goes with all of its pairs, whoever spoke. Pure: what game masters are asked for comes
from the `Prompter` that it is handed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from pairgen.records import Drop, InstanceKey, Message, Pair, fields_of
from pipelines.asked import EvalPrompt, Templates, templates_of
from pipelines.decontaminate import EvalSplit, Net, caught
from pipelines.remainder_net import Blind, net_remainders
from pipelines.slim import decisions, frame_of, parted, slim, without

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

    Templates are learned from all of them, and by them an instance is known whose pairs show another player's prompt.
    """

    prompts: Sequence[EvalPrompt]
    evaluation: Sequence[EvalPrompt]


class Screened(NamedTuple):
    """`kept` and `drops` are the input; `notes` say to a person what the nets could not see.

    `templates` are those of all first prompts that are known, for the stages that follow.
    """

    kept: list[Pair]
    drops: list[Drop]
    removed: tuple[Removed, ...]
    notes: tuple[str, ...]
    templates: Templates


def screen(
    pairs: Sequence[Pair],
    played: Played,
    evaluation: EvalSplit,
    net: Net,
    prompter: Prompter = ask_nobody,
) -> Screened:
    """Take out the pairs of evaluation instances.

    `prompter` is asked about the evaluation instances of games of which pairs are left and whose prompts are not known.
    """
    frame = frame_of(pairs)
    rows = slim(frame)
    by_name = caught(rows, net)
    left = without(rows, by_name)
    asked = _evaluation_prompts(left, played, evaluation, net, prompter)
    templates = templates_of(rows, frame, [*played.prompts, *asked.prompts])
    by_prompt = Netting(decisions(), ())
    if evaluation.sources and left.height:
        by_prompt = _net_instances(left, pairs, played.prompts, asked.prompts, templates)
    decided = pl.concat([by_name, by_prompt.decided])
    kept, drops = parted(pairs, decided, "decontaminate")
    notes = [*_unknown(asked.failed), *_unseen(by_prompt.blind)]
    return Screened(kept, drops, _removed(rows, decided), tuple(notes), templates)


def _evaluation_prompts(
    left: pl.DataFrame, played: Played, evaluation: EvalSplit, net: Net, prompter: Prompter
) -> Prompted:
    games = set(left["game"].to_list())
    known = {*evaluation.prompts, *played.evaluation}
    there = {net.known(prompt.key) for prompt in known}
    owed = sorted(key for key in evaluation.keys if key.game in games and key not in there)
    told = prompter(owed) if owed else Prompted((), {})
    return Prompted(sorted({*known, *told.prompts}), told.failed)


class Netting(NamedTuple):
    decided: pl.DataFrame
    blind: tuple[Blind, ...]


def _net_instances(
    left: pl.DataFrame,
    pairs: Sequence[Pair],
    played: Iterable[EvalPrompt],
    prompts: Sequence[EvalPrompt],
    templates: Templates,
) -> Netting:
    """The third net on all first prompts of the instances that are left, each decision taken for the whole instance."""
    here = {InstanceKey(*row) for row in left.select(INSTANCE).unique().iter_rows()}
    probes = [_probe(prompt) for prompt in sorted(set(played)) if prompt.key in here]
    ids = left["row"].to_list()
    frame = frame_of([*(pairs[row] for row in ids), *probes])
    rows = slim(frame)
    netted = net_remainders(rows, frame, prompts, templates)
    hits = netted.decided.join(rows.select("row", *INSTANCE), on="row", how="left", maintain_order="left")
    first = hits.sort("score", "reason", "keeper", descending=[True, False, False]).unique(
        INSTANCE, keep="first", maintain_order=True
    )
    named = first.select(*INSTANCE, "reason", "keeper", "score")
    met = left.join(named, on=INSTANCE, how="inner", maintain_order="left")
    made = [decisions(met.filter(pl.col("reason") == r), r) for r in ("eval_prompt", "eval_prompt_near")]
    return Netting(pl.concat(made), _all_blind(netted.blind, rows))


def _probe(prompt: EvalPrompt) -> Pair:
    """What stands for a player's first prompt among the pairs; it is looked at and never kept."""
    known: dict[str, Any] = {name: EMPTY.get(hint) for name, hint in fields_of(Pair)}
    said = {"prompt": (Message("user", prompt.text),), "chosen": (), "rejected": ()}
    return Pair(**{**known, **prompt.key._asdict(), "role": prompt.role, **said})


def _all_blind(blind: Iterable[Blind], rows: pl.DataFrame) -> tuple[Blind, ...]:
    """What the net could not judge in games of which it sees no player's prompt."""
    seen = {(b.game, b.role) for b in blind}
    sighted = {game for game, role in rows.select("game", "role").unique().iter_rows() if (game, role) not in seen}
    return tuple(b for b in blind if b.game not in sighted)


def _removed(rows: pl.DataFrame, decided: pl.DataFrame) -> tuple[Removed, ...]:
    named = decided.join(rows.select("row", *INSTANCE), on="row", how="left", maintain_order="left")
    met = named.group_by(*INSTANCE, "reason", "keeper", "score").len().sort(*INSTANCE, "reason", "keeper")
    return tuple(Removed(*row) for row in met.iter_rows())


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
