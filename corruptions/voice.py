"""How a move speaks: whether in English, and in which casing. Fillers in another voice would give themselves away.

Knows no strategy. A language is only told from English, by its script and by the most common words.
"""

from __future__ import annotations

import re
from typing import Literal

from corruptions import bank
from pairgen.strategy import Material

Casing = Literal["lower", "upper", "normal"]
SAMPLE = 4000  # characters of a text that are looked at
ENOUGH = 20  # words from which the lack of common English words means another language


def english(material: Material) -> bool:
    """Whether English words fit the move. The prompt speaks for a move that is too short to tell."""
    reply = material.move.reply[:SAMPLE]
    asked = "\n".join(m.content for m in material.move.prompt if m.role != "assistant")[:SAMPLE]
    if not (_latin(reply) and _latin(asked)):
        return False
    if _common(reply, "foreign") >= max(2, 1 + _common(reply, "en")):
        return False
    words = len(asked.split())
    return words < ENOUGH or _common(asked, "en") >= max(0.06 * words, _common(asked, "foreign"))


def _latin(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return 10 * sum(c < "\u0250" or "\u1e00" <= c < "\u1f00" for c in letters) >= 7 * len(letters)


def _common(text: str, language: str) -> int:
    known = bank.load("words.json")["common"][language]
    return sum(word in known for word in re.findall(r"[^\W\d_]+", text.lower()))


def casing(reply: str) -> Casing:
    """`lower` for a move without a capital, `upper` for one of several words without anything else."""
    if not any(c.isalpha() for c in reply) or (any(c.isupper() for c in reply) and any(c.islower() for c in reply)):
        return "normal"
    if reply == reply.lower():
        return "lower"
    return "upper" if len(re.findall(r"[^\W\d_]{2,}", reply)) >= 4 else "normal"


def recased(text: str, how: Casing) -> str:
    return text.lower() if how == "lower" else text.upper() if how == "upper" else text
