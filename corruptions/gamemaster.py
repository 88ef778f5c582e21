"""What a game master's messages look like, learned from a prompt, and one that was never sent.

Knows no game: forms are the later messages of the prompt, the turns between the example moves of its first message,
and its last line; what is varied in them are verdicts, marked letters, lists, and what was answered before.
"""

from __future__ import annotations

import functools
import random
import re

from corruptions.shape import MARK, SPECIAL, TAG, Shape, look
from pairgen.strategy import Material

RECENT_SHARE = 0.75  # how often only later messages are taken as forms, where there are some
LONGEST = 500  # characters of an invented message
MARKED = re.compile(r"\b(\w)(<\w+>)")
VERDICT = re.compile(r"\b(yes|no|true|false)\b", re.I)
LIST = re.compile(r"(?<=[:\w] )\w+(?:, \w+)+(?=[.\n]|$)")
SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*\s*")
FOR_EXAMPLE = re.compile(r"(such as|example|might be|could be|like so|like this)[:,]?\s*$", re.I)
OPENING = re.compile(r"^(let us (start|begin|play)|let's (start|begin|play)|ok|now)\b[^.!:?]*[.!:]\s*", re.I)
RULES = re.compile(r"\b(omit|format|important|example|instance|must|rules?|tag|provide|only)\b", re.I)


def message(material: Material, looks: Shape, rng: random.Random) -> str:
    """An invented message in one of the forms of the prompt; "" where the prompt shows none."""
    asked = [m.content for m in material.move.prompt if m.role == "user"]
    if not asked:
        return ""
    later = [text for text in asked[1:] if len(text) <= 4 * LONGEST]
    examples = _examples(asked[0], looks.tags) or _last_line(asked[0])
    forms = list(dict.fromkeys(later[-6:])) if later and rng.random() < RECENT_SHARE else [*later[-6:], *examples]
    if not forms:
        return ""
    form = rng.choice(forms)
    text = _answered(_recombined(form, forms, rng), material, looks)
    return _shortened(_varied(text, looks, rng)).strip()


@functools.lru_cache(maxsize=1024)
def _examples(first: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    """The messages that stand between example moves in a first message, and example lines of another's tag."""
    found: list[str] = []
    block: list[str] | None = None
    before = ""
    for line in first.split("\n"):
        match = TAG.match(line) or MARK.match(line)
        ours = bool(match and match["tag"] in tags) or line.lstrip().startswith('{"')
        gap = re.search(r"<[a-zA-Z ]+>|\.\.\.\}", line)
        if ours:
            if block and not gap and _is_message(text := "\n".join(block).strip(" \n.")):
                found.append(text + ("." if block[-1].endswith(".") else ""))
            block = None if gap else []
        elif block is not None:
            block.append("" if line.strip() == "..." else line)
        if match and not ours and FOR_EXAMPLE.search(before) and not (gap and not MARKED.search(line)):
            found.append(line.strip())
        before = line if line.strip() else before
    return tuple(dict.fromkeys(text for text in found if text))


def _is_message(text: str) -> bool:
    return 0 < len(text) <= 300 and not RULES.search(text)


def _last_line(first: str) -> tuple[str, ...]:
    """What a first message ends with, where it can be said again: its last line, or the tagged lines that end it."""
    lines = [line.strip() for line in first.rstrip().split("\n")]
    count = 1
    while count < len(lines) and TAG.match(lines[-count]) and TAG.match(lines[-count - 1]):
        count += 1
    last = OPENING.sub("", "\n".join(lines[-count:]))
    words = 2 * sum(c.isalpha() for c in last) >= len(last) and last.count(",") <= 6 and "[" not in last
    return (last,) if 8 <= len(last) <= LONGEST and words and not RULES.search(last) and last[-3:] != ": ." else ()


def _recombined(form: str, forms: list[str], rng: random.Random) -> str:
    """The form with some of its sentences taken from other messages where they start with the same two words."""
    others = [m[0].strip() for text in forms if text != form for m in SENTENCE.finditer(text)]
    said: list[str] = []
    parts = []
    for sentence in (m[0] for m in SENTENCE.finditer(form)):
        bare = sentence.strip()
        alike = [o for o in others if o.split()[:2] == bare.split()[:2] and len(o.split()) > 2 and o not in said]
        said.append(rng.choice(alike) if alike and rng.random() < 0.6 else bare)
        parts.append(said[-1] + sentence[len(sentence.rstrip()) :])
    return "".join(parts)


def _answered(text: str, material: Material, looks: Shape) -> str:
    """The text with what this move answers in the place of what earlier moves answered."""
    if looks.act not in ("guess", "clue") or len(looks.answer) < 3:
        return text
    said = [look(m.content, looks.tags).answer for m in material.move.prompt if m.role == "assistant"]
    for earlier in said[::-1]:
        if len(earlier) >= 3 and re.search(rf"\b{re.escape(earlier)}\b", text):
            return re.sub(rf"\b{re.escape(earlier)}\b", lambda _: looks.answer, text)
    return text


def _varied(text: str, looks: Shape, rng: random.Random) -> str:
    """Another verdict, other marks on the letters of this move's answer, another part of each short list."""
    if MARKED.search(text):
        marks = [m[2] for m in MARKED.finditer(text)]
        letters = looks.answer if looks.answer.isalpha() and len(looks.answer) == len(marks) else ""
        drawn = iter(letters or [m[1] for m in MARKED.finditer(text)])
        text = MARKED.sub(lambda m: f"{next(drawn)}{rng.choice(marks)}", text)
    if len(text.split()) <= 12:
        text = VERDICT.sub(lambda m: _verdict(m[0], rng), text)
    return LIST.sub(lambda m: _part_of(m[0], rng), text)


def _verdict(word: str, rng: random.Random) -> str:
    pair = ("yes", "no") if word.lower() in ("yes", "no") else ("true", "false")
    drawn = rng.choice(pair)
    return drawn.upper() if word.isupper() else drawn.capitalize() if word[0].isupper() else drawn


def _part_of(listed: str, rng: random.Random) -> str:
    items = listed.split(", ")
    return ", ".join(rng.sample(items, rng.randint(max(1, len(items) - 1), len(items))))


def partner_tag(material: Material) -> str:
    """The tag that the prompt says the other player's messages start with, or ""."""
    first = material.move.prompt[0].content if material.move.prompt else ""
    found = re.search(r"\bstarts? with ([A-Z]{2,})\b(?!:)", first)
    return found[1] if found else ""


def lone_words(material: Material) -> list[str]:
    """Words that stand alone in a line of the prompt, such as the words a game is about."""
    asked = "\n".join(m.content for m in material.move.prompt if m.role == "user")
    return re.findall(r"^(?:[-*] )?([^\W\d_]{3,14})$", asked, re.M)


def _shortened(text: str) -> str:
    """At most LONGEST characters, ending with a sentence or a line; without what looks like a chat template."""
    text = SPECIAL.sub("", text)
    while len(text) > LONGEST and len(parts := SENTENCE.findall(text)) > 1:
        text = "".join(parts[:-1])
    return text[:LONGEST]
