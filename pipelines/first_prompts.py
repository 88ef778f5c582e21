"""What the first prompts of a pair set ask: the template of each game and role, and each prompt's remainder by name.

An evaluation instance's prompt comes from an episode that played it, or from its game master when it sets the instance
up (an `EvalPrompt` either way). Knows no file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import polars as pl

from pairgen.records import Episode, InstanceKey, Messages
from pipelines.likeness import exact_name
from pipelines.slim import first_text, once, texts
from pipelines.template import MAX_INSTANCES, UNKNOWN, Prompt, Template, learn

Templates = Mapping[tuple[str, str], Template]
"""By game and `plain` role."""
KIND = ("game", "role", "experiment", "first")
"""Pairs that agree in these have the same first prompt, and one template to read it with."""


class EvalPrompt(NamedTuple):
    """The first prompt of an evaluation instance, as the model in `role` gets it."""

    key: InstanceKey
    role: str
    text: str


def eval_prompts(
    episodes: Iterable[Episode], is_evaluation: Callable[[Episode], bool] = lambda _: True
) -> list[EvalPrompt]:
    """The different first prompts of the evaluation instances among these episodes."""
    found = {
        EvalPrompt(episode.key.instance, move.role, first_of(move.prompt))
        for episode in episodes
        if is_evaluation(episode)
        for move in episode.moves
        if move.model != "programmatic" and move.prompt
    }
    return sorted(found)


def plain(role: str) -> str:
    """A role as versions of a game agree on it: InstructionGiver is also written Instruction Giver."""
    return "".join(c for c in role.casefold() if c.isalnum())


def asks_of(prompt: Mapping[str, str], templates: Templates) -> str:
    """What a first prompt asks, by the template of its `game` and `role`; it also has `experiment` and `text`."""
    template = templates.get((prompt["game"], plain(prompt["role"])), UNKNOWN)
    return template.asks(prompt["text"], prompt["experiment"])


def first_of(prompt: Messages) -> str:
    """The text of the first user message and of what stands before it, as `slim.first_text` has it."""
    upto = next((i for i, message in enumerate(prompt) if message.role == "user"), 0)
    return "\n".join(message.content for message in prompt[: upto + 1])


def templates_of(
    rows: pl.DataFrame, pairs: pl.LazyFrame, evaluation: Iterable[EvalPrompt] = ()
) -> dict[tuple[str, str], Template]:
    """The template of each game and role, learned over at most a few hundred first prompts of each experiment."""
    named = ["game", "role", "experiment", "task_id"]
    prompts = once(rows.sort("pair_id"), named).with_columns(
        place=pl.int_range(pl.len()).over("game", "role", "experiment")
    )
    some = prompts.filter(pl.col("place") < MAX_INSTANCES)
    found: dict[tuple[str, str], list[Prompt]] = defaultdict(list)
    for batch in texts(pairs, some["row"], [*named, first_text().alias("text")]):
        for game, role, experiment, task, text in batch.select(*named, "text").iter_rows():
            found[game, plain(role)].append(Prompt(experiment, (game, experiment, task), text))
    for key, role, text in evaluation:
        found[key.game, plain(role)].append(Prompt(key.experiment, tuple(key), text))
    return {key: learn(prompts) for key, prompts in sorted(found.items())}


def first_prompts(rows: pl.DataFrame, pairs: pl.LazyFrame) -> Iterator[dict[str, str]]:
    """Each different first prompt once: `game`, `role`, `experiment`, `first` (its hash) and `text`."""
    different = once(rows, KIND).select("row", "first")
    for batch in texts(pairs, different["row"], ["game", "role", "experiment", first_text().alias("text")]):
        yield from batch.join(different, on="row", how="left", maintain_order="left").iter_rows(named=True)


def with_asked(rows: pl.DataFrame, pairs: pl.LazyFrame, templates: Templates) -> pl.DataFrame:
    """The slim rows with `asked`: equal where prompts of a game ask the same, null where a prompt is all template."""
    found = []
    for prompt in first_prompts(rows, pairs):
        asks = asks_of(prompt, templates)
        found.append((*(prompt[k] for k in KIND), exact_name(prompt["game"] + "\n" + asks) if asks else None))
    schema = {**{k: rows.schema[k] for k in KIND}, "asked": pl.UInt64()}
    named = pl.DataFrame(found, schema=schema, orient="row")
    return rows.drop("asked", strict=False).join(named, on=[*KIND], how="left", maintain_order="left")
