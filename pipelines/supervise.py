"""An engine that is started again when it dies, a bounded number of times. Knows no episode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pairgen.engines import Completion, Engine, Request
from pairgen.errors import EngineError, EngineRefused, EngineRestarted


class Supervised:
    """Wraps an engine: whoever was waiting when it died gets EngineRestarted once it serves again.

    After `restarts` deaths, where it cannot be started again, and at once where it refuses to serve, the engine's own
    EngineError is raised.
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
            if self._left <= 0:
                raise error
            self._left -= 1
            self.deaths += 1
            self._on_restart(str(error))
            await self._engine.close()
            await self._engine.start()
            self._life += 1

    async def close(self) -> None:
        await self._engine.close()
