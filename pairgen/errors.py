"""Every error that a user may meet. Each message is one sentence that names the fix.

Knows nothing of click: the command line turns `UsageProblem` into exit 2 and every other `PairgenError` into exit 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PairgenError(Exception):
    """A job that failed for a reason that the user can mend; the message says how."""


class UsageProblem(PairgenError):
    """The command was called in a way that cannot work (exit 2)."""


class EngineError(PairgenError):
    """The engine as a whole cannot serve: the run stops."""


class EngineRefused(EngineError):
    """The engine answers and says no (to the key, to the model's name): starting it again would change nothing."""


class EngineRestarted(Exception):
    """The engine died and was started again: what was open at it must be played from its start."""


class RequestError(Exception):
    """One request failed; its episode ends as `error` and the others go on.

    `kind` is a stable word for counting, such as `context_exceeded`, `timeout` or `request_failed`.
    """

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence part that names the closest known words, or all of them when none is close."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known: {', '.join(names)}" if names else "none is known"
