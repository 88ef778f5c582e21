"""Reads preference pairs that others published, into pairs: a JSON array, JSON lines or parquet. Judges none of them.

A row needs prompt, chosen and rejected, each a text or a list of messages. What a row does not say stays empty; where
it names no instance, what shares a first message counts as one, numbered in the order of their hashes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pairgen.errors import PairgenError, UsageProblem
from pairgen.records import Message, Messages, Pair, content_id, fields_of

SIDES = ("prompt", "chosen", "rejected")
SUFFIXES = (".json", ".jsonl", ".parquet")
EMPTY: dict[type, Any] = {str: "", int: 0, float: 0.0}


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file, in its order, each with an id of its own.

    Raises UsageProblem for another kind of file, PairgenError for one that cannot be read or has a row that is no pair.
    """
    if path.suffix not in SUFFIXES:
        raise UsageProblem(f"{path}: give a pair file that ends in {', '.join(SUFFIXES)}.")
    try:
        rows = list(read_rows(path))
    except (OSError, ValueError) as error:
        first = (str(error).strip().splitlines() or [""])[0][:200]
        raise PairgenError(
            f"{path} cannot be read as pairs ({type(error).__name__}: {first}): mend the file, or give another."
        ) from None
    pairs = [_pair(row, number, path) for number, row in enumerate(rows, 1)]
    if not pairs:
        raise PairgenError(f"{path} holds no pair: give another file.")
    return _named(pairs, [isinstance(row.get("task_id"), int) for row in rows])


def columns(path: Path) -> tuple[str, ...]:
    """The names that any row of a pair file has, in alphabetical order."""
    return tuple(sorted({str(name) for row in read_rows(path) if isinstance(row, dict) for name in row}))


def read_rows(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        yield from pq.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        yield from (json.loads(line) for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip())
    else:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
        if isinstance(data, dict):
            data = next((value for value in data.values() if isinstance(value, list)), data)
        if not isinstance(data, list):
            raise ValueError("no list of rows in it")
        yield from data


def _pair(row: Any, number: int, path: Path) -> Pair:
    try:
        sides = {side: _messages(row[side], "user" if side == "prompt" else "assistant") for side in SIDES}
    except (KeyError, TypeError, ValueError) as error:
        raise PairgenError(
            f"{path}: row {number} is no pair ({type(error).__name__}: {error}): each row needs prompt, chosen and "
            "rejected, as texts or as lists of messages with role and content."
        ) from None
    known: dict[str, Any] = {name: _scalar(row.get(name), hint) for name, hint in fields_of(Pair) if name not in SIDES}
    return Pair(**{**known, **_without_prompt(sides)})


def _without_prompt(sides: dict[str, Messages]) -> dict[str, Messages]:
    """Some files repeat the prompt at the beginning of both sides."""
    prompt = sides["prompt"]
    if prompt and all(len(sides[s]) > len(prompt) and sides[s][: len(prompt)] == prompt for s in SIDES[1:]):
        return {"prompt": prompt, **{side: sides[side][len(prompt) :] for side in SIDES[1:]}}
    return sides


def _messages(value: Any, role: str) -> Messages:
    if isinstance(value, str):
        return (Message(role, value),)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not value:
        raise ValueError(f"{value!r:.40} is no list of messages")
    messages = tuple(Message(m["role"], m["content"]) for m in value)
    if not all(isinstance(m.role, str) and isinstance(m.content, str) for m in messages):
        raise ValueError("a message whose role or content is no text")
    return messages


def _scalar(value: Any, hint: Any) -> Any:
    """A value of the field's type, or what stands for nothing."""
    kind = hint if hint in EMPTY else None  # the one field that may be None is the score
    if kind is None:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return value if type(value) is kind else EMPTY[kind]


def _named(pairs: list[Pair], numbered: Iterable[bool]) -> list[Pair]:
    """Instances and ids where the file gives none: equal rows share what is hashed, so a count makes ids differ."""
    firsts = {id(pair): content_id(pair.prompt[: _first_turn(pair.prompt)]) for pair in pairs}
    numbers = {name: number for number, name in enumerate(sorted(set(firsts.values())))}
    seen: dict[str, int] = {}
    named = []
    for pair, known in zip(pairs, numbered, strict=True):
        task = pair.task_id if known else numbers[firsts[id(pair)]]
        name = pair.pair_id or content_id("pair", pair.prompt, pair.chosen, pair.rejected)
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else content_id(name, seen[name])
        named.append(dataclasses.replace(pair, pair_id=unique, task_id=task))
    return named


def _first_turn(prompt: Messages) -> int:
    return 1 + next((i for i, message in enumerate(prompt) if message.role == "user"), 0)
