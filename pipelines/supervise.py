"""An engine that is started again when it dies, a bounded number of times. Knows no episode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pairgen.engines import Completion, Engine, Request
from pairgen.errors import EngineError, EngineRefused, EngineRestarted

PAUSE_S = 5.0
"""How long an engine that did not start is left alone before the next attempt: a server takes time to come back."""


class Supervised:
    """Wraps an engine: whoever was waiting when it died gets EngineRestarted once it serves again.

    After `restarts` deaths and failed attempts to start it again, and at once where it refuses to serve, the engine's
    own EngineError is raised.
    """

    def __init__(self, engine: Engine, restarts: int, on_restart: Callable[[str], None]):
        self._engine, self._left, self._on_restart = engine, restarts, on_restart
        self._life, self._lock = 0, asyncio.Lock()
        self.deaths = 0

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def model(self) -> str:
        return self._engine.model

    async def start(self) -> None:
        await self._engine.start()

    async def generate(self, request: Request) -> Completion:
        life = self._life
        try:
            return await self._engine.generate(request)
        except EngineRefused:
            raise
        except EngineError as error:
            await self._revive(life, error)
            raise EngineRestarted from error

    async def _revive(self, life: int, error: EngineError) -> None:
        async with self._lock:
            if life != self._life:
                return
            self.deaths += 1
            while not await self._restarted(error):
                await asyncio.sleep(PAUSE_S)
            self._life += 1

    async def _restarted(self, why: EngineError) -> bool:
        """One attempt; raises `why` where none is left, and what this attempt met where it was the last one."""
        if self._left <= 0:
            raise why
        self._left -= 1
        self._on_restart(str(why))
        await self._engine.close()
        try:
            await self._engine.start()
        except EngineRefused:
            raise
        except EngineError:
            if self._left <= 0:
                raise
            return False
        return True

    async def close(self) -> None:
        await self._engine.close()
