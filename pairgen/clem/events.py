"""What a game master's own events say of a move. Pure; knows neither files nor clemcore.

A violation is a move that the game master did not accept: it was malformed or against the rules, and the game asked
again, was aborted, or was lost by it. A move that was accepted but wrong or useless is none. The signs, as the games
log them; in recorded play they are as many as the requests that each game itself counts as violated, but for taboo's
clues and wordle's unknown words, which these games count as parsed:

| game | a violation | none |
|---|---|---|
| adventuregame | `invalid_format` | `action_fail` (the world says no), `turn_limit_reached` |
| cloudgame | `Invalid words`, `Invalid word count` | `judgement` |
| codenames | `validation error` (the reason is its content's `message`) | `turn end after`, `game end` |
| guesswhat | `invalid format`, `invalid content` | `incorrect guess`, `max turns reached` |
| hellogame | `invalid format` | `greeting failed` |
| imagegame | `invalid format` | `game end` |
| matchit, matchit_ascii | `invalid format`, `invalid content` | `Game over`, `Decision Player A` |
| mm_mapworld | `Invalid format`, `JSON decode error`, `reprompting` | `aborted` by the turn limit |
| privateshared | `parse` with NA (an answer asked for again), `invalid format` | `check`: Answer is incorrect. |
| referencegame | `invalid format` | `parse_wrong` |
| static (all) | `invalid format`, `metadata` with "ParseError: …" | `wrong answer`, `wrong label` |
| taboo | `invalid format`, `invalid clue` | `max rounds reached`, `valid guess` that is wrong |
| textmapworld (all) | `aborted`, `non_processable`, `Direction not available` | `turns_limit`, `loop_detected` |
| wordle (all) | `invalid format`, `metadata` with "Error: …" (asked again) | `max rounds played` |

Games that are not listed are read by the same words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_SIGN = re.compile(
    r"\b(?:invalid|illegal|malformed|violat\w+|non processable|not processable|not parsed|reprompt\w*"
    r"|direction not available|(?:validation|parse|parsing|decode|format|rule|request) (?:error|violation))\b"
)
_ABORT = re.compile(r"\babort(?:ed)?\b", re.IGNORECASE)
_LIMIT = re.compile(r"\b(?:turns?|rounds?) limit\b|\bmax (?:turns|rounds)\b")
_ERROR = re.compile(r"\w*error\s*:", re.IGNORECASE)
UNPARSED = "NA"
"""What privateshared logs as parsed where there was nothing that it could parse."""


def violation_in(events: Iterable[Mapping[str, Any]]) -> str:
    """Why the game master did not accept a move, in its own words, or "" where it did.

    `events` are those logged after the move and before the next model's reply, each
    `{"from", "to", "action": {"type", "content"}}`, live or from a file; only the game master's notes to itself count.
    """
    notes = [(_type(e["action"]), e["action"].get("content")) for e in events if e["from"] == e["to"] == "GM"]
    limited = any(_LIMIT.search(_plain(kind)) for kind, _ in notes)
    for position, (kind, content) in enumerate(notes):
        if _is_sign(kind, content, limited):
            return _reason(kind, content, notes[position - 1] if position else ("", None))
    return ""


def _is_sign(kind: str, content: Any, limited: bool) -> bool:
    plain = _plain(kind)
    if plain == "metadata":
        return isinstance(content, str) and bool(_ERROR.match(content))
    if plain == "parse":
        return bool(content == UNPARSED)
    if content is False:
        return False
    return bool(_SIGN.search(plain)) or (bool(_ABORT.search(plain)) and not limited)


def _reason(kind: str, content: Any, before: tuple[str, Any]) -> str:
    """The note as `type: content`; where it only says that the game ends, the remark that was made before it."""
    text = _text(content)
    if before[0] == "metadata" and isinstance(before[1], str) and before[1] and _ABORT.search(text):
        return before[1]
    if kind == "metadata":
        return text
    return f"{kind}: {text}" if text else kind


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if content is None or content is True:
        return ""
    if isinstance(content, Mapping):
        for field in ("message", "reason"):
            if isinstance(content.get(field), str) and content[field]:
                return str(content[field])
    return json.dumps(content, ensure_ascii=False, default=str)


def _type(action: Mapping[str, Any]) -> str:
    kind = action["type"]
    return str(getattr(kind, "value", kind))


def _plain(kind: str) -> str:
    return re.sub(r"[_-]+", " ", kind).lower()
