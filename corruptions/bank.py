"""Phrase banks: package data beside this file, read once, and how their lines are filled. Knows no strategy.

A bank maps a rule's name to its lines. `{name}` in a line is another rule, or a slot that the caller fills; the rule
`name.act` holds lines that fit only moves of that act, and is preferred where it exists. Lines are written in lower
case; a slot in upper case stands for a whole sentence.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import random
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

SLOT = re.compile(r"\{(\w+)\}")
START = re.compile(r"(^|(?:[.!?]|[A-Z]\})[\"')]?\s+|\n)([\"'(\[*]?)([a-z])")
ACT_SHARE = 0.7  # how often a line made for the act is taken before a line for all acts
REMARKABLE = 20  # characters from which a line is noticed when it is said twice


@functools.cache
def load(*names: str) -> Mapping[str, Any]:
    """The banks in the package data files of these names, as one."""
    folder, rules = importlib.resources.files("corruptions"), {}
    for name in names:
        rules.update(json.loads(folder.joinpath(name).read_text(encoding="utf-8")))
    return rules


class Teller:
    """Draws lines from a bank for one move, and says no remarkable line twice."""

    def __init__(self, names: Sequence[str], act: str, slots: Collection[str], rng: random.Random):
        self.bank, self.act, self.slots, self.rng = load(*names), act, set(slots), rng
        self.said: set[str] = set()

    def tell(self, rule: str) -> str:
        """A line of the rule with all its rules filled in; the caller's slots stay as they are, in braces."""
        lines = self._fitting(f"{rule}.{self.act}")
        if not lines or self.rng.random() >= ACT_SHARE:
            lines = self._fitting(rule)
        line = self.rng.choice(lines)
        if len(line) >= REMARKABLE:
            self.said.add(line)
        return SLOT.sub(lambda m: m[0] if m[1] in self.slots else self.tell(m[1]), line)

    def _fitting(self, rule: str) -> list[str]:
        """The rule's lines whose slots are all there, without what was said, as long as something is left."""
        lines = [x for x in self.bank.get(rule, ()) if all(s in self.slots or s in self.bank for s in SLOT.findall(x))]
        return [x for x in lines if x not in self.said] or lines


def sentence_case(text: str, *, opening: bool = True) -> str:
    """The text with each sentence's first letter in upper case (the first one's only if it is `opening`)."""
    return START.sub(lambda m: m[0] if m.start() == 0 and not opening else m[1] + m[2] + m[3].upper(), text)


def filled(text: str, slots: Mapping[str, str]) -> str:
    return SLOT.sub(lambda m: slots.get(m[1], m[0]), text)
