"""Filler in whatever language a game speaks: sentences of the prompt, said again beside the move. Knows no language."""

from __future__ import annotations

import random
import re

from corruptions.shape import SPECIAL, proven
from pairgen.strategy import Corruption, Decline, Material

SENTENCE_END = re.compile(r"(?<=[.!?。！？؟।])\s*|\n+")


def corrupt(material: Material, rng: random.Random, place: str | None) -> Corruption | Decline:
    """One to three sentences of the prompt in a row, before or after the move, in lines of their own."""
    if place == "inside":
        return Decline("no filler inside a move that is not English")
    parts = _sentences(material)
    if not parts:
        return Decline("no filler for a move that is not English")
    start = rng.randrange(len(parts))
    gap = " " if any(" " in part for part in parts) else ""
    filler = rng.choice((gap, "\n")).join(parts[start : start + rng.randint(1, 3)])
    where, joint = place or rng.choice(("before", "after")), rng.choice(("\n", "\n\n"))
    reply = material.move.reply
    return proven(reply, filler + joint + reply if where == "before" else reply + joint + filler, f"{where}/echo")


def _sentences(material: Material) -> list[str]:
    """What can be said again of the first and the last two messages: mostly letters, of a sentence's length."""
    asked = [m.content for m in material.move.prompt if m.role != "assistant"]
    parts = [p.strip() for text in asked[:1] + asked[1:][-2:] for p in SENTENCE_END.split(text)]
    parts = [p for p in parts if 8 <= len(p) <= 240 and 4 * sum(c.isalpha() for c in p) >= 3 * len(p.replace(" ", ""))]
    return [p for p in dict.fromkeys(parts) if not SPECIAL.search(p)]
