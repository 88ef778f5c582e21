"""A game worker: one game, many open episodes, driven by messages on a socket. Imports clemcore."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from clemcore import get_version
from clemcore.clemgame import GameBenchmark, GameInstances

from pairgen.clem import catalog, compat, replay, wire
from pairgen.clem.setups import Setups
from pairgen.clem.table import GameFault, Table
from pairgen.records import instance_hash

NOBODY: dict[str, Any] = {"temperature": 0.0, "max_tokens": 300}
"""What games are told of the sampling where no model plays: they are looked at, or replayed."""


class Worker:
    """Answers one message at a time; every answer carries the id of the episode that it is for."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._folders: dict[str, tuple[str, str]] = {}
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}
        self._setups = Setups()

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        handler = getattr(self, f"_{message['op']}")
        answer: dict[str, Any] = handler(message)
        return answer

    def _catalog(self, message: dict[str, Any]) -> dict[str, Any]:
        return catalog.find_games(
            message["clembench"], message["cwd"], message["selectors"], lenient=message.get("lenient", False)
        )

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        self._game, self._label = message["spec"]["game_name"], message.get("label", "model")
        self._sampling, self._results = message.get("sampling", NOBODY), message.get("results")
        self._partner = message.get("partner", "")
        try:
            compat.restore_numpy_names()
            spec = catalog.load_spec(message["spec"])
            self._benchmark = GameBenchmark.load_from_spec(spec)
            for row in GameInstances.from_game_spec(spec):
                self._rows[row["experiment"]["name"], int(row["game_instance"]["game_id"])] = row
        except Exception as error:
            return {"problem": f"{type(error).__name__}: {error}"}
        return {"clemcore_version": get_version(), "pid": os.getpid()}

    def _begin(self, message: dict[str, Any]) -> dict[str, Any]:
        seed, learner = message["seed"], message.get("learner", 0)
        place = (message["experiment"], message["task_id"])
        key = (*place, learner)
        table = self._setups.table(key, seed, lambda: self._table(place, seed, self._partner, learner))
        folders = (message["folder"], message.get("duo", ""))
        self._tables[message["id"]], self._folders[message["id"]] = table, folders
        return self._settle(message, lambda: self._setups.open(key, table))

    def _table(self, place: tuple[str, int], seed: int, partner: str = "", learner: int = 0) -> Table:
        row = self._rows[place]
        return Table(self._benchmark, row, self._label, self._sampling, seed, partner=partner, learner=learner)

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        table = self._tables[message["id"]]
        return self._settle(message, lambda: table.reply(message["text"], message["call"]))

    def _verify(self, message: dict[str, Any]) -> dict[str, Any]:
        """Play one recorded episode again and put other replies to its game master."""
        place = (message["experiment"], message["task_id"])
        row = self._rows.get(place)
        known = row and instance_hash(self._game, row["game_instance"])
        if row is None or message["instance_hash"] not in ("", known):
            why = "no such instance" if row is None else "another instance"
            return {"verdicts": {t["id"]: [replay.unverifiable(why), ""] for t in message["tries"]}}
        table = self._setups.table(place, message["seed"], lambda: self._table(place, message["seed"]))
        opening = partial(self._setups.open, place, table)
        return {"verdicts": replay.replay(table, opening, message["moves"], message["tries"])}

    def _drop(self, message: dict[str, Any]) -> dict[str, Any]:
        """Give an episode up; says what is known of it."""
        self._folders.pop(message["id"], None)
        table = self._tables.pop(message["id"], None)
        return table.known() if table else {}

    def _settle(self, message: dict[str, Any], act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `act` leads to; where that is the end, the score too, and the table is cleared."""
        key = message["id"]
        table = self._tables[key]
        answer: dict[str, Any] = {"violation": ""}
        try:
            answer = act()
            if answer["op"] == "ask":
                return answer
            folder = Path(self._results) / self._folders[key][table.duo] if self._results else None
            answer["outcome"], answer["main_score"] = table.score(folder)
        except GameFault as fault:
            logging.getLogger("pairgen").exception("%s %s", self._game, key)
            answer = {**answer, "op": "fault", "kind": f"game_{fault.stage}", "message": str(fault)}
        return {**answer, **self._drop(message)}


def serve(connection: socket.socket) -> None:
    """Answer until the other side closes the connection."""
    worker = Worker()
    with connection, connection.makefile("rb") as incoming:
        while (message := wire.read_blocking(incoming)) is not None:
            answer = worker.answer(message)
            connection.sendall(wire.encode({"id": message["id"], **answer}))
