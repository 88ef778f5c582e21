"""Asks a busy server again: waits as it says, or longer each time, and never longer in all than was allowed.

Reads the errors of huggingface_hub's 0.x (requests) and 1.x (httpx) and of what is built on it. Knows no data set.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

BUSY = frozenset({408, 429, 500, 502, 503, 504})
FIRST, LONGEST = 1.0, 30.0
"""Seconds of the first and of the longest wait where the server names none."""

T = TypeVar("T")


class Patience:
    """`seconds` of waiting in all; `say` is told of each wait, `sleep` does it."""

    def __init__(self, seconds: float, say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep):
        self.left, self._say, self._sleep = seconds, say, sleep

    def call(self, what: str, work: Callable[[], T]) -> T:
        """What `work` gives, asked again after an error that may pass; raises that error when no time is left."""
        pause = FIRST
        while True:
            try:
                return work()
            except Exception as error:  # noqa: PERF203 (it is what the loop is for)
                if not may_pass(error):
                    raise
                named = asked_wait(error)
                wait = pause if named is None else named
                if wait > self.left:
                    raise
                self.left -= wait
                self._say(f"{what}: {reason(error)}; trying again in {wait:g} s ({self.left:.0f} s left to wait)")
                self._sleep(wait)
                pause = min(LONGEST, pause * 2)


def may_pass(error: BaseException) -> bool:
    """Whether the same request may go through later: the server is busy or failing, or was not reached."""
    status = status_of(error)
    return status in BUSY if status else not offline(error) and any(isinstance(e, _unreached()) for e in _chain(error))


def offline(error: BaseException) -> bool:
    """Whether the client was told not to use the network."""
    return any(type(link).__name__ == "OfflineModeIsEnabled" for link in _chain(error))


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an error, None where there was no answer. hf_xet keeps it in its text alone."""
    found = next((int(r.status_code) for r in _responses(error)), None)
    named = re.search(r"HTTP status (?:client|server) error \((\d{3})\b", str(error))
    return int(named[1]) if found is None and named else found


def asked_wait(error: BaseException) -> float | None:
    """The seconds that the server says to wait (`Retry-After`, or the reset of a `RateLimit` that is used up)."""
    for response in _responses(error):
        after = str(response.headers.get("Retry-After") or "").strip()
        if after.isdigit():
            return float(after)
        with contextlib.suppress(ValueError, TypeError):
            from email.utils import parsedate_to_datetime

            return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
        reset = re.search(r"\br\s*=\s*0\s*;\s*t\s*=\s*(\d+)", str(response.headers.get("RateLimit") or ""))
        if reset:
            return float(reset[1]) + 1
    return None


def reason(error: BaseException) -> str:
    """Why it did not go through, in a few words."""
    status = status_of(error)
    if status == 429:
        return "too many requests (429)"
    return f"the server answered {status}" if status else f"not reached ({type(_root(error)).__name__})"


def _unreached() -> tuple[type[BaseException], ...]:
    import httpx
    import requests

    return (
        httpx.TransportError, requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError,
        requests.exceptions.SSLError, json.JSONDecodeError, ConnectionError, TimeoutError,
    )  # fmt: skip


def _responses(error: BaseException) -> Iterator[Any]:
    for link in _chain(error):
        response = getattr(link, "response", None)
        if response is not None and hasattr(response, "status_code"):
            yield response


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _root(error: BaseException) -> BaseException:
    return list(_chain(error))[-1]
