"""From an episode as clemcore recorded it to pairgen's own: moves rebuilt, and held against what was sent. Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pairgen.clem.calls import answer_of, sent_messages
from pairgen.clem.events import violation_in
from pairgen.clem.layout import HUMAN, Recorded
from pairgen.clem.matching import Match, match
from pairgen.clem.transcript import Reply, replies
from pairgen.records import Episode, Move, Outcome, instance_hash

UNKNOWN_SEED = -1
PSEUDO = "pseudo"
"""The finish reason of a reply that the game put into a model's mouth: it is in the history, and was never said."""


class Taken(NamedTuple):
    """An episode, and for each of its moves whether what was sent is what the events say (None: not known)."""

    episode: Episode
    same_prompt: tuple[bool | None, ...]


def take(recorded: Recorded, sample: int, source: str) -> Taken:
    """The episode that a folder recorded, as the `sample`-th play of its instance."""
    roles = {p.name: (p.role, p.model) for p in recorded.players if not p.programmatic and p.model not in HUMAN}
    found = replies(recorded.events, roles)
    matches = match(found, recorded.calls)
    outcome, main_score = judge(recorded.scores)
    episode = Episode(
        game=recorded.game,
        experiment=recorded.experiment,
        task_id=recorded.task_id,
        sample=sample,
        seed=UNKNOWN_SEED,
        outcome=outcome,
        main_score=main_score,
        players=recorded.players,
        moves=tuple(_move(i, r, *roles[r.player], m) for i, (r, m) in enumerate(zip(found, matches, strict=True))),
        fault=None,
        instance_hash=instance_hash(recorded.game, recorded.instance) if recorded.instance else "",
        clemcore_version=recorded.clemcore_version,
        source=source,
    )
    return Taken(episode, tuple(m.same_prompt for m in matches))


def _move(index: int, reply: Reply, role: str, model: str, found: Match) -> Move:
    """A reply as a move; the message list that was sent, where it is known, is its prompt as it stands."""
    answer = answer_of(found.call) if found.call else None
    sent = sent_messages(found.call.prompt) if found.call else None
    reason = answer.finish_reason if answer else "unknown"
    return Move(
        index=index,
        player=reply.player,
        role=role,
        model=model,
        prompt=sent or reply.prompt,
        reply=reply.text,
        raw_reply=answer.raw if answer and answer.raw is not None else reply.text,
        finish_reason=reason if reply.said else PSEUDO,
        prompt_tokens=answer.prompt_tokens if answer else -1,
        completion_tokens=answer.completion_tokens if answer else -1,
        cached_tokens=answer.cached_tokens if answer else -1,
        token_ids=(),
        violation=violation_in(reply.notes) if reply.said else "",
    )


def judge(scores: dict[str, Any] | None) -> tuple[Outcome, float | None]:
    """Outcome and main score from the game's own episode scores; what they do not say is not guessed.

    The main score stands as it was written (NaN is None), so that the sums are those of `clem eval`.
    """
    scores = scores or {}
    flags = {name: _number(scores.get(name)) for name in ("Aborted", "Success", "Lose")}
    main_score = _number(scores.get("Main Score"))
    if flags["Aborted"]:
        return "aborted", main_score
    if flags["Success"]:
        return "success", main_score
    if flags["Lose"] or (flags["Aborted"] == 0 and flags["Success"] == 0):
        return "lose", main_score
    return "unscored", main_score


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (bool, int, float)) and math.isfinite(value) else None
