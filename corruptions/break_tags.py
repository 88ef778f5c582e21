"""Breaks of the tags of a move: dropped, renamed, translated, re-cased, doubled, or with another separator.

Every function takes the speaker of a move and gives the broken text and its variant, or None where nothing is there to
break. Knows the tags by the move's shape only.
"""

from __future__ import annotations

from collections.abc import Callable

from corruptions import bank
from corruptions.shape import Field, join
from corruptions.speaker import Speaker

Broken = tuple[str, str] | None
SEPARATORS = (" - ", " = ", " -> ", "; ", ", ", " ", ":: ", "：", " — ", " | ", "... ", " > ", "? ", ". ", ":- ")
KEY_SEPARATORS = ("=", " = ", " => ", "; ", " -> ", ", ", "::")
MARKS = (">> ", ">: ", "-> ", "» ", ">>> ", "=> ", "> - ", "> > ", "$ ", "\\> ")
LIST_JOINTS = ("; ", " / ", " | ", " & ", " - ", " + ", " ", " > ")
CELL_JOINTS = (" | ", ", ", "; ", " - ", "/", ",")
OTHER_NAMES = ("output", "response", "result", "my {}", "the {}", "{} 1", "final {}", "{} text", "player")


def _edited(s: Speaker, edit: Callable[[Field], Field]) -> str:
    """The move with the edit made to one of its tagged fields, or to all of them."""
    tagged = s.looks.tagged
    picked = tagged if s.rng.random() < 0.4 else (s.rng.choice(tagged),)
    return join((edit(f) if i in picked else f for i, f in enumerate(s.looks.fields)), s.looks.tail)


def _like(name: str, old: str) -> str:
    """A new name in the old tag's casing and quotes."""
    bare = old.strip('"')
    name = name.upper() if bare.isupper() else name.lower() if bare.islower() else name[:1].upper() + name[1:]
    return f'"{name.replace(" ", "_")}"' if old.startswith('"') else name


def drop_tag(s: Speaker) -> Broken:
    if not s.looks.tagged:
        return None
    return _edited(s, lambda f: f._replace(tag="", sep="")), ""


def rename_tag(s: Speaker) -> Broken:
    """Another name; or a tag where there was none (a bare reply like `DONE` among tagged moves)."""
    tags = [tag for tag in s.looks.tags if tag[0].isalpha()]
    if not s.looks.tagged:
        names = [*tags, *(("Answer", "Output", "Response") if s.english else ())]
        if not names:
            return None
        name = s.rng.choice(names)
        return f"{name}:{s.rng.choice((' ', chr(10)))}{s.reply.strip()}", "added"
    here = {s.looks.fields[i].tag for i in s.looks.tagged}
    others = [tag for tag in tags if tag not in here]
    if not (others or s.english):
        return None
    if others and (s.rng.random() < 0.4 or not s.english):
        other = s.rng.choice(others)
        other = f'"{other}"' if s.looks.kind == "json" else other
        return _edited(s, lambda f: f._replace(tag=other, sep=f.sep if ":" in f.sep else ": ")), "other_tag"
    return _edited(s, lambda f: f._replace(tag=_new_name(s, f))), ""


def _new_name(s: Speaker, field: Field) -> str:
    known: list[str] = bank.load("words.json")["synonyms"].get(field.name.lower(), [])
    if not field.name[:1].isalpha():
        return s.rng.choice(known or ("-",))
    name = s.rng.choice(known) if known and s.rng.random() < 0.7 else s.rng.choice(OTHER_NAMES).format(field.name)
    return _like(name, field.tag)


def translate_tag(s: Speaker) -> Broken:
    known = bank.load("words.json")["translations"]
    if not any(s.looks.fields[i].name.lower() in known for i in s.looks.tagged):
        return None

    def translated(field: Field) -> Field:
        names = known.get(field.name.lower())
        return field._replace(tag=_like(s.rng.choice(names), field.tag)) if names else field

    return join(map(translated, s.looks.fields), s.looks.tail), ""


def recase_tag(s: Speaker) -> Broken:
    if s.looks.kind == "bare" and s.looks.tags and s.reply.strip().isalpha():
        return _recased(s, s.reply.strip()), "word"
    return (_edited(s, lambda f: f._replace(tag=_recased(s, f.tag))), "") if s.looks.tagged else None


def _recased(s: Speaker, word: str) -> str:
    forms = dict.fromkeys((word.upper(), word.lower(), word.title(), word.swapcase(), word.capitalize()))
    return s.rng.choice([form for form in forms if form != word] or [word])


def double_tag(s: Speaker) -> Broken:
    if not s.looks.tagged:
        return None
    if s.looks.kind == "json":
        return _edited(s, lambda f: f._replace(value=f"{{{f.tag}{f.sep}{f.value}}}")), "nested"
    if s.rng.random() < 0.5:
        return _edited(s, lambda f: f._replace(tag=f"{f.tag}{f.sep}{f.tag}")), ""
    return _edited(s, lambda f: f._replace(tag=f"{f.tag}{f.sep.rstrip()}\n{f.tag}")), "lines"


def separator(s: Speaker) -> Broken:
    """Another sign between tag and value, between the items of a list, or between the cells of a grid."""
    if s.looks.kind == "lines" and (rows := _celled(s.reply)):
        joint = s.rng.choice(CELL_JOINTS)
        return "\n".join(joint.join(row) for row in rows), "cells"
    lists = [f.value for f in s.looks.fields if listed(f.value)]
    if lists and s.looks.kind != "json" and s.rng.random() < 0.5:
        value, joint = s.rng.choice(lists), s.rng.choice(LIST_JOINTS)
        return s.reply.replace(value, value.replace(", ", joint)), "list"
    if not s.looks.tagged:
        return None
    if s.looks.kind == "json":
        return _edited(s, lambda f: f._replace(sep=s.rng.choice(KEY_SEPARATORS))), "key"
    if s.looks.fields[s.looks.tagged[0]].tag == ">":
        return _edited(s, lambda f: f._replace(tag=s.rng.choice(MARKS), sep="") if f.tag == ">" else f), "mark"
    joint = s.rng.choice(SEPARATORS)
    return _edited(s, lambda f: f._replace(sep=joint)), ""


def listed(value: str) -> bool:
    """Whether a value is a list of short items."""
    return ", " in value and max(map(len, value.split(", "))) <= 24


def _celled(reply: str) -> list[list[str]]:
    """The rows of a grid of single signs, or nothing where the reply is no grid."""
    rows = [line.split() for line in reply.strip().split("\n")]
    return rows if all(len(row) > 1 and all(len(cell) <= 2 for cell in row) for row in rows) else []


BREAKS: dict[str, Callable[[Speaker], Broken]] = {
    "drop_tag": drop_tag, "rename_tag": rename_tag, "translate_tag": translate_tag,
    "recase_tag": recase_tag, "double_tag": double_tag, "separator": separator,
}  # fmt: skip
