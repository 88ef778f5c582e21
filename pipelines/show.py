"""A pair for the terminal: both sides beside each other, with what differs marked. Pure text in, text out."""

from __future__ import annotations

import difflib
import re
import textwrap
import unicodedata
from collections.abc import Iterable
from itertools import zip_longest

from pairgen.records import Pair

OPEN, CLOSE = "⟦", "⟧"
_PARTS = re.compile(r"\s+|\w+|[^\w\s]")


def mark(chosen: str, rejected: str) -> tuple[str, str]:
    """Both texts with the parts that the other one lacks in ⟦brackets⟧."""
    left, right = _PARTS.findall(chosen), _PARTS.findall(rejected)
    marked: tuple[list[str], list[str]] = ([], [])
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for kind, a1, a2, b1, b2 in matcher.get_opcodes():
        for side, part in ((0, "".join(left[a1:a2])), (1, "".join(right[b1:b2]))):
            marked[side].append(part if kind == "equal" or not part else f"{OPEN}{part}{CLOSE}")
    return "".join(marked[0]), "".join(marked[1])


def side_by_side(pair: Pair, *, width: int, prompt_lines: int = 6) -> list[str]:
    """The pair in lines of at most `width` columns: where it is from, the end of its prompt, then both sides."""
    half = max(20, (width - 3) // 2)
    head = (
        f"{pair.game} / {pair.experiment} / {pair.task_id}, {pair.player} ({pair.role}), {pair.strategy}: {pair.detail}"
    )
    asked = _wrapped(pair.prompt[-1].content, width - 2)
    hidden = len(asked) - prompt_lines
    cut = [f"  … {hidden} lines before"] if hidden > 0 else []
    lines = [head, *cut, *(f"  {line}" for line in asked[max(0, hidden) :]), ""]
    chosen, rejected = mark(_said(pair.chosen), _said(pair.rejected))
    lines.append(f"{_pad('chosen', half)} │ rejected")
    for left, right in zip_longest(_wrapped(chosen, half), _wrapped(rejected, half), fillvalue=""):
        lines.append(f"{_pad(left, half)} │ {right}".rstrip())
    verdicts = {"chosen": _verdict(pair.chosen_verdict, pair.chosen_reason)}
    verdicts["rejected"] = _verdict(pair.rejected_verdict, pair.rejected_reason)
    return [*lines, *(f"{side}: {text}" for side, text in verdicts.items())]


def _said(completion: Iterable[object]) -> str:
    return "\n".join(str(getattr(message, "content", "")) for message in completion)


def _verdict(verdict: str, reason: str) -> str:
    return f"{verdict} ({reason})" if reason else verdict


def _wrapped(text: str, width: int) -> list[str]:
    """Wrapped by characters, control characters made visible, line breaks kept."""
    visible = "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else f"\\x{ord(c):02x}" for c in text)
    return [part for line in visible.split("\n") for part in (textwrap.wrap(line, width) or [""])]


def _pad(text: str, width: int) -> str:
    """To `width` columns; wide characters take two."""
    columns = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))
    return text + " " * max(0, width - columns)
