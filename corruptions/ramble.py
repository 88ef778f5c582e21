"""ramble: the same model is made to go on past its end, at the same state. Its own verbosity, nobody's phrases.

`continue` keeps the chosen reply and has the model say on; `fresh` draws a whole reply that may not end early.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from corruptions.options import one_of, whole_number
from corruptions.shape import SPECIAL, proven, refusal
from pairgen.records import Message, Move
from pairgen.strategy import Ask, Corruption, Decline, Material, Strategy
from pairgen.thinking import shown

MANNERS = ("continue", "fresh")
SHORTEST, LONGEST = 16, 256  # new tokens before a reply may end, where the option does not say
LEAST, MOST = (1, 4_000), 8_000  # what min_tokens and max_tokens may be
ROOM = 64  # tokens within which it may then end
CHARACTERS_PER_TOKEN = 4  # where the run did not count them


def asks(material: Material, chance: random.Random, options: Mapping[str, str]) -> Sequence[Ask] | Decline:
    """One reply at the move's own prompt. How long it must be is drawn from the length of the chosen one."""
    move = material.move
    if declined := refusal(move.reply):
        return declined
    tokens = _tokens(move)
    drawn = max(SHORTEST, min(LONGEST, round(tokens * chance.uniform(0.5, 2.0))))
    if _manner(options) == "fresh":
        drawn = min(LONGEST, tokens + drawn)
    least = whole_number("ramble", options, "min_tokens", *LEAST, drawn)
    most = whole_number("ramble", options, "max_tokens", least + 1, MOST, least + ROOM)
    seed = chance.getrandbits(31)
    if _manner(options) == "fresh":
        return (Ask(move.prompt, most, least, seed=seed),)
    return (Ask((*move.prompt, Message("assistant", _begun(move))), most, least, seed=seed, go_on=True),)


def corrupt(material: Material, chance: random.Random, options: Mapping[str, str]) -> Corruption | Decline:
    """What the model said, up to where it tried to leave its turn; the detail is the manner, and whether it was cut."""
    if not material.drafts:
        return Decline("nobody was asked")
    move, draft, manner = material.move, material.drafts[0], _manner(options)
    if draft.problem:
        return Decline(f"the model gave no reply {draft.problem}")
    left = next((m for m in SPECIAL.finditer(draft.text) if "think" not in m[0].lower()), None)
    said = draft.text[: left.start()] if left else draft.text
    text = shown(_begun(move) + said if manner == "continue" else said).rstrip("\ufffd")
    if not (said.strip() and text):
        return Decline("the model said nothing")
    if manner == "continue" and not text.startswith(move.reply.strip()):
        return Decline("the chosen reply was lost")
    if len(text) <= len(move.reply.strip()):
        return Decline("not longer than the chosen reply")
    cut = draft.finish_reason == "length" and not left
    return proven(move.reply, text, f"{manner}/cut" if cut else manner)


def read_options(options: Mapping[str, str]) -> None:
    """Raises UsageProblem for a value that cannot be."""
    _manner(options)
    least = whole_number("ramble", options, "min_tokens", *LEAST, SHORTEST)
    whole_number("ramble", options, "max_tokens", least + 1, MOST, least + ROOM)


def _manner(options: Mapping[str, str]) -> str:
    return one_of("ramble", options, "manner", MANNERS) or MANNERS[0]


def _tokens(move: Move) -> int:
    known = len(move.token_ids) or move.completion_tokens
    return known if known > 0 else max(1, len(move.reply) // CHARACTERS_PER_TOKEN)


def _begun(move: Move) -> str:
    """What the model said, from which it goes on: the raw reply, where the reply comes from it."""
    return move.raw_reply if shown(move.raw_reply) == move.reply else move.reply


STRATEGY = Strategy(
    "ramble",
    "the same model is made to go on past its end at the same state (asks the model; see --model and --engine)",
    corrupt,
    asked="model",
    asks=asks,
    options={
        "manner": "continue (the chosen reply, and on from there) or fresh (a whole reply that may not end early)",
        "min_tokens": "new tokens before its turn may end; drawn from the length of the chosen reply if not given",
        "max_tokens": f"new tokens at most; {ROOM} above min_tokens if not given",
    },
    check=read_options,
)
