"""What the game's own referee said of both sides of a pair, and what is kept by it. Pure: asks nobody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from pairgen.records import Drop, Pair
from pipelines.funnel import drop_pair

NO_GAMES = "unverifiable: no games"

Try = tuple[str, str | None]
"""A move's id and the reply to try there; None stands for the recorded reply."""


class Verdict(NamedTuple):
    """What the game master said to one reply, and its own words."""

    verdict: str
    reason: str

    @property
    def accepted(self) -> bool:
        return self.verdict.startswith("accepted")

    @property
    def violation(self) -> bool:
        return self.verdict.startswith("violation")


class Policy(NamedTuple):
    """`require_violation` names the strategies whose rejected side must be rejected by the game master.

    `require_accepted` drops pairs whose chosen side the game master does not accept. What cannot be verified stays,
    marked as such, unless `require_verified` is set. `require_proof` names the strategies of which only pairs stay
    whose chosen side it has accepted and whose rejected side it has not.
    """

    require_violation: frozenset[str]
    require_accepted: bool = True
    require_verified: bool = False
    require_proof: frozenset[str] = frozenset()


class Judged(NamedTuple):
    """`kept` and `drops` are the input; `kept` carry their verdicts."""

    kept: list[Pair]
    drops: list[Drop]


def judge(
    pairs: Iterable[Pair],
    verdicts: Mapping[Try, Verdict],
    policy: Policy,
    attempts: Mapping[str, int] = MappingProxyType({}),
) -> Judged:
    """Put verdicts on pairs and drop what the policy does not allow. A side without verdict is `unverifiable`.

    `attempts` says by pair id how often a rejected side was made that the game master accepted.
    """
    nothing = Verdict(NO_GAMES, "")
    kept: list[Pair] = []
    drops: list[Drop] = []
    for pair in pairs:
        chosen, rejected = (verdicts.get(attempt, nothing) for attempt in _sides(pair))
        judged = replace(
            pair, chosen_verdict=chosen.verdict, chosen_reason=chosen.reason, rejected_verdict=rejected.verdict,
            rejected_reason=rejected.reason,
        )  # fmt: skip
        reason, detail = _fault(judged.strategy, chosen, rejected, policy)
        if reason == "rejected_accepted":
            count = attempts.get(pair.pair_id, 1)
            detail = f"{detail}, {count} attempt{'s' * (count > 1)}"
        if reason:
            drops.append(drop_pair(judged, "verify", reason, detail))
        else:
            kept.append(judged)
    return Judged(kept, drops)


def _fault(strategy: str, chosen: Verdict, rejected: Verdict, policy: Policy) -> tuple[str, str]:
    proof = strategy in policy.require_proof
    if (policy.require_accepted or proof) and chosen.violation:
        return "chosen_violation", chosen.reason
    if proof and rejected.accepted:
        return "rejected_accepted", rejected.verdict
    if proof and not (chosen.accepted and rejected.violation):
        unsure = rejected if chosen.accepted else chosen
        return "unproven", f"{unsure.verdict} {unsure.reason}".strip()
    if strategy in policy.require_violation and rejected.accepted:
        return "rejected_accepted", rejected.verdict
    if policy.require_verified and not (chosen.accepted or chosen.violation):
        return "unverified", f"{chosen.verdict} {chosen.reason}".strip()
    return "", ""


def tries_of(pairs: Iterable[Pair]) -> dict[str, set[Try]]:
    """What has to be tried, by episode: both sides of each pair."""
    tries: dict[str, set[Try]] = defaultdict(set)
    for pair in pairs:
        tries[pair.episode_id] |= {*_sides(pair)}
    return dict(tries)


def _sides(pair: Pair) -> tuple[Try, Try]:
    """What was tried, or is to be, for the chosen and for the rejected side."""
    chosen, rejected = pair.chosen[0].content, pair.rejected[0].content
    if recorded_side(pair) == "chosen":
        return (pair.move_id, None), (pair.move_id, rejected)
    return (pair.move_id, chosen), (pair.move_id, None)


def recorded_side(pair: Pair) -> str:
    """The side that was said in the episode.

    Corrections are made of moves that aborted theirs, which are `rejected`; other pairs of moves that helped to win.
    """
    return "chosen" if pair.outcome == "success" else "rejected"
