"""What supervised fine-tuning learns from: every move of won episodes with the prompt it answered, cleaned and split.

A row a move, not a row an episode: the loss then lies on the model's own words whatever the chat template can mark, and
each prompt is rendered as it is when the model plays. Pure; rows are pairs without a rejected side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from pairgen.records import Episode, Message, Pair, fields_of
from pipelines.decontaminate import EvalSplit, Net, caught
from pipelines.first_prompts import eval_prompts, with_asked
from pipelines.funnel import StageCount, count_stage
from pipelines.harvest import Caps, WonMove, harvest
from pipelines.screen import EMPTY, Played, Prompter, ask_nobody, screen
from pipelines.slim import frame_of, parted, slim
from pipelines.split import sides


class Taught(NamedTuple):
    """Both sides of the split, the counts of each stage, and what the nets could not see."""

    train: list[Pair]
    test: list[Pair]
    funnel: tuple[StageCount, ...]
    notes: tuple[str, ...]


def taught(
    episodes: Sequence[Episode],
    caps: Caps,
    evaluation: EvalSplit,
    *,
    test_size: float,
    seed: int,
    prompter: Prompter = ask_nobody,
) -> Taught:
    """The moves worth teaching; evaluation instances are kept out by the nets that `pairgen corrupt` has."""
    net = Net(evaluation)
    net.learn(episodes)

    def is_evaluation(episode: Episode) -> bool:
        return bool(net.catch(episode.key.instance, episode.instance_hash))

    played = Played(eval_prompts(episodes), eval_prompts(episodes, is_evaluation))
    screened = screen(played, evaluation, net, prompter)
    net.note(screened.found)
    won = harvest(episodes, caps, seed, is_evaluation)
    rows = [_row(move) for move in won.kept]
    frame = frame_of(rows)
    clean, leaks = parted(rows, caught(slim(frame), net), "decontaminate")
    left = frame_of(clean)
    split = sides(with_asked(slim(left), left, screened.templates), test_size, seed, "asked")
    placed = [
        dataclasses.replace(clean[row], split=side)
        for row, side in split.sort("row").select("row", "split").iter_rows()
    ]  # fmt: skip
    funnel = (
        count_stage("harvest", "moves", won.entered, len(won.kept), won.drops),
        count_stage("decontaminate", "moves", len(rows), len(clean), leaks),
    )
    train, test = ([row for row in placed if row.split == side] for side in ("train", "test"))
    return Taught(train, test, funnel, screened.notes)


def _row(won: WonMove) -> Pair:
    known: dict[str, Any] = {name: EMPTY.get(hint) for name, hint in fields_of(Pair)}
    episode, move = won.episode, won.move
    return Pair(
        **{
            **known, "pair_id": won.move_id, "prompt": move.prompt, "chosen": (Message("assistant", move.reply),),
            "rejected": (), "game": episode.game, "experiment": episode.experiment, "task_id": episode.task_id,
            "sample": episode.sample, "episode_id": episode.episode_id, "move_id": won.move_id,
            "move_index": move.index, "player": move.player, "role": move.role, "model": move.model,
            "outcome": episode.outcome, "main_score": episode.main_score, "instance_hash": episode.instance_hash,
        }
    )  # fmt: skip
