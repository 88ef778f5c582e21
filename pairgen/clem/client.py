"""The driver's side of the game workers: starts the fork server, opens workers, and matches answers to questions.

Knows messages and processes; knows no clemcore, no engine and no journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pairgen.clem import wire
from pairgen.errors import PairgenError

HASH_SEED = "0"
"""Games word things in set order, so workers start with this PYTHONHASHSEED; it is recorded in the manifest."""

DEMO_GAMES = Path(__file__).parent.parent / "demogames"

TRIES = 3
"""How often a question is put to a new worker when its worker process dies under it."""

START_TIMEOUT_S = 180.0
STALL_S = 600.0


class WorkerDied(Exception):
    """The worker process ended while it was asked something."""


class GameServer:
    """The fork server process; `async with` starts and stops it. `logs` is the folder its messages go to."""

    def __init__(self, logs: Path):
        self._logs = logs
        self._process: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def __aenter__(self) -> GameServer:
        self._logs.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="pairgen-")
        self._socket = str(Path(self._folder.name) / "games")
        with (self._logs / "games.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "pairgen.clem.server", self._socket, cwd=self._logs, env=_environment(),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), START_TIMEOUT_S)
        except asyncio.TimeoutError:
            line = b""
        if line != b"ready\n":
            await self.__aexit__()
            raise PairgenError(f"the game server did not start: see {self._logs / 'games.log'}.")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), 5.0)
            except asyncio.TimeoutError:
                self._process.kill()
                await self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    async def worker(self) -> GameWorker:
        """A fresh worker process."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError as error:
            raise PairgenError(f"the game server is gone ({error}): see {self._logs / 'games.log'}.") from None
        return GameWorker(reader, writer)

    async def ask(self, **message: Any) -> dict[str, Any]:
        """One answer from a worker of its own, from another one where that dies. Raises PairgenError."""
        for _ in range(TRIES):
            worker = await self.worker()
            try:
                return await worker.ask("", **message)
            except WorkerDied:
                continue
            finally:
                await worker.close()
        raise PairgenError(f"the game process ended {TRIES} times: see {self._logs / 'games.log'}.")


class GameWorker:
    """One worker process. `ask` may be called by many coroutines at once; the worker answers one after the other.

    A worker that owes an answer and gives none for `STALL_S` seconds hangs in a game master and is killed.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._writer = writer
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._busy_since = 0.0
        self.alive = True
        self.pid = 0
        self._reading = asyncio.create_task(self._read(reader))

    @property
    def backlog(self) -> int:
        """How many answers it owes."""
        return len(self._waiting)

    async def ask(self, key: str, **message: Any) -> dict[str, Any]:
        """Send one message for episode `key` and wait for its answer. Raises WorkerDied."""
        if not self.alive:
            raise WorkerDied
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._busy_since = time.monotonic()
        self._waiting[key] = answer
        try:
            self._writer.write(wire.encode({"id": key, **message}))
            await self._writer.drain()
            return await answer
        except ConnectionError:
            raise WorkerDied from None
        finally:
            self._waiting.pop(key, None)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        watch = asyncio.create_task(self._watch())
        try:
            while (message := await wire.read_async(reader)) is not None:
                self._busy_since = time.monotonic()
                answer = self._waiting.get(message.pop("id"))
                self.pid = message.pop("pid", self.pid)
                if answer is not None and not answer.done():
                    answer.set_result(message)
        finally:
            watch.cancel()
            self.alive = False
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(WorkerDied())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(STALL_S / 10)
            if self._waiting and self.pid and time.monotonic() - self._busy_since > STALL_S:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        self.alive = False
        self._reading.cancel()
        self._writer.close()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await self._writer.wait_closed()


def _environment() -> dict[str, str]:
    """This environment, with the hash seed fixed, no accelerator, one thread a worker, and pairgen importable."""
    root = str(Path(__file__).resolve().parent.parent.parent)
    paths = [root, *(str(Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)]
    return {
        **os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": os.pathsep.join(paths), "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1", "GRADIO_ANALYTICS_ENABLED": "False",
    }  # fmt: skip
