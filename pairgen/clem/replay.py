"""Puts replies to the game master: plays an episode again as recorded, tries others in copies. Runs in a worker.

The verdict on a reply is `accepted`, `violation`, or `unverifiable: <why>`; `(order)` marks a replay whose prompts say
the same things in another order (older runs did not fix the order of Python sets).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pairgen.clem.table import GameFault, Table

ACCEPTED, VIOLATION = "accepted", "violation"


def unverifiable(why: str) -> str:
    return f"unverifiable: {why}"


def replay(
    table: Table, open_: Callable[[], dict[str, Any]], moves: list[dict[str, Any]], tries: list[dict[str, Any]]
) -> dict[str, list[str]]:
    """Verdict and reason for each of `tries`, by its id.

    `open_` opens the table. `moves` are the recorded model moves in order (player, prompt, reply); a try is {id, move,
    text}: the reply `text` at the `move`-th of them. The recorded reply itself is tried where `text` is None.
    """
    verdicts: dict[str, list[str]] = {}
    by_move: dict[int, list[dict[str, Any]]] = {}
    for attempt in tries:
        by_move.setdefault(attempt["move"], []).append(attempt)
    note, why = "", ""
    try:
        step = open_()
    except GameFault as fault:
        return {t["id"]: [unverifiable("the game failed"), str(fault)] for t in tries}
    for index in range(max(by_move) + 1):
        move = moves[index]
        same = _agreement(step, move)
        if same == "diverged":
            why = f"move {index} is asked otherwise"
            break
        note = note or same
        for attempt in by_move.get(index, ()):
            if attempt["text"] is not None:
                verdicts[attempt["id"]] = _noted(_judge(table.copy(), attempt["text"]), note)
        try:
            step = table.reply(move["reply"], {})
        except GameFault as fault:
            why = f"the game failed: {fault}"
            break
        own = [VIOLATION, step["violation"]] if step["violation"] else [ACCEPTED, ""]
        for attempt in by_move.get(index, ()):
            if attempt["text"] is None:
                verdicts[attempt["id"]] = _noted(own if step["op"] != "end" else _ended(table, own), note)
    return {t["id"]: verdicts.get(t["id"], [unverifiable("diverged"), why]) for t in tries}


def _judge(copy: Table, text: str) -> list[str]:
    """What the game master says to `text`; `copy` is used up."""
    try:
        step = copy.reply(text, {})
    except GameFault as fault:
        return [unverifiable("the game failed"), str(fault)]
    verdict = [VIOLATION, step["violation"]] if step["violation"] else [ACCEPTED, ""]
    return _ended(copy, verdict) if step["op"] == "end" else verdict


def _ended(table: Table, verdict: list[str]) -> list[str]:
    """Some games say nothing when they abort: the scorer does."""
    if verdict[0] == VIOLATION:
        return verdict
    try:
        outcome, _ = table.score(None)
    except GameFault:
        return verdict
    return [VIOLATION, "the game was aborted by this reply"] if outcome == "aborted" else verdict


def _noted(verdict: list[str], note: str) -> list[str]:
    return [f"{verdict[0]} ({note})" if note and verdict[0] in (ACCEPTED, VIOLATION) else verdict[0], verdict[1]]


def _agreement(step: dict[str, Any], move: dict[str, Any]) -> str:
    """Empty where the game asks what was recorded, `order` where it asks the same in another order, else `diverged`."""
    if step["op"] != "ask" or step["player"] != move["player"]:
        return "diverged"
    asked, recorded = step["messages"], move["prompt"]
    if asked == recorded:
        return ""
    return "order" if _words(asked) == _words(recorded) else "diverged"


def _words(messages: list[dict[str, str]]) -> list[tuple[str, list[str]]]:
    return [(m["role"], sorted(re.findall(r"\w+", m["content"]))) for m in messages]
