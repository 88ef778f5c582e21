"""Takes a reasoning model's thinking text out of a reply. Pure."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


def shown(reply: str) -> str:
    """What the game is shown of a raw reply: no thinking text, no white space around, as clemcore's backends have it.

    A thought that was never closed leaves nothing to show. A closing tag alone counts too: some chat templates put the
    opening tag into the prompt.
    """
    if CLOSE in reply:
        reply = reply.rsplit(CLOSE, 1)[1]
    elif reply.lstrip().startswith(OPEN):
        return ""
    return reply.strip()
