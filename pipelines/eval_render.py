"""Asks game masters for the first prompts of evaluation instances, where only their names are known. Plays nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pairgen.clem.client import GameServer, WorkerDied
from pairgen.records import InstanceKey, Message
from pipelines.first_prompts import EvalPrompt, first_of


class Rendered(NamedTuple):
    """The prompts, and of each instance that could not be set up (or has no model to ask first) the reason."""

    prompts: list[EvalPrompt]
    failed: dict[InstanceKey, str]


async def render(
    server: GameServer,
    games: Iterable[Mapping[str, Any]],
    keys: Iterable[InstanceKey],
    done: Callable[[InstanceKey], None] = lambda _: None,
) -> Rendered:
    """Set each instance up and take the prompt that its first model gets; `games` are those of a worker's catalog.

    `done` is called after each instance. Costs what the game masters take, a second for a large adventure.
    """
    by_game: dict[str, list[InstanceKey]] = defaultdict(list)
    for key in sorted(set(keys)):
        by_game[key.game].append(key)
    known = {game["game"]: game for game in games}
    prompts: list[EvalPrompt] = []
    failed: dict[InstanceKey, str] = {}
    for game, listed in by_game.items():
        found = await _render_game(server, known.get(game), listed, done)
        prompts += [entry for entry in found.values() if isinstance(entry, EvalPrompt)]
        failed.update((key, entry) for key, entry in found.items() if isinstance(entry, str))
    return Rendered(prompts, failed)


async def _render_game(
    server: GameServer, game: Mapping[str, Any] | None, keys: list[InstanceKey], done: Callable[[InstanceKey], None]
) -> dict[InstanceKey, EvalPrompt | str]:
    if game is None:
        return dict.fromkeys(keys, "the game is not here")
    found: dict[InstanceKey, EvalPrompt | str] = dict.fromkeys(keys, "the game has no such instance")
    there = {(experiment, task_id) for experiment, task_id, _ in game["instances"]}
    owed = [key for key in keys if (key.experiment, key.task_id) in there]
    found.update(dict.fromkeys(owed, "its game process ended"))
    worker = await server.worker()
    try:
        loaded = await worker.ask("", op="load", spec=game["spec"])
        if "problem" in loaded:
            return dict.fromkeys(keys, str(loaded["problem"]))
        for key in owed:
            begun = {"experiment": key.experiment, "task_id": key.task_id, "seed": 0, "folder": ""}
            step = await worker.ask("x", op="begin", **begun)
            if step["op"] == "ask":
                prompt = tuple(Message(m["role"], m["content"]) for m in step["messages"])
                found[key] = EvalPrompt(key, step["role"], first_of(prompt))
                await worker.ask("x", op="drop")
            else:
                found[key] = str(step.get("message") or "it asks no model anything")
            done(key)
    except WorkerDied:
        pass  # what it still owes says so
    finally:
        await worker.close()
    return found
