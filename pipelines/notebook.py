"""Notebook: JSON lines that are only ever added to, so that slow or paid work is done once. Knows no meaning of theirs.

A line that was torn by a kill is no line, and costs none after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Notebook:
    """`lines` are those that were there when it was opened; what is added is on disk when `add` returns."""

    def __init__(self, path: Path):
        self._path = path
        data = path.read_bytes() if path.exists() else b""
        self._torn = bool(data) and not data.endswith(b"\n")
        self.lines: list[list[Any]] = [line for raw in data.split(b"\n") if (line := _read(raw)) is not None]

    def add(self, lines: Iterable[list[Any]]) -> None:
        """In ASCII: no text of a model holds a line break, or a character that cannot be written, to the file."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        if text:
            with self._path.open("a", encoding="ascii") as handle:
                handle.write(("\n" if self._torn else "") + text)
            self._torn = False


def _read(raw: bytes) -> list[Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, list) else None
