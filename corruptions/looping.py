"""looping: the move falls into repeating itself, as a degenerate model does until its token limit. Knows no game.

The text starts with the move, or with the part of it that was said before the loop set in. Works in any script.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from corruptions import options
from corruptions.shape import Shape, look, proven, read, refusal
from corruptions.voice import english
from pairgen.strategy import Corruption, Decline, Material, Strategy

MOST_ADDED = 4000  # characters
LIMITS = (600, 2400)  # characters after which a token limit may end a loop
MOST_REPEATS = 200
USUAL_REPEATS = 40
PERIODS = "([{)]}.,;:!?。，、；！？\n"
SEGMENT = re.compile(r"[^,;.!?。，、；！？)\]}\n]+[,;.!?。，、；！？)\]}\n]*\s*")
STOPS = " .!?…。！？"


class Loop(NamedTuple):
    """What was said before the loop, the units that take turns in it, and what stands before each of them."""

    head: str
    units: tuple[str, ...]
    joint: str


def read_options(chosen: Mapping[str, str]) -> tuple[int, str | None]:
    """The most repeats, and the kind of loop."""
    most = options.whole_number("looping", chosen, "max_repeats", 2, MOST_REPEATS, USUAL_REPEATS)
    return most, options.one_of("looping", chosen, "kind", LOOPS)


def corrupt(material: Material, rng: random.Random, chosen: Mapping[str, str]) -> Corruption | Decline:
    most, kind = read_options(chosen)
    reply = material.move.reply
    if declined := refusal(reply):
        return declined
    looks = read(material)
    for name in options.in_turn(kind, WEIGHTS, rng):
        loop = LOOPS[name](material, looks, rng)
        if loop and any(unit.strip() for unit in loop.units):
            text, was_cut = _unrolled(loop, most, rng, endless=name in ("inner", "character"))
            made = proven(reply, text, f"{name}/cut" if was_cut else name)
            if isinstance(made, Corruption):
                return made
    return Decline(f"nothing to repeat as {kind}" if kind else "nothing to repeat")


def _unrolled(loop: Loop, most: int, rng: random.Random, *, endless: bool) -> tuple[str, bool]:
    """The loop written out, and whether it was cut off in mid-word."""
    few, some = min(4, most), min(12, most)
    low, high, cut_share = rng.choices(((2, few, 0.15), (few, some, 0.5), (some, most, 0.9)), (35, 35, 30))[0]
    turns = rng.randint(low, high) * len(loop.units)
    added = "".join(loop.joint + loop.units[turn % len(loop.units)] for turn in range(turns))
    limit = min(MOST_ADDED, rng.randint(*LIMITS))
    if len(added) <= limit and not endless and rng.random() >= cut_share:
        return loop.head + added, False
    end = _in_a_word(added[:limit], len(loop.joint + loop.units[0]), rng)
    return loop.head + added[:end], end < len(added)


def _in_a_word(added: str, once: int, rng: random.Random) -> int:
    """A place within the last repetition that lies inside a word, or the end where there is none."""
    least = min(len(added), max(once + 1, len(added) - max(once, 12)))
    places = [i for i in range(least, len(added)) if added[i - 1].isalnum() and added[i].isalnum()]
    return rng.choice(places) if places else len(added)


def _whole(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    head = material.move.reply.rstrip()
    joints = ("\n", "\n\n", "\n") if "\n" in head or rng.random() < 0.7 else (" ", " ", "")
    return Loop(head, (head.lstrip(),), rng.choice(joints))


def _line(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    head = material.move.reply.rstrip()
    lines = [line for line in head.split("\n") if line.strip()]
    if len(lines) < 2:
        return None
    count = rng.randint(1, max(1, min(3, len(lines) - 1)))
    return Loop(head, ("\n".join(lines[-count:]),), rng.choice(("\n", "\n", "\n\n")))


def _phrase(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    """The last clause or sentence of the last value, with its stop or from before it."""
    value = looks.fields[-1].value.rstrip().split("\n")[-1]
    unit = "".join(m[0] for m in list(SEGMENT.finditer(value))[-rng.randint(1, 2) :]).strip() or value.strip()
    joints = (", ", ", ", " ") if "," in value else (", ", " ", " ", ". ", " and " if english(material) else " ")
    return _stopped(material.move.reply.rstrip(), unit, rng, joints)


def _ngram(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    """The last few words, or characters where words are not spaced."""
    value = looks.fields[-1].value.rstrip()
    words = value.split(" ")
    if len(words) == 1 and len(value) > 6 and not value.isascii():
        return Loop(material.move.reply.rstrip(), (value[-rng.randint(2, 6) :],), "")
    unit = " ".join(words[-rng.randint(1, max(1, min(5, len(words) - 1))) :])
    return _stopped(material.move.reply.rstrip(), unit, rng, (" ",))


def _stopped(head: str, unit: str, rng: random.Random, joints: tuple[str, ...]) -> Loop | None:
    """The loop after the unit's stop, or from before the stop as if it were never reached."""
    bare = unit.rstrip(STOPS)
    if not bare:
        return None
    if bare == unit:
        return Loop(head, (unit,), rng.choice(joints))
    if rng.random() < 0.5:
        return Loop(head, (unit,), rng.choice((" ", " ", "\n")))
    return Loop(head[: len(head) - len(unit) + len(bare)], (bare,), rng.choice(joints))


