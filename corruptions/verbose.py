"""verbose: the move, and filler that nobody asked for. Composed from a phrase bank, the move's words and its prompt.

The move stays as it is (before, after) or in two halves (inside). Where English would stand out, sentences of the
prompt itself are repeated instead. Knows no game.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from corruptions import bank, echo, options
from corruptions.shape import Shape, proven, read, refusal
from corruptions.speaker import Speaker
from pairgen.errors import UsageProblem
from pairgen.strategy import Corruption, Decline, Material, Strategy

STYLES = ("composed", "reference")
SIZES = ((4, 14), (15, 38), (39, 88))  # words; a filler ends with the sentence that reaches its size
SIZE_WEIGHTS = (45, 37, 18)
LEAST, MOST = 4, 120
PLACE_WEIGHTS = {"after": 55, "before": 28, "inside": 17}
KINDS = {"restate": 4, "justify": 9, "rules": 5, "praise": 3, "hedge": 5, "meta": 3, "polite": 4, "offer": 6}
OFTEN = {"justify": 2, "restate": 2, "think": 8}  # times that a kind may come up in one filler
CLOSED = tuple(".!?…。！？\"”')]}`*")
OPEN_JOINTS = ("\n", "\n", "\n\n", "\n\n", ". ", ". ", " - ", " – ", " — ", "... ", " | ", "\n---\n")
JOINT = re.compile(r"(?<=\w)(?=, \S)|(?<=\w\w)(?= (?:that|which|and|with|in|for|or|because|from|to|on|but|as) )")
BULLETS = (("1. ", "2. ", "3. ", "4. "), ("1) ", "2) ", "3) ", "4) "), ("- ",) * 4, ("* ",) * 4, ("• ",) * 4)


class Filler(NamedTuple):
    """The whole reply, and what kind of filler it has."""

    text: str
    kind: str


def read_options(chosen: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Style and place."""
    style = options.one_of("verbose", chosen, "style", STYLES)
    place = options.one_of("verbose", chosen, "place", PLACES)
    if style == "reference" and place not in (None, "after"):
        raise UsageProblem(f"verbose:style=reference always appends: leave out place={place}")
    return style, place


def corrupt(material: Material, rng: random.Random, chosen: Mapping[str, str]) -> Corruption | Decline:
    style, place = read_options(chosen)
    reply = material.move.reply
    if declined := refusal(reply):
        return declined
    if style == "reference":
        return proven(reply, reply + rng.choice(bank.load("verbose.json")["reference"]), "reference")
    speaker = Speaker(material, read(material), rng, "verbose.json")
    if not speaker.english:
        return echo.corrupt(material, rng, place)
    for where in options.in_turn(place, PLACE_WEIGHTS, rng):
        if made := PLACES[where](speaker):
            return proven(reply, made.text, f"{where}/{made.kind}")
    return Decline("no place inside the move")


def _after(s: Speaker) -> Filler:
    block = s.looks.kind in ("json", "lines")
    closed = block or s.reply.rstrip().endswith(CLOSED)
    least = _size(s.rng)
    if not closed and least < SIZES[1][0] and s.rng.random() < 0.5:
        return Filler(_glued(s.reply, _worded(s, "clause", opening=False)), "clause")
    if least >= SIZES[1][0] and s.rng.random() < 0.1:
        return Filler(_glued(s.reply, s.rng.choice(("\n", "\n\n")) + _listed(s, "_after")), "list")
    filler, kind = _chain(s, KINDS, least)
    if not block and s.rng.random() < 0.2:
        return Filler(_glued(s.reply, s.rng.choice((" ", " ", "\n", "\n\n")) + _bracketed(s.rng, filler)), kind)
    if s.rng.random() < 0.16:
        filler, block = _labelled(s, filler), block or not closed
    joints = ("\n", "\n\n", "\n\n") if block else (" ", " ", "\n", "\n\n") if closed else OPEN_JOINTS
    return Filler(_glued(s.reply, s.rng.choice(joints) + filler), kind)


def _before(s: Speaker) -> Filler:
    block = s.looks.kind in ("json", "lines")
    least = _size(s.rng)
    if least < SIZES[1][0]:
        filler, kind = _worded(s, "opener"), "opener"
    elif s.rng.random() < 0.12:
        filler, kind = _listed(s, ""), "list"
    else:
        filler, kind = _chain(s, {"think": 1}, least)
        if s.rng.random() < 0.5 and _words(filler) < MOST - 25:
            filler += s.rng.choice((" ", "\n", "\n\n")) + s.say("opener")
    joints = ("\n", "\n\n") if block or kind == "list" else (" ", "\n", "\n\n", "\n\n")
    return Filler(filler + s.rng.choice(joints) + s.reply, kind)


