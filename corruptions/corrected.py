"""corrected: an illegal move that ended its episode, against its correction by a judge model, which becomes chosen.

The judge sees what the player saw, the move, and the game master's reason. Whether the correction is legal is not
decided here: the game master is asked, and only what it accepts is kept.
"""

from __future__ import annotations

import functools
import importlib.resources
import random
import re
from collections.abc import Mapping, Sequence
from string import Template

from corruptions.options import whole_number
from corruptions.shape import proven, refusal
from pairgen.records import Message, Messages
from pairgen.strategy import Ask, Corruption, Decline, Material, Strategy
from pairgen.thinking import shown

NAMES = {"system": "Instructions", "user": "Game master", "assistant": "Player"}
FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```|`([^`\n]+)`", re.DOTALL)
LABEL = re.compile(r"(?:the )?corrected move(?: is)?:\s*", re.IGNORECASE)
QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("„", "“"))
REFUSAL = re.compile(
    r"(?:i['’]?m |i am )?(?:very |so )?sorry\b|(?:unfortunately, )?i (?:can['’]?t|cannot|can not|won['’]?t|am unable)\b"
    r"|as an ai\b",
    re.IGNORECASE,
)


def asks(material: Material, chance: random.Random, options: Mapping[str, str]) -> Sequence[Ask] | Decline:
    """One question to the judge, answered at temperature 0."""
    move = material.move
    if declined := refusal(move.reply):
        return declined
    if not move.violation:
        return Decline("no reason of the game master")
    most = read_options(options)
    question = _template().substitute(conversation=_told(move.prompt), move=move.reply, reason=move.violation)
    return (Ask((Message("user", question),), most, temperature=0.0),)


def corrupt(material: Material, chance: random.Random, options: Mapping[str, str]) -> Corruption | Decline:
    """The judge's move without what is around it; the detail names the judge."""
    if not material.drafts:
        return Decline("nobody was asked")
    draft, reply = material.drafts[0], material.move.reply
    if draft.problem:
        return Decline(f"the judge gave no reply {draft.problem}")
    if draft.finish_reason == "length":
        return Decline("the judge was cut off")
    text = _bare(shown(draft.text), (reply, *material.peers))
    if not text:
        return Decline("the judge said nothing")
    if REFUSAL.match(text):
        return Decline("the judge refused")
    if text.split() == reply.split():
        return Decline("the judge repeated the move")
    return proven(reply, text, f"judge/{draft.by}")


def read_options(options: Mapping[str, str]) -> int:
    """The most tokens of an answer. Raises UsageProblem for a value that cannot be."""
    return whole_number("corrected", options, "max_tokens", 1, 100_000, 2_000)


def _told(prompt: Messages) -> str:
    return "\n\n".join(f"[{NAMES.get(m.role, m.role)}]\n{m.content}" for m in prompt)


def _bare(text: str, moves: Sequence[str]) -> str:
    """The move alone: no label, fence or quotes around it, unless moves of this game have them."""
    if label := LABEL.match(text):
        text = text[label.end() :].strip()
    if (fenced := FENCE.fullmatch(text)) and not any(m.lstrip().startswith("`") for m in moves):
        text = (fenced[1] or fenced[2] or "").strip()
    for opening, closing in QUOTES:
        quoted = len(text) > 1 and text.startswith(opening) and text.endswith(closing)
        inside = text[1:-1]
        if quoted and opening not in inside and not any(m.lstrip().startswith(opening) for m in moves):
            return inside.strip()
    return text


@functools.cache
def _template() -> Template:
    return Template(importlib.resources.files("corruptions").joinpath("corrected.txt").read_text(encoding="utf-8"))


STRATEGY = Strategy(
    "corrected",
    "an illegal move that aborted its episode, against its correction, chosen, by a judge model (see --judge)",
    corrupt,
    requires_violation=True,
    requires_proof=True,
    takes="aborted",
    asked="judge",
    asks=asks,
    options={"max_tokens": "tokens that the judge may take, its thinking among them (2000)"},
    check=read_options,
)
