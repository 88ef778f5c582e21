"""What a move looks like: its tags, fields, answer and act, learned from the accepted moves of its game and role.

Knows no game and no strategy. A move is cut without loss: `lead + tag + sep + value` of every field, then the tail.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from corruptions import bank
from pairgen.strategy import Corruption, Decline, Material

Kind = Literal["json", "tagged", "lines", "bare"]
WORD = r"[^\W\d_][\w'’-]*"
TAG = re.compile(rf"[ \t]*(?P<tag>{WORD}(?: {WORD}){{0,3}})(?P<sep>[ \t]*[:：](?!//)[ \t]*)")
MARK = re.compile(r"[ \t]*(?P<tag>>{1,3}|\$)(?P<sep>[ \t]*)(?=\S)")
KEY = re.compile(r'(?P<tag>"[^"\n]{1,40}")(?P<sep>\s*:\s*)')
SPECIAL = re.compile(
    r"<[|｜][^|｜\n]{0,40}[|｜]?>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk|mask)>"
    r"|\[(?:CLS|SEP|PAD|MASK|UNK)\]|</?think>",
    re.IGNORECASE,
)
RARE = 0.02  # a tag that opens a line in fewer of the peers than this share is a remark, not a habit


class Field(NamedTuple):
    """One tagged part of a move; an untagged part has an empty tag and separator."""

    lead: str
    tag: str
    sep: str
    value: str

    @property
    def name(self) -> str:
        """The tag without the quotes of a JSON key."""
        return self.tag.strip('"')


@dataclass(frozen=True, slots=True)
class Shape:
    """A move in its parts. `answer` is its first short value ("" if there is none), `tag` and `act` say of what kind.

    `tags` are all tags known of this game and role, also those that this move does not have.
    """

    kind: Kind
    fields: tuple[Field, ...]
    tail: str
    tags: tuple[str, ...]
    answer: str
    tag: str
    act: str

    @property
    def tagged(self) -> tuple[int, ...]:
        return tuple(i for i, field in enumerate(self.fields) if field.tag)


def read(material: Material) -> Shape:
    """The shape of the material's move, with the habits of its peers."""
    return look(material.move.reply, known_tags(material))


def look(reply: str, tags: tuple[str, ...]) -> Shape:
    """The shape of a reply where these tags are known."""
    fields, tail = _json_fields(reply)
    kind: Kind = "json"
    if not fields:
        fields, tail = _tagged_fields(reply, tags)
        kind = "tagged" if any(f.tag for f in fields) else "lines" if "\n" in reply.strip() else "bare"
    tag, answer = _answer(fields)
    return Shape(kind, fields, tail, tags, answer, tag, act_of(tag) if tag else "other")


def join(fields: Iterable[Field], tail: str) -> str:
    return "".join(f.lead + f.tag + f.sep + f.value for f in fields) + tail


def known_tags(material: Material) -> tuple[str, ...]:
    """The tags that are habits of the peers, and those of the move that its prompt spells out."""
    asked = "\n".join(m.content for m in material.move.prompt if m.role != "assistant")
    own = [tag for tag in _openings(material.move.reply) if tag + ":" in asked or (not tag.isalnum() and tag in asked)]
    return tuple(dict.fromkeys([*_habits(material.peers), *own]))


@functools.lru_cache(maxsize=256)
def _habits(peers: tuple[str, ...]) -> tuple[str, ...]:
    counts = Counter(tag for reply in peers for tag in dict.fromkeys(_openings(reply)))
    least = 1 if len(peers) < 5 else max(2, RARE * len(peers))
    return tuple(sorted(tag for tag, count in counts.items() if count >= least))


def _openings(reply: str) -> Iterator[str]:
    for line in reply.split("\n"):
        if match := TAG.match(line) or MARK.match(line):
            yield match["tag"]


def act_of(tag: str) -> str:
    """What a tag asks for: guess, clue, question, answer, describe, step, decide or other."""
    acts = bank.load("words.json")["acts"]
    return next((acts[word] for word in reversed(tag.strip('"').lower().split()) if word in acts), "other")


def _answer(fields: Iterable[Field]) -> tuple[str, str]:
    """Tag and text of the first value that is short enough to be named in a sentence."""
    first = ""
    for field in fields:
        text, tag = field.value.strip().strip('"'), field.name
        if field.tag.startswith('"') and (inner := TAG.match(text)):
            text = text[inner.end() :]
        text, first = text.rstrip(".!?。"), first or tag
        if len(text) <= 40 and len(text.split()) <= 5 and "\n" not in text and any(c.isalnum() for c in text):
            return tag, text
    return first, ""


def _tagged_fields(reply: str, tags: tuple[str, ...]) -> tuple[tuple[Field, ...], str]:
    spots, start = [], 0
    for line in reply.split("\n"):
        match = TAG.match(line) or MARK.match(line)
        if match and match["tag"] in tags:
            spots.append((start + match.start("tag"), start + match.end("tag"), start + match.end("sep")))
        start += len(line) + 1
    return _cut(reply, spots, len(reply), " \t\r\n")


def _json_fields(reply: str) -> tuple[tuple[Field, ...], str]:
    """The keys of the outermost object; none where the reply is no object. Need not be valid JSON."""
    text = reply.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return (), ""
    end, depth, at, spots = reply.rindex("}"), 0, 0, []
    while at < end:
        char = reply[at]
        depth += (char in "{[(") - (char in "}])")
        if char == '"':
            if depth == 1 and (match := KEY.match(reply, at)):
                spots.append((match.start("tag"), match.end("tag"), match.end("sep")))
                at = match.end("sep")
                continue
            close = reply.find('"', at + 1)
            at = close if close > 0 else end
        at += 1
    return _cut(reply, spots, end, " \t\r\n,", "{") if spots else ((), "")


def _cut(
    text: str, spots: list[tuple[int, int, int]], end: int, loose: str, opening: str = ""
) -> tuple[tuple[Field, ...], str]:
    """Fields and tail, given where each tag starts, ends, and where its value starts.

    Values end before `loose` characters; `opening` is what may stand before the first tag without being a field.
    """
    fields, done = [], 0
    first = spots[0][0] if spots else end
    if text[:first].strip() not in ("", opening):
        lead = len(text) - len(text.lstrip())
        done = len(text[:first].rstrip())
        fields.append(Field(text[:lead], "", "", text[lead:done]))
    stops = [tag for tag, _, _ in spots[1:]] + [end]
    for (tag, sep, value), stop in zip(spots, stops, strict=False):
        body = text[value:stop].rstrip(loose)
        fields.append(Field(text[done:tag], text[tag:sep], text[sep:value], body))
        done = value + len(body)
    return tuple(fields), text[done:]


def refusal(reply: str) -> Decline | None:
    """Why no strategy can work on this reply, if so."""
    if not reply.strip():
        return Decline("empty move")
    if SPECIAL.search(reply):
        return Decline("special token in the move")
    return None if _encodable(reply) else Decline("not valid Unicode")


def proven(reply: str, text: str, detail: str) -> Corruption | Decline:
    """The corruption, if it is one: another text than the reply even when white space is ignored."""
    if text.split() == reply.split():
        return Decline("nothing changed")
    if SPECIAL.search(text):
        return Decline("special token in the result")
    return Corruption(text, detail) if _encodable(text) else Decline("not valid Unicode")


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
