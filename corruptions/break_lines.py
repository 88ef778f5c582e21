"""Breaks of what a move consists of: a preamble, a second move, an extra key; lines merged, swapped or lost; odd marks.

Every function takes the speaker of a move and gives the broken text and its variant, or None. Knows no game.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from corruptions.break_tags import Broken
from corruptions.shape import join, look
from corruptions.speaker import Speaker

MERGES = (", ", "; ", " | ", " / ", " - ", " // ", ". ", " & ", " + ", " -> ")
MOVE_JOINTS = ("\n", "\n", "\n\n", "\n\n", " ", ", ", "; ", " / ", " or ", " and then ", "\nor\n", " -> ")
VALUE_JOINTS = (", ", " or ", " and ", "/", " / ", ", then ", " (or {})", "; ", " & ", ", maybe ")
TRAILING = (".", "!", "?", ",", ";", "...", "?!", "!!", ")", "*", " :)")
INNER = ("-", ".", "'", "_", ",")


def preamble(s: Speaker) -> Broken:
    """Words before the move, mostly on its own line."""
    if not s.english:
        return None
    words = s.say("preamble")
    tight = ("\n", "\n\n") if s.looks.kind in ("json", "lines") else (" ", " ", " ", "\n", "\n\n")
    return words + s.rng.choice(tight) + s.reply.strip(), ""


def two_moves(s: Speaker) -> Broken:
    """A second move of the same kind behind the first, or a second value behind the first one's."""
    here = s.reply.strip()
    for peer in s.rng.sample(s.peers, min(12, len(s.peers))):
        other = look(peer, s.looks.tags)
        if peer.strip() == here or len(peer) > 600 or other.kind != s.looks.kind:
            continue
        value = other.answer if other.tag == s.looks.tag and s.looks.kind == "tagged" else ""
        if value and s.looks.answer and value != s.looks.answer and s.rng.random() < 0.5:
            return _second_value(s, value), "value"
        joints = MOVE_JOINTS if s.english and here[-1:].isalnum() else MOVE_JOINTS[:5]
        return here + s.rng.choice(joints if "\n" not in here + peer else joints[:4]) + peer.strip(), "move"
    return None


def _second_value(s: Speaker, value: str) -> str:
    joint = s.rng.choice(VALUE_JOINTS if s.english else VALUE_JOINTS[:1])
    added = joint.format(value) if "{}" in joint else joint + value
    fields, done = [], False
    for field in s.looks.fields:
        if not done and field.name == s.looks.tag and s.looks.answer in field.value:
            field, done = field._replace(value=field.value.rstrip(".") + added), True
        fields.append(field)
    return join(fields, s.looks.tail)


def merge_lines(s: Speaker) -> Broken:
    lines = [line.strip() for line in s.reply.strip().split("\n") if line.strip()]
    joints = MERGES if lines[0][-1:].isalnum() else MERGES[2:6]
    return (s.rng.choice(joints).join(lines), "") if len(lines) > 1 else None


def swap_lines(s: Speaker) -> Broken:
    """Two tagged fields in each other's place."""
    fields = list(s.looks.fields)
    if len(s.looks.tagged) < 2 or s.looks.kind == "json":
        return None
    first = s.rng.randrange(len(s.looks.tagged) - 1)
    i, j = s.looks.tagged[first], s.looks.tagged[first + 1]
    fields[i], fields[j] = fields[j]._replace(lead=fields[i].lead), fields[i]._replace(lead=fields[j].lead)
    return join(fields, s.looks.tail), ""


def lose_line(s: Speaker) -> Broken:
    """One field or line less; of a JSON move the closing brace or the first quote."""
    fields, text = s.looks.fields, s.reply.strip()
    if s.looks.kind == "json":
        return (text[:-1], "brace") if s.rng.random() < 0.6 else (text.replace('"', "", 1), "quote")
    if len(s.looks.tagged) > 1:
        gone = s.rng.choice(s.looks.tagged)
        return join((f for i, f in enumerate(fields) if i != gone), s.looks.tail).strip(), "field"
    lines = text.split("\n")
    if len(lines) < 3:
        return None
    del lines[s.rng.choice((0, -1, -1))]
    return "\n".join(lines), "line"


def punctuation(s: Speaker) -> Broken:
    """A mark at the end of a value or within one of its words, or the word spelled out."""
    words = [m for m in re.finditer(r"[^\W_]{4,}", s.reply) if m[0].lower() in s.looks.answer.lower()]
    draw = s.rng.random()
    if not words or draw < 0.35:
        return s.reply.rstrip().rstrip(".!?") + s.rng.choice(TRAILING), "end"
    word = s.rng.choice(words)
    if draw < 0.6 and len(word[0]) <= 10:
        spelled = s.rng.choice((" ", "-", "-", ".", ", ")).join(word[0])
        return s.reply[: word.start()] + spelled + s.reply[word.end() :], "spelled"
    at = word.start() + s.rng.randint(1, len(word[0]) - 1)
    return s.reply[:at] + s.rng.choice(INNER) + s.reply[at:], "inside"


def extra_key(s: Speaker) -> Broken:
    """A field that the game did not ask for, in the style of those that it did."""
    if not s.english:
        return None
    key, _, value = s.say("extra", opening=False).partition(": ")
    if s.looks.kind == "json":
        plain = value.replace('"', "'")
        return s.reply.rstrip()[:-1].rstrip() + f', "{key.replace(" ", "_")}": "{plain}"}}', key.lower().replace(
            " ", "_"
        )
    tags = [s.looks.fields[i].tag for i in s.looks.tagged if s.looks.fields[i].name[:1].isalpha()]
    tag = key.upper() if tags and tags[0].isupper() else key.lower() if tags and tags[0].islower() else key.capitalize()
    if not tags and s.casing == "lower":
        tag = key
    value = value if s.casing == "lower" or s.rng.random() < 0.3 else value[:1].upper() + value[1:]
    detail = key.lower().replace(" ", "_")
    line = f"{tag}: {value}" + s.rng.choice(("", ".") if " " in value else ("",))
    parts = [line, s.reply.strip()] if s.rng.random() < 0.3 else [s.reply.strip(), line]
    return s.rng.choice(("\n", "\n", "\n\n")).join(parts), detail


BREAKS: dict[str, Callable[[Speaker], Broken]] = {
    "preamble": preamble, "two_moves": two_moves, "merge_lines": merge_lines, "swap_lines": swap_lines,
    "lose_line": lose_line, "punctuation": punctuation, "extra_key": extra_key,
}  # fmt: skip
