"""The contract of a strategy: a move in, the other side of its pair or a reason to decline out. Knows no strategy.

A strategy is a pure function: all chance comes from the generator it is handed, and it never returns the move itself.
What a model must say for it is asked for beforehand (`asks`) and handed in as drafts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pairgen.errors import UsageProblem, did_you_mean
from pairgen.records import Messages, Move


class Rival(NamedTuple):
    """Another reply to the very same prompt in an episode that was not won, how that ended, and which model said it."""

    reply: str
    outcome: str
    model: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A reply that a strategy needs. Counts are in new tokens; below `min_tokens` the turn cannot end.

    `temperature` None is the run's own, or 0.7 where the run did not draw. With `go_on` the last message is the
    assistant's own, and the reply goes on from its end.
    """

    messages: Messages
    max_tokens: int
    min_tokens: int = 0
    temperature: float | None = None
    seed: int | None = None
    go_on: bool = False


class Draft(NamedTuple):
    """The answer to an Ask as it was given, thinking text and all, `by` whom, and why it ended.

    `problem` is the kind of failure where there is no answer, such as context_exceeded or timeout.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    by: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    """A move to work on, and `peers`: the distinct accepted replies of the same game and role (sorted).

    `rivals` are there when the instance was played more than once, `drafts` when the strategy asked for them.

    Peers show what moves of this game look like (tags, lines, separators), so that no strategy needs a list of games.
    """

    move: Move
    game: str
    peers: tuple[str, ...]
    rivals: tuple[Rival, ...] = ()
    drafts: tuple[Draft, ...] = ()


class Corruption(NamedTuple):
    """The other side of the pair (rejected, as a rule), and in a few stable words how it was made.

    These are `kind` or `kind/variant`.
    """

    text: str
    detail: str


class Decline(NamedTuple):
    """Why this strategy has nothing to offer for this move, in a few stable words."""

    reason: str


Corruptions = Corruption | tuple[Corruption, ...]
Corrupt = Callable[[Material, random.Random, Mapping[str, str]], Corruptions | Decline]
Asks = Callable[[Material, random.Random, Mapping[str, str]], "Sequence[Ask] | Decline"]
Asked = Literal["", "model", "judge"]


def _anything(options: Mapping[str, str]) -> None:
    """Options without a value that could be wrong."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to make a pair of a move.

    `takes` says which moves: those of won episodes, or the last ones of aborted episodes; of these the recorded reply
    is the rejected side, and the strategy makes the chosen one. `asks` gives what `asked`, the model that played or a
    judge, must say before.

    `requires_violation` says that a pair is kept only if the game master rejects the rejected side (where it can be
    asked), `requires_proof` that it must have accepted the chosen side and rejected the other. `options` are the words
    that may follow `name:` on the command line, with what they mean; `check` raises UsageProblem for a value that
    cannot be, before there is a move. A strategy that gives several corruptions for a move says in `most_per_prompt`
    how many pairs a prompt may have (0: no bound; its option `per_prompt` goes first).
    """

    name: str
    summary: str
    corrupt: Corrupt
    requires_violation: bool = False
    requires_proof: bool = False
    takes: Literal["won", "aborted"] = "won"
    asked: Asked = ""
    asks: Asks | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    most_per_prompt: int = 0
    check: Callable[[Mapping[str, str]], object] = _anything


class Choice(NamedTuple):
    """A strategy as the user asked for it: `verbose`, `verbose:2` (a weight), `verbose:style=reference` (an option)."""

    name: str
    weight: float
    options: Mapping[str, str]


def parse_choice(text: str, known: Mapping[str, Strategy]) -> Choice:
    """Read `name[:weight][:key=value]…`. Raises UsageProblem for what is not known, with the closest known word."""
    name, *rest = text.split(":")
    if name not in known:
        raise UsageProblem(f"There is no strategy {name!r}: {did_you_mean(name, known)}")
    weight, options = 1.0, {}
    for part in rest:
        key, equals, value = part.partition("=")
        if equals:
            if key not in known[name].options:
                raise UsageProblem(f"Strategy {name} has no option {key!r}: {did_you_mean(key, known[name].options)}")
            options[key] = value
        else:
            weight = _weight(text, part)
    return Choice(name, weight, options)


def _weight(text: str, part: str) -> float:
    try:
        weight = float(part)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise UsageProblem(
            f"--strategy {text}: {part!r} is no weight above 0, give for example {text.split(':')[0]}:2."
        )
    return weight