def _alternate(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    """Two phrases in turn: the last two of the move, or its last line and the like line of another move."""
    head = material.move.reply.rstrip()
    lines = [line for line in head.split("\n") if line.strip()]
    segments = [m[0].strip() for m in SEGMENT.finditer(lines[-1])]
    found: list[Loop] = []
    if len(lines) > 2 and lines[-1] != lines[-2]:
        found.append(Loop(head, (lines[-2], lines[-1]), "\n"))
    if len(segments) > 1 and segments[-1] != segments[-2] and looks.kind != "json":
        found.append(Loop(head, (segments[-2], segments[-1]), " "))
    for peer in rng.sample(material.peers, min(8, len(material.peers))):
        other = look(peer, looks.tags)
        if other.tag == looks.tag and len(peer) < 400 and peer.strip() != head.strip():
            found.append(Loop(head, (peer.strip(), head.lstrip()), rng.choice(("\n", "\n", "\n\n", " "))))
            if looks.answer and other.answer and head.endswith(looks.answer) and other.answer != looks.answer:
                found.append(Loop(head, (other.answer, looks.answer), rng.choice((" ", ", ", "/"))))
            break
    return rng.choice(found) if found else None


def _inner(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    """A loop that sets in before the move is through, so that its end is never said."""
    reply = material.move.reply.rstrip()
    ends = [m.end() for m in SEGMENT.finditer(reply)]
    if len(ends) < 6:
        ends = [m.end() for m in re.finditer(r"\S+\s+", reply)]
    if len(ends) < 6:
        return None
    last = rng.randrange(max(3, len(ends) // 3), len(ends) - 1)
    first = last - rng.randint(1, min(3, last))
    if ends[last] - ends[first] > MOST_ADDED // 4:
        return None
    return Loop(reply[: ends[last]], (reply[ends[first] : ends[last]],), "")


def _character(material: Material, looks: Shape, rng: random.Random) -> Loop | None:
    """The last letter, digit or stop, stuck."""
    head = material.move.reply.rstrip()
    return Loop(head, (head[-1] * rng.choice((4, 8, 8, 16)),), "")


LOOPS: dict[str, Callable[[Material, Shape, random.Random], Loop | None]] = {
    "move": _whole, "line": _line, "phrase": _phrase, "ngram": _ngram,
    "alternate": _alternate, "inner": _inner, "character": _character,
}  # fmt: skip
WEIGHTS = {"move": 18, "line": 14, "phrase": 22, "ngram": 20, "alternate": 16, "inner": 12, "character": 2}

STRATEGY = Strategy(
    name="looping",
    summary="the move repeats itself: a phrase, a line, all of it, or two phrases in turn, often cut off in mid-word",
    corrupt=corrupt,
    options={
        "max_repeats": f"how often at most, from 2 to {MOST_REPEATS} (default {USUAL_REPEATS})",
        "kind": f"{', '.join(LOOPS)} (default: all of them)",
    },
    check=read_options,
)
