"""How driver and game workers talk: JSON messages behind a four-byte length. Knows no message."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import IO, Any

_HEAD = struct.Struct(">I")


def encode(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _HEAD.pack(len(body)) + body


def read_blocking(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message, or None where the other side is gone."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    (size,) = _HEAD.unpack(head)
    body = stream.read(size)
    return None if len(body) < size else _object(body)


async def read_async(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message, or None where the other side is gone."""
    try:
        (size,) = _HEAD.unpack(await stream.readexactly(_HEAD.size))
        return _object(await stream.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _object(body: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(body)
    return message
