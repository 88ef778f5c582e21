"""format_break: the move's content is kept, its form is broken. Which tags a move has is learned from its peers.

Content is kept: every word and number of the move's values is still there, as often as before. Two breaks are freer:
`punctuation` may cut a word apart but keeps its letters in their order, `lose_line` keeps all fields or lines but one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping

from corruptions import break_lines, break_tags, break_wraps, options
from corruptions.break_tags import Broken
from corruptions.shape import proven, read, refusal
from corruptions.speaker import Speaker
from pairgen.strategy import Corruption, Decline, Material, Strategy

BREAKS: dict[str, Callable[[Speaker], Broken]] = {**break_tags.BREAKS, **break_wraps.BREAKS, **break_lines.BREAKS}
WEIGHTS = {
    "drop_tag": 14, "rename_tag": 11, "translate_tag": 3, "recase_tag": 5, "double_tag": 5, "separator": 8,
    "quote": 6, "brackets": 5, "latex": 3, "markdown": 8, "code_fence": 4, "json": 5,
    "preamble": 9, "two_moves": 9, "merge_lines": 7, "swap_lines": 6, "lose_line": 5, "punctuation": 5, "extra_key": 8,
}  # fmt: skip


def read_options(chosen: Mapping[str, str]) -> str | None:
    """The kind of break."""
    return options.one_of("format_break", chosen, "kind", BREAKS)


def corrupt(material: Material, rng: random.Random, chosen: Mapping[str, str]) -> Corruption | Decline:
    kind = read_options(chosen)
    reply = material.move.reply
    if declined := refusal(reply):
        return declined
    speaker = Speaker(material, read(material), rng, "verbose.json", "format_break.json")
    for name in options.in_turn(kind, WEIGHTS, rng):
        broken = BREAKS[name](speaker)
        if broken and _kept(speaker, name, broken[0]):
            made = proven(reply, broken[0], f"{name}/{broken[1]}" if broken[1] else name)
            if isinstance(made, Corruption):
                return made
    return Decline(f"{kind} does not fit this move" if kind else "no break fits this move")


def _kept(speaker: Speaker, kind: str, text: str) -> bool:
    """Whether the content is kept, as this module understands it."""
    values = [field.value for field in speaker.looks.fields]
    if kind == "punctuation":
        return _letters("".join(values)) in _letters(text)
    if kind == "lose_line":
        return bool(text.strip())
    return not Counter(_words("\n".join(values))) - Counter(_words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


STRATEGY = Strategy(
    name="format_break",
    summary="the move's content in a broken form: tags, wrapping, lines, separators, extra keys, a second move",
    corrupt=corrupt,
    requires_violation=True,
    options={"kind": f"{', '.join(BREAKS)} (default: all of them)"},
    check=read_options,
)