def _inside(s: Speaker) -> Filler | None:
    """Filler at a spot between two parts of the move; None where there is no such spot."""
    spots = _spots(s.looks)
    if not spots:
        return None
    rule = s.rng.choice(list(spots))
    at = s.rng.choice(spots[rule])
    head, tail = s.reply[:at], s.reply[at:]
    filler = _worded(s, rule, opening=rule != "aside")
    if rule == "between":
        head, filler = head + "\n", filler + ("" if tail.startswith("\n") else "\n")
        return Filler(head + filler + tail, rule)
    left = "" if head.endswith((" ", "\n", "\t")) else " "
    return Filler(head + left + filler + ("" if tail.startswith((" ", ",", "\n")) else " ") + tail, rule)


PLACES: dict[str, Callable[[Speaker], Filler | None]] = {"before": _before, "after": _after, "inside": _inside}


def _spots(looks: Shape) -> dict[str, list[int]]:
    """Where filler fits inside: between the lines, after a tag, and at the joints of a long value."""
    spots: dict[str, list[int]] = {"between": [], "inline": [], "aside": []}
    if looks.kind == "json":
        return {}
    at = 0
    for number, field in enumerate(looks.fields):
        if number and "\n" in field.lead:
            spots["between"].append(at)
        at += len(field.lead) + len(field.tag) + len(field.sep)
        if field.tag and field.tag[0].isalpha() and field.value:
            spots["inline"].append(at)
        if looks.kind == "lines":
            spots["between"] += [at + m.start() for m in re.finditer(r"\n(?=\S)", field.value)]
        else:
            spots["aside"] += [at + m.start() for m in JOINT.finditer(field.value)][:40]
        at += len(field.value)
    return {rule: places for rule, places in spots.items() if places}


def _chain(s: Speaker, kinds: Mapping[str, int], least: int) -> tuple[str, str]:
    """Sentences until the size is reached, in an order that a talker would have; and the kind, or `mixed`."""
    said: list[tuple[str, str]] = []
    weights = {f"{kind} {n}": weight for kind, weight in kinds.items() for n in range(OFTEN.get(kind, 1))}
    for turn in options.in_turn(None, weights, s.rng):
        kind = turn.split()[0]
        sentence = _worded(s, kind)
        if _words(*(x for _, x in said), sentence) <= MOST:
            said.append((kind, sentence))
        if _words(*(x for _, x in said)) >= least:
            break
    said.sort(key=lambda pair: list(kinds).index(pair[0]))
    gap = s.rng.choice((" ",) * 9 + ("\n",)) if len(said) < 4 else s.rng.choice((" ", " ", " ", " ", "\n", "\n\n"))
    return gap.join(x for _, x in said), said[0][0] if len({k for k, _ in said}) == 1 else "mixed"


def _listed(s: Speaker, suffix: str) -> str:
    bullets = s.rng.choice(BULLETS)
    items = [s.say(f"list_item{suffix}") for _ in range(s.rng.randint(2, 4))]
    lines = [bullet + item for bullet, item in zip(bullets, items, strict=False)]
    return "\n".join([s.say(f"list_lead{suffix}") + ":", *lines])


def _labelled(s: Speaker, filler: str) -> str:
    form = s.rng.choice(("{}: ", "{}: ", "**{}:** ", "*{}:* ", "{} - ", "{}:\n", "# {}\n", "[{}] ", "**{}**\n"))
    return form.format(s.say("label")) + filler


def _bracketed(rng: random.Random, filler: str) -> str:
    left, right = rng.choice(("()", "()", "()", "[]", "**", "__") if "\n" not in filler else ("()", "[]"))
    return left + filler + right


def _worded(s: Speaker, rule: str, *, opening: bool = True) -> str:
    """A line of the rule that has enough words."""
    for _ in range(20):
        line = s.say(rule, opening=opening)
        if LEAST <= _words(line) <= MOST // 2:
            break
    return line


def _glued(reply: str, filler: str) -> str:
    """The filler after the reply, without doubling white space that the reply ends with."""
    return reply + (filler.lstrip() if reply[-1].isspace() else filler)


def _words(*texts: str) -> int:
    return sum(bool(re.search(r"\w", word)) for text in texts for word in text.split())


def _size(rng: random.Random) -> int:
    return rng.randint(*rng.choices(SIZES, SIZE_WEIGHTS)[0])


STRATEGY = Strategy(
    name="verbose",
    summary="the move with filler before, after or inside it: reasons, rules, hedges, courtesies, offers",
    corrupt=corrupt,
    options={
        "style": "composed (default), or reference: one of five fixed sentences appended, as in the published recipe",
        "place": "before, after or inside (default: all of them)",
    },
    check=read_options,
)
