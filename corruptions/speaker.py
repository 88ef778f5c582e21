"""Speaks about one move in English: names it, quotes its prompt, and says lines of a phrase bank in the move's casing.

Knows no strategy. Nothing that it says is made up about the game: facts are the prompt's own sentences.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Mapping

from corruptions import bank, shape, voice
from pairgen.strategy import Material

SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+|\n+")
PLAIN = re.compile(r"[A-Z][A-Za-z0-9 ,;'’()-]{12,160}[.!]")
RULE = re.compile(r"\b(must|only|always|never|not|cannot|format|rules?|starts?|remember|omit|exactly|short)\b", re.I)
ORDER = re.compile(
    r"(Now|Provide|Let|Give|Write|Use|Ask|Describe|Generate|Put|Here|Do|Then|If|To|For|Please|Remember)\b"
)
FIRST_PERSON = (("You are ", "I am "), ("You have ", "I have "), ("Your ", "My "), ("You can", "I can"))
QUOTES = ('"{}"', '"{}"', "“{}”", "'{}'", "**{}**", "{}")
LONG_WORD = re.compile(r"\b[a-z]{5,14}\b")
ONCE = (("STATE", "QUOTE"), ("RULE",))  # sentences of the prompt that are not said twice
NAMED = ("guess", "clue", "answer", "step", "decide")  # acts whose answer can be named in a sentence
TRIES = 12  # peers that are looked at for an alternative


class Speaker:
    """What can be said about the move; all chance comes from `rng`."""

    def __init__(self, material: Material, looks: shape.Shape, rng: random.Random, *banks: str):
        self.rng, self.looks, self.reply, self.peers = rng, looks, material.move.reply, material.peers
        self.english = voice.english(material)
        self.casing = voice.casing(self.reply)
        self.slots = _slots(material, looks, rng)
        self.teller = bank.Teller(banks, looks.act, self.slots, rng)

    def add_slots(self, slots: Mapping[str, str]) -> None:
        self.slots |= slots
        self.teller.slots |= set(slots)

    def say(self, rule: str, *, opening: bool = True) -> str:
        """A line of the rule; `opening` tells whether it starts a sentence."""
        text = self.teller.tell(rule)
        self.teller.slots -= {slot for group in ONCE if any(f"{{{s}}}" in text for s in group) for slot in group}
        text = bank.filled(bank.sentence_case(text, opening=opening), self.slots)
        return voice.recased(text, self.casing)


def _slots(material: Material, looks: shape.Shape, rng: random.Random) -> dict[str, str]:
    """The slots that can be filled for this move; one that cannot is left out."""
    asked = [m.content for m in material.move.prompt if m.role != "assistant"]
    quote = rng.choice(QUOTES)
    slots = {"noun": rng.choice(bank.load("words.json")["nouns"][looks.act])}
    if looks.answer and looks.act in NAMED and '"' not in looks.answer:
        quote = quote if looks.answer.isalnum() else quote.replace("{}", '"{}"') if quote == "{}" else quote
        slots["answer"] = quote.format(looks.answer)
        if other := _alternative(material, looks, rng):
            slots["alt"] = quote.format(other)
    if material.move.role.isascii() and material.move.role.strip():
        slots["role"] = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", material.move.role).lower()
    if asked and (rules := [s for s in plain_sentences(asked[0]) if RULE.search(s)]):
        slots["RULE"] = rng.choice(rules)
    if asked and (states := [s for s in plain_sentences(asked[-1])[-4:] if not (RULE.search(s) or ORDER.match(s))]):
        slots["QUOTE"] = rng.choice(states)
        if not re.search(r"\byour?\b", mine := _as_mine(slots["QUOTE"]), re.I):
            slots["STATE"] = mine
    if words := [w for f in looks.fields if len(f.value.split()) >= 4 for w in LONG_WORD.findall(f.value)]:
        slots["word"] = quote.format(rng.choice(words))
    return slots


def _alternative(material: Material, looks: shape.Shape, rng: random.Random) -> str:
    """What another move of the same act answered, where this prompt mentions it too."""
    asked = " ".join(m.content for m in material.move.prompt).lower()
    for peer in rng.sample(material.peers, min(TRIES, len(material.peers))):
        other = shape.look(peer, looks.tags)
        word = other.answer.lower()
        if other.tag != looks.tag or word in ("", looks.answer.lower()):
            continue
        if re.search(rf"\b{re.escape(word)}\b", asked):
            return other.answer
    return ""


@functools.lru_cache(maxsize=1024)
def plain_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a message that can be quoted: one line of words each, 4 to 26 of them."""
    parts = (part.strip() for part in SENTENCE_END.split(text))
    return tuple(p for p in parts if PLAIN.fullmatch(p) and 4 <= len(p.split()) <= 26)


def _as_mine(sentence: str) -> str:
    for yours, mine in FIRST_PERSON:
        if sentence.startswith(yours):
            return mine + sentence[len(yours) :]
    return sentence
