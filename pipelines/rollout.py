"""Plays: one coroutine an episode between the game workers and one engine, one journal writer.

Knows how episodes are driven and how they fail; knows neither clemcore nor how an engine works.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pairgen.clem.client import GameServer, GameWorker, WorkerDied
from pairgen.engines import Completion, Engine, Request, Sampling
from pairgen.errors import EngineRestarted, RequestError
from pairgen.records import Episode, Fault, Message, Messages, Move, Player
from pairgen.store import Journal
from pairgen.thinking import shown
from pipelines.plan import Queue, Work
from pipelines.workers import GameProblem, Setting, Workers

TRIES = 3
"""How often an episode is begun when its worker process dies under it."""


@dataclass(slots=True)
class Tally:
    """What a rollout has done so far; tokens as the engine counts them."""

    episodes: int = 0
    moves: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def count(self, completion: Completion) -> None:
        self.moves += 1
        self.prompt_tokens += max(0, completion.prompt_tokens)
        self.cached_tokens += max(0, completion.cached_tokens)
        self.completion_tokens += max(0, completion.completion_tokens)


async def play_all(
    server: GameServer,
    engine: Engine,
    games: Sequence[dict[str, Any]],
    plan: Sequence[Work],
    setting: Setting,
    journal: Journal,
    *,
    concurrency: int,
    on_episode: Callable[[Episode, Tally], None],
) -> Tally:
    """Play the plan, at most `concurrency` episodes at a time, each journaled when it ends.

    Raises EngineError when the engine cannot go on; what was journaled by then is safe.
    """
    started, tally, queue = time.monotonic(), Tally(), Queue(plan)
    workers = Workers(server, games, setting)
    ended: asyncio.Queue[Episode | None] = asyncio.Queue()

    async def runner() -> None:
        while (work := queue.next()) is not None:
            episode = await _play(workers, engine, work, setting, tally)
            queue.learn(episode.game, len(episode.moves))
            await ended.put(episode)

    async def write() -> None:
        done = False
        while not done:
            batch = [await ended.get()]
            while not ended.empty():
                batch.append(ended.get_nowait())
            done = None in batch
            episodes = [episode for episode in batch if episode is not None]
            await asyncio.to_thread(journal.append, *episodes)
            tally.seconds = time.monotonic() - started
            for episode in episodes:
                tally.episodes += 1
                on_episode(episode, tally)

    writer = asyncio.create_task(write())
    try:
        await _all_or_none([runner() for _ in range(min(concurrency, len(plan)))], watch=writer)
    finally:
        await ended.put(None)
        await writer
        await workers.close()
        tally.seconds = time.monotonic() - started
    return tally


async def _all_or_none(coroutines: Sequence[Any], *, watch: asyncio.Task[None]) -> None:
    """Run to the end; on the first failure (of `watch` too) cancel the others and raise it."""
    tasks = [asyncio.create_task(c) for c in coroutines]
    waiting: set[asyncio.Task[Any]] = {*tasks, watch}
    try:
        while not all(task.done() for task in tasks):
            finished, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _play(workers: Workers, engine: Engine, work: Work, setting: Setting, tally: Tally) -> Episode:
    """One episode from its beginning to its end; played again from the start when its worker or the engine dies."""
    deaths = 0
    while True:
        moves: list[Move] = []
        try:
            async with workers.seat(work.key.instance) as worker:
                end = await _dialogue(worker, engine, work, setting, moves, tally)
        except GameProblem as problem:
            end = {"op": "fault", "kind": "game_load", "message": str(problem)}
        except EngineRestarted:
            continue
        except WorkerDied:
            deaths += 1
            if deaths < TRIES:
                continue
            end = {"op": "fault", "kind": "worker_died", "message": f"the game process ended {TRIES} times"}
        return _episode(work, end, moves, workers.clemcore_version)


async def _dialogue(
    worker: GameWorker, engine: Engine, work: Work, setting: Setting, moves: list[Move], tally: Tally
) -> dict[str, Any]:
    """Carry prompts to the engine and replies to the game master; `moves` grows as they are accepted or not."""
    step = await worker.ask(
        work.id,
        op="begin",
        experiment=work.key.experiment,
        task_id=work.key.task_id,
        seed=work.seed,
        folder=work.folder,
        duo=work.duo,
        learner=work.learner,
    )
    while step["op"] == "ask":
        prompt = tuple(Message(m["role"], m["content"]) for m in step["messages"])
        try:
            sampling = _sampling(setting, work, len(moves))
            completion = await engine.generate(Request(prompt, sampling, work.id, bare=not step["learner"]))
        except RequestError as error:
            known = await worker.ask(work.id, op="drop")
            return {**known, "op": "fault", "kind": error.kind, "message": str(error)}
        except EngineRestarted:
            await worker.ask(work.id, op="drop")
            raise
        tally.count(completion)
        move = _move(len(moves), step, prompt, completion)
        step = await worker.ask(work.id, op="reply", text=move.reply, call=_call(move))
        moves.append(_judged(move, step.get("violation", "")))
    return step


def _sampling(setting: Setting, work: Work, move: int) -> Sampling:
    if setting.sampling.temperature == 0:
        return setting.sampling
    return replace(setting.sampling, seed=(work.seed + move) % 2**31)


def _move(index: int, step: dict[str, Any], prompt: Messages, completion: Completion) -> Move:
    return Move(
        index=index,
        player=step["player"],
        role=step["role"],
        model=step["model"],
        prompt=prompt,
        reply=shown(completion.text),
        raw_reply=completion.text,
        finish_reason=completion.finish_reason,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
        cached_tokens=completion.cached_tokens,
        token_ids=completion.token_ids,
        violation="",
    )


def _judged(move: Move, violation: str) -> Move:
    return replace(move, violation=violation) if violation else move


def _call(move: Move) -> dict[str, Any]:
    """What clemcore's requests file keeps of an answer."""
    return {
        "finish_reason": move.finish_reason,
        "usage": {"prompt_tokens": move.prompt_tokens, "completion_tokens": move.completion_tokens},
        "clem_player": {"response": move.reply, "model_name": move.model},
    }


def _episode(work: Work, end: dict[str, Any], moves: list[Move], clemcore_version: str) -> Episode:
    fault = Fault(end["kind"], end["message"], len(moves)) if end["op"] == "fault" else None
    return Episode(
        game=work.key.game,
        experiment=work.key.experiment,
        task_id=work.key.task_id,
        sample=work.key.sample,
        seed=work.seed,
        outcome="error" if fault else end["outcome"],
        main_score=None if fault else end["main_score"],
        players=tuple(Player(p["name"], p["role"], p["model"], p["learner"]) for p in end.get("players", [])),
        moves=tuple(moves),
        fault=fault,
        instance_hash=end.get("instance_hash", ""),
        clemcore_version=clemcore_version,
        source="rollout",
    )
