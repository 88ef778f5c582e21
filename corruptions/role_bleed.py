"""role_bleed: the reply does not end with the move: it goes on with a message of the game master and a move after it.

Both are made up: the message in the form of those in the prompt, the next move in the form of the move's peers. What
marks a change of speaker is words or nothing; a chat template's special tokens never appear as text. Knows no game.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from corruptions import bank, gamemaster, options
from corruptions.shape import look, proven, read, refusal
from corruptions.speaker import LONG_WORD, Speaker
from pairgen.strategy import Corruption, Decline, Material, Strategy

MOST_ADDED = 4000  # characters
LONGEST_MOVE = 700
MOST_ROUNDS = 4
ROUND_WEIGHTS = (60, 24, 11, 5)
FORM_SHARE = 0.85  # how often the prompt's own form is used, where it shows one
LABEL_SHARE = 0.3


def read_options(chosen: Mapping[str, str]) -> int:
    """The most rounds."""
    return options.whole_number("role_bleed", chosen, "rounds", 1, MOST_ROUNDS, 3)


def corrupt(material: Material, rng: random.Random, chosen: Mapping[str, str]) -> Corruption | Decline:
    most = read_options(chosen)
    reply = material.move.reply
    if declined := refusal(reply):
        return declined
    speaker = Speaker(material, read(material), rng, "verbose.json", "role_bleed.json")
    speaker.casing = "normal"  # the game master does not speak as the player does
    speaker.add_slots(_partner_slots(speaker, material))
    labels = _labels(speaker, material) if rng.random() < LABEL_SHARE and speaker.english else ("", "")
    gap = "" if labels[0].startswith("user") and rng.random() < 0.4 else rng.choice(("\n", "\n\n", "\n\n", "\n\n\n"))
    text, kinds, moves = reply, [], [reply.strip()]
    for _ in range(min(most, rng.choices(range(1, MOST_ROUNDS + 1), ROUND_WEIGHTS)[0])):
        said, kind = _message(speaker, material)
        moves.append(_next_move(speaker, material, moves))
        longer = gap.join((text, labels[0] + said, labels[1] + moves[-1]))
        if not said or len(longer) > len(reply) + MOST_ADDED:
            break
        text = longer
        kinds.append(kind)
    if not kinds:
        return Decline("no game-master message to go by")
    if rng.random() < 0.2:
        text = _cut(text, len(reply), rng)
    return proven(reply, text, f"{kinds[0]}/labelled" if labels[0] else kinds[0])


def _message(speaker: Speaker, material: Material) -> tuple[str, str]:
    """What the game master is made to say, and where its form is from: the prompt, or the phrase bank."""
    said = gamemaster.message(material, speaker.looks, speaker.rng)
    if said and (speaker.rng.random() < FORM_SHARE or not speaker.english):
        return said, "prompt"
    return (speaker.say("message"), "bank") if speaker.english else ("", "bank")


def _partner_slots(speaker: Speaker, material: Material) -> dict[str, str]:
    """How the partner's messages are tagged, as far as the prompt and the move's own tags tell, and a word to say."""
    slots = {"partner": gamemaster.partner_tag(material)}
    if words := gamemaster.lone_words(material) or LONG_WORD.findall(speaker.reply):
        slots["other"] = speaker.rng.choice(words)
    if tag := speaker.looks.tag if speaker.looks.kind == "tagged" else "":
        slots["answer_tag"] = "ANSWER" if tag.isupper() else "answer" if tag.islower() else "Answer"
    return {name: value for name, value in slots.items() if value}


def _next_move(speaker: Speaker, material: Material, moves: Sequence[str]) -> str:
    """Another move of the same game and role: one with the same tag whose words this conversation knows best.

    The last of `moves` again where there is no other.
    """
    known = set(" ".join([*(m.content for m in material.move.prompt), speaker.reply]).lower().replace(",", " ").split())
    best, best_score = moves[-1], -1.0
    for peer in speaker.rng.sample(speaker.peers, min(12, len(speaker.peers))):
        words = peer.lower().replace(",", " ").split()
        if not words or peer.strip() in moves:
            continue
        alike = look(peer, speaker.looks.tags).tag == speaker.looks.tag
        if (score := alike + sum(word in known for word in words) / len(words)) > best_score:
            best, best_score = peer.strip(), score
    return best[:LONGEST_MOVE]


def _labels(speaker: Speaker, material: Material) -> tuple[str, str]:
    """What stands before the game master's messages and before the own ones."""
    known = bank.load("role_bleed.json")
    other, own = speaker.rng.choice(known["speaker_label"]), speaker.rng.choice(known["own_label"])
    if other.startswith("user"):
        own = other.replace("user", "assistant")
    elif speaker.rng.random() < 0.5 and re.fullmatch(r"[\w ]{2,30}", material.move.player):
        own = f"{material.move.player}: "
    elif speaker.rng.random() < 0.3:
        own = ""
    return other, own


def _cut(text: str, least: int, rng: random.Random) -> str:
    """The text without the end of its last move, as a token limit would leave it."""
    start = max(least, text.rindex("\n") + 2 if "\n" in text[least:] else least)
    places = [i for i in range(start + 1, len(text)) if text[i - 1].isalnum() and text[i].isalnum()]
    return text[: rng.choice(places)] if places else text


STRATEGY = Strategy(
    name="role_bleed",
    summary="the reply runs on into an invented game-master message and a next move",
    corrupt=corrupt,
    requires_violation=True,
    options={"rounds": f"how many messages and moves are invented at most, from 1 to {MOST_ROUNDS} (default 3)"},
    check=read_options,
)
