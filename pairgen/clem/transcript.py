"""Rebuilds from recorded events what each player was asked and what it answered. Pure; knows no files and no clemcore.

A player remembers what it is sent and what it says, but for messages labelled "forget". A message labelled "pseudo" was
put into its mouth by the game: it is remembered, but was never said. Same roles in a row are one message for the model,
joined by an empty line, as clemcore's backends send them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pairgen.records import Message, Messages

MERGED = "\n\n"
"""What stands between two messages of the same role that a backend has joined."""


class Reply(NamedTuple):
    """One reply of a player, with the prompt that its memory makes, and the game master's notes that followed.

    `said` is false where the game put it into the player's mouth. `notes` goes on to the next reply of a player of
    `models`: what a scripted player answers is the answer to a model's move.
    """

    player: str
    text: str
    said: bool
    timestamp: str
    prompt: Messages
    notes: tuple[Mapping[str, Any], ...]


def replies(events: Iterable[Mapping[str, Any]], models: Collection[str]) -> list[Reply]:
    """The replies of the players named in `models`, in order."""
    memory: dict[str, list[Message]] = {}
    passing: dict[str, list[Message]] = {}
    found: list[Reply] = []
    notes: list[Mapping[str, Any]] = []
    for event in events:
        speaker, hearer, action = event["from"], event["to"], event["action"]
        if speaker == "GM" and hearer == "GM":
            notes.append(event)
        elif speaker == "GM" and action["type"] == "send message":
            where = passing if action.get("label") == "forget" else memory
            where.setdefault(hearer, []).append(Message("user", _text(action)))
        elif hearer == "GM" and action["type"] == "get message":
            text, label = _text(action), action.get("label")
            if speaker in models:
                _close(found, notes)
                prompt = merged([*memory.get(speaker, ()), *passing.get(speaker, ())])
                found.append(Reply(speaker, text, label != "pseudo", str(event.get("timestamp", "")), prompt, ()))
            passing.pop(speaker, None)
            if label != "forget":
                memory.setdefault(speaker, []).append(Message("assistant", text))
    _close(found, notes)
    return found


def _close(found: list[Reply], notes: list[Mapping[str, Any]]) -> None:
    """Give the notes so far to the last reply (those before the first belong to no one)."""
    if found:
        found[-1] = found[-1]._replace(notes=tuple(notes))
    notes.clear()


def merged(messages: Sequence[Message]) -> Messages:
    """Messages with alternating roles: neighbours of one role joined, an empty system message left out."""
    joined: list[Message] = []
    for message in messages:
        if message.role == "system" and not message.content and not joined:
            continue
        if joined and joined[-1].role == message.role:
            message = Message(message.role, joined.pop().content + MERGED + message.content)
        joined.append(message)
    return tuple(joined)


def _text(action: Mapping[str, Any]) -> str:
    content = action.get("content")
    return content if isinstance(content, str) else ""
