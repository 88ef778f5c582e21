"""Why episodes could not be played: grouped by game and cause, with the fix where it is known. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pairgen.records import Fault


def grouped_faults(faults: Iterable[tuple[str, Fault]]) -> list[dict[str, Any]]:
    """Why episodes could not be played, by game and cause, the most frequent first, with the fix where it is known."""
    counts = Counter((game, fault.kind, _one_line(fault.message)) for game, fault in faults)
    return [
        {"game": game, "kind": kind, "message": message, "episodes": n, "fix": fix_for(kind, message)}
        for (game, kind, message), n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _one_line(message: str) -> str:
    """The telling part of a fault's text: NLTK frames its messages with stars and blank lines."""
    words = " ".join(line.strip() for line in message.splitlines() if line.strip(" *"))
    return words if len(words) <= 300 else words[:299] + "…"


def fix_for(kind: str, message: str) -> str:
    """What to do about a fault, in one sentence, or ""."""
    if resource := re.search(r"nltk\.download\('([\w.-]+)'\)", message):
        return f"python -m nltk.downloader {resource[1]}"
    if module := re.search(r"No module named '([\w.]+)'", message):
        return f'pip install "pairgen[clembench]" (it brings {module[1].split(".")[0]})'
    if kind == "context_exceeded":
        return "give a larger --max-model-len or a smaller --max-tokens"
    if kind == "timeout":
        return "give a larger --timeout or a smaller --concurrency"
    if kind == "game_setup" or kind == "game_load":
        return "game and clemcore are of different versions: update the clembench checkout"
    return ""
