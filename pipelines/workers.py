"""The worker processes of a rollout: how many each game has, and which of them an episode is played in.

Knows processes and messages; knows no engine and no journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.clem.client import GameServer, GameWorker
from pairgen.engines import Sampling
from pairgen.records import InstanceKey

HOME_BACKLOG = 8
"""So many answers a worker may owe before an instance that it has set up once goes to another one."""


class Setting(NamedTuple):
    """What all episodes of a rollout share. `results` is where clemcore's own layout is written.

    `label` names the learner, `partner` the model that the other players are left to ("": the learner speaks for all).
    """

    label: str
    sampling: Sampling
    results: Path
    partner: str = ""


class Workers:
    """The worker processes of each game: one when it is first played, more while they have work waiting and cores are
    idle (some game masters need a second of CPU to set an instance up), and new ones for those that die."""

    def __init__(self, server: GameServer, games: Sequence[dict[str, Any]], setting: Setting):
        self._server, self._setting = server, setting
        self._specs = {game["game"]: game["spec"] for game in games}
        self._cores = os.cpu_count() or 1
        self._workers: dict[str, list[GameWorker]] = {game: [] for game in self._specs}
        self._locks = {game: asyncio.Lock() for game in self._specs}
        self._open: dict[int, int] = {}
        self._homes: dict[InstanceKey, GameWorker] = {}
        self._problems: dict[str, str] = {}
        self.clemcore_version = ""

    @contextlib.asynccontextmanager
    async def seat(self, place: InstanceKey) -> AsyncIterator[GameWorker]:
        """A worker of the game with little to do. Raises GameProblem where the game cannot load."""
        worker = await self._take(place)
        self._open[id(worker)] = self._open.get(id(worker), 0) + 1
        try:
            yield worker
        finally:
            self._open[id(worker)] -= 1

    async def _take(self, place: InstanceKey) -> GameWorker:
        game = place.game
        async with self._locks[game]:
            if game in self._problems:
                raise GameProblem(self._problems[game])
            alive = [w for w in self._workers[game] if w.alive]
            self._workers[game] = alive
            home = self._homes.get(place)
            if home in alive and home.backlog <= HOME_BACKLOG:
                return home
            if not alive or (all(w.backlog > 1 for w in alive) and self._busy() < self._cores):
                alive.append(await self._start(game))
            self._homes[place] = min(alive, key=lambda w: (w.backlog, self._open.get(id(w), 0)))
            return self._homes[place]

    def _busy(self) -> int:
        return sum(w.alive and w.backlog > 0 for workers in self._workers.values() for w in workers)

    async def _start(self, game: str) -> GameWorker:
        worker = await self._server.worker()
        sampling = {"temperature": self._setting.sampling.temperature, "max_tokens": self._setting.sampling.max_tokens}
        try:
            answer = await worker.ask(
                "", op="load", spec=self._specs[game], label=self._setting.label,
                partner=self._setting.partner, sampling=sampling, results=str(self._setting.results),
            )  # fmt: skip
        except BaseException:  # cancelled, too: nobody else knows of this worker yet
            await worker.close()
            raise
        if "problem" in answer:
            await worker.close()
            self._problems[game] = answer["problem"]
            raise GameProblem(answer["problem"])
        self.clemcore_version = answer["clemcore_version"]
        return worker

    async def close(self) -> None:
        for workers in self._workers.values():
            for worker in workers:
                await worker.close()


class GameProblem(Exception):
    """A game that cannot be loaded; the text is its own exception."""
