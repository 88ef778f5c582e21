"""A row of a general preference set as a pair: one prompt, two replies. Pure; says what is wrong with unsound ones.

Such sets hold the prompt as a text and both sides as whole conversations that begin with it (Tülu 3), or prompt and
replies apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pairgen.records import Message, Messages

SIDES = ("prompt", "chosen", "rejected")
ROLES = frozenset({"system", "user", "assistant"})
FLAWS = {
    "not_a_pair": "prompt, chosen or rejected is missing, or neither a text nor a list of messages",
    "other_role": "a message is of neither system, user nor assistant",
    "other_prefix": "chosen and rejected do not begin with the same conversation",
    "other_prompt": "the prompt is not what both sides answer",
    "no_reply": "a side does not end with the assistant's reply",
    "no_question": "the last message before the reply is not the user's",
    "empty": "a reply, or the prompt, holds no text",
    "identical": "both sides say the same",
}
"""What can be wrong with a row, in the order in which it is looked for."""


class General(NamedTuple):
    """A sound row: `prompt` ends with the user's message, both sides are the one reply to it."""

    prompt: Messages
    chosen: Messages
    rejected: Messages


class Flawed(Exception):
    """This row is no pair; its only argument is a key of FLAWS."""

    @property
    def flaw(self) -> str:
        return str(self.args[0])


def convert(row: Mapping[str, Any]) -> General:
    """The pair in a row with prompt (optional where both sides hold it), chosen and rejected. Raises Flawed."""
    sides = [_messages(row.get(side), "assistant") for side in SIDES[1:]]
    prompt = _messages(row["prompt"], "user") if row.get("prompt") is not None else ()
    if any(message.role not in ROLES for part in (prompt, *sides) for message in part):
        raise Flawed("other_role")
    before = [side[:-1] for side in sides]
    if before[0] != before[1]:
        raise Flawed("other_prefix")
    if any(side[-1].role != "assistant" for side in sides):
        raise Flawed("no_reply")
    shared = before[0] or prompt
    if before[0] and prompt and not _asks(prompt, before[0]):
        raise Flawed("other_prompt")
    pair = General(shared, (sides[0][-1],), (sides[1][-1],))
    if not shared or shared[-1].role != "user":
        raise Flawed("no_question")
    said = ["".join(part[-1].content.split()) for part in pair]
    if not all(said):
        raise Flawed("empty")
    if said[1] == said[2]:
        raise Flawed("identical")
    return pair


def _messages(value: object, role: str) -> Messages:
    if isinstance(value, str):
        return (Message(role, value),)
    if not isinstance(value, Sequence) or not value:
        raise Flawed("not_a_pair")
    messages = []
    for item in value:
        if not isinstance(item, Mapping):
            raise Flawed("not_a_pair")
        by, said = item.get("role"), item.get("content")
        if not (isinstance(by, str) and isinstance(said, str)):
            raise Flawed("not_a_pair")
        messages.append(Message(by, said))
    return tuple(messages)


def _asks(prompt: Messages, conversation: Messages) -> bool:
    """Whether the prompt column tells the conversation: as the same messages, a turn of the user, or all in one."""
    if len(prompt) > 1:
        return prompt == conversation
    told = prompt[0].content.strip()
    turns = [message.content.strip() for message in conversation if message.role == "user"]
    return told in turns or (bool(turns) and all(turn in told for turn in turns))
