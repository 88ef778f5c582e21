"""What a rollout plays, and in which order. Pure: knows no game, no engine and no file."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pairgen.records import EpisodeKey, content_id


class Work(NamedTuple):
    """One episode to play, with its own seed and the folder (below `clem/`) of its clemcore results.

    With a partner, `learner` is the number (from 0) of the model player that is the learner's, and `duo` the folder
    where both sit at the table; where the game has only one model player it is the learner, and the folder is `folder`.
    """

    key: EpisodeKey
    seed: int
    folder: str
    learner: int = 0
    duo: str = ""

    @property
    def id(self) -> str:
        return "/".join(map(str, self.key))


def label_of(model: str) -> str:
    """A model's name as clemcore's folders take it: the last part of a path or Hub id (`--` separates two players)."""
    last = [part for part in re.split(r"[/\\]", model) if part][-1:] or ["model"]
    return re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]", "_", last[0]))


SIDES = {"first": 0, "second": 1, "alternate": None}
"""Which model player is the learner's, by number; None: each in turn."""


def make_plan(
    games: Sequence[dict[str, Any]],
    *,
    limit: int,
    samples: int,
    seed: int,
    label: str,
    partner: str = "",
    learner: str = "alternate",
) -> list[Work]:
    """Every episode of every game; `limit` instances a game (0: all), taken from its experiments in turn.

    With a `partner`, `learner` (first, second or alternate) says which model player is the learner's.
    """
    plan = []
    for game in games:
        players = int(game["spec"]["players"]) if partner else 1
        for turn, (experiment, task_id, _) in _limited(game["instances"], limit):
            for sample in range(samples):
                key = EpisodeKey(game["game"], experiment, task_id, sample)
                work = Work(key, int(content_id("seed", seed, key), 16) % 2**31, _sampled(label, sample))
                plan.append(work if players == 1 else _seated(work, players, turn, label, partner, SIDES[learner]))
    return plan


def _seated(work: Work, players: int, turn: int, label: str, partner: str, side: int | None) -> Work:
    """The learner on its side. Samples that change sides are one play from each, in the folder of that side."""
    sample = work.key.sample
    at = (turn + sample) % players if side is None else side % players
    names = [label if player == at else partner for player in range(players)]
    play = sample // players if side is None else sample
    return work._replace(learner=at, duo=_sampled("--".join(names), play))


def _sampled(folder: str, sample: int) -> str:
    return f"{folder}.sample{sample}" if sample else folder


def _limited(instances: Sequence[Any], limit: int) -> Sequence[tuple[int, Any]]:
    """The instances, each with its turn: its number within its experiment, experiments being out of step."""
    by_experiment: dict[str, list[Any]] = defaultdict(list)
    for instance in instances:
        by_experiment[instance[0]].append(instance)
    longest = max(map(len, by_experiment.values()), default=0)
    experiments = list(enumerate(by_experiment.values()))
    in_turn = [(i + n, rows[i]) for i in range(longest) for n, rows in experiments if i < len(rows)]
    return in_turn[:limit] if limit else in_turn


class Queue:
    """Hands out the work, games with the longest episodes first (as far as seen; unseen games in turn before all)."""

    def __init__(self, plan: Iterable[Work]):
        self._waiting: dict[str, deque[Work]] = defaultdict(deque)
        for work in plan:
            self._waiting[work.key.game].append(work)
        self._moves: dict[str, tuple[int, int]] = {}
        self._given: dict[str, int] = defaultdict(int)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def next(self) -> Work | None:
        """The next episode to begin, or None when all were given out."""
        if not self._waiting:
            return None
        game = min(self._waiting, key=self._order)
        work = self._waiting[game].popleft()
        if not self._waiting[game]:
            del self._waiting[game]
        self._given[game] += 1
        return work

    def learn(self, game: str, moves: int) -> None:
        """An episode of `game` ended after so many moves."""
        episodes, total = self._moves.get(game, (0, 0))
        self._moves[game] = (episodes + 1, total + moves)

    def _order(self, game: str) -> tuple[float, int]:
        if game not in self._moves:
            return (float("-inf"), self._given[game])
        episodes, total = self._moves[game]
        return (-total / episodes, self._given[game])
