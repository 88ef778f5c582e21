"""Finds the recorded call of each reply, and says whether it sent what the events say. Pure; knows no files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pairgen.clem.calls import Call, sent_messages, sent_text
from pairgen.clem.rendered import agrees
from pairgen.clem.transcript import Reply


class Match(NamedTuple):
    """The call that a reply came from, where there is one, and whether it sent what the events say (None: unknown)."""

    call: Call | None
    same_prompt: bool | None


def match(replies: Sequence[Reply], calls: Mapping[str, Sequence[Call]]) -> list[Match]:
    """The call of each reply. `calls` has those of each player in order, "" those of all players together.

    Up to clemcore 3.4.1 a call has the very time stamp of its reply; since then calls are a player's own and in order.
    A call that says what was replied only belongs to a reply of that text; calls of no reply are passed over.
    """
    found: dict[int, Match] = {}
    for player, own in calls.items():
        owed = [i for i, r in enumerate(replies) if r.said and player in ("", r.player)]
        stamps = {} if player else {(c.timestamp, c.reply): c for c in own}
        stamped = {i: stamps.get((replies[i].timestamp, replies[i].text)) for i in owed}
        if any(stamped.values()):
            found.update((i, Match(call, same_prompt(call, replies[i]))) for i, call in stamped.items() if call)
        else:
            found.update(_in_order(owed, replies, own))
    return [found.get(i, Match(None, None)) for i in range(len(replies))]


def _in_order(owed: Sequence[int], replies: Sequence[Reply], calls: Sequence[Call]) -> Iterable[tuple[int, Match]]:
    """Each reply takes the next call of its text, rather one that sent the same prompt."""
    start = 0
    for i in owed:
        fitting = [k for k in range(start, len(calls)) if calls[k].reply in (None, replies[i].text)]
        agreeing = next((k for k in fitting if same_prompt(calls[k], replies[i])), None)
        if fitting:
            chosen = fitting[0] if agreeing is None else agreeing
            start = chosen + 1
            yield i, Match(calls[chosen], same_prompt(calls[chosen], replies[i]))


def same_prompt(call: Call, reply: Reply) -> bool | None:
    """Whether the call sent the reply's prompt; None where the backend recorded neither messages nor a template."""
    sent, text = sent_messages(call.prompt), sent_text(call.prompt)
    if sent is not None:
        return sent == reply.prompt
    return None if text is None else agrees(reply.prompt, text)
