"""Redraw: a rejected side that is meant to break a rule and that the referee accepts is made again.

Pure: knows no game, and asks the referee that it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pairgen.records import Pair
from pipelines.verdicts import Policy, Try, Verdict

MOST_ATTEMPTS = 4

Referee = Callable[[Sequence[Pair]], Mapping[Try, Verdict]]
Again = Callable[[Pair, int], Iterable[Pair]]


class Redrawn(NamedTuple):
    """The pairs in their order, those that were helped in their new form; all verdicts.

    `attempts` counts what the referee accepted, by the id of each pair that was given up: it stands as it was first.
    """

    pairs: list[Pair]
    verdicts: dict[Try, Verdict]
    attempts: dict[str, int]


def redraw(pairs: Sequence[Pair], referee: Referee, again: Again, policy: Policy) -> Redrawn:
    """Ask the referee; make each pair that needs a violation and has none again, at most `MOST_ATTEMPTS` times in all.

    `again(pair, attempt)` gives the other pairs of attempt 1, 2, …; a rejected side that was tried is not asked again.
    The referee is asked once a round for all that are open.
    """
    settled = list(pairs)
    verdicts = dict(referee(pairs))
    tried = {
        place: {pair.rejected[0].content}
        for place, pair in enumerate(pairs)
        if pair.strategy in policy.require_violation and _is_open(pair, verdicts, policy)
    }
    asked = dict.fromkeys(tried, 1)
    for attempt in range(1, MOST_ATTEMPTS):
        drawn: dict[int, Pair] = {}
        for place in asked:
            others = (p for p in again(pairs[place], attempt) if p.rejected[0].content not in tried[place])
            if settled[place] is pairs[place] and (other := next(others, None)):
                drawn[place] = other
                tried[place].add(other.rejected[0].content)
        if not drawn:
            continue
        verdicts.update(referee(list(drawn.values())))
        for place, pair in drawn.items():
            asked[place] += 1
            if _said(pair, verdicts).violation:
                settled[place] = pair
    given_up = {pairs[place].pair_id: n for place, n in asked.items() if settled[place] is pairs[place]}
    return Redrawn(settled, verdicts, given_up)


def _is_open(pair: Pair, verdicts: Mapping[Try, Verdict], policy: Policy) -> bool:
    chosen = verdicts.get((pair.move_id, None))
    lost = policy.require_accepted and chosen is not None and chosen.violation
    return not lost and _said(pair, verdicts).accepted


def _said(pair: Pair, verdicts: Mapping[Try, Verdict]) -> Verdict:
    return verdicts.get((pair.move_id, pair.rejected[0].content), Verdict("", ""))
