"""What a rollout plays, and in which order. Pure: knows no game, no engine and no file."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pairgen.records import EpisodeKey, content_id


class Work(NamedTuple):
    """One episode to play, with its own seed and the folder (below `clem/`) of its clemcore results."""

    key: EpisodeKey
    seed: int
    folder: str

    @property
    def id(self) -> str:
        return "/".join(map(str, self.key))


def label_of(model: str) -> str:
    """A model's name as clemcore's folders take it: the last part of a path or Hub id (`--` separates two players)."""
    last = [part for part in re.split(r"[/\\]", model) if part][-1:] or ["model"]
    return re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]", "_", last[0]))


def make_plan(games: Sequence[dict[str, Any]], *, limit: int, samples: int, seed: int, label: str) -> list[Work]:
    """Every episode of every game; `limit` instances a game (0: all), taken from its experiments in turn."""
    plan = []
    for game in games:
        for experiment, task_id, _ in _limited(game["instances"], limit):
            for sample in range(samples):
                key = EpisodeKey(game["game"], experiment, task_id, sample)
                folder = label if samples == 1 or sample == 0 else f"{label}.sample{sample}"
                plan.append(Work(key, int(content_id("seed", seed, key), 16) % 2**31, folder))
    return plan


def _limited(instances: Sequence[Any], limit: int) -> Iterable[Any]:
    by_experiment: dict[str, list[Any]] = defaultdict(list)
    for instance in instances:
        by_experiment[instance[0]].append(instance)
    longest = max(map(len, by_experiment.values()), default=0)
    in_turn = [rows[i] for i in range(longest) for rows in by_experiment.values() if i < len(rows)]
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
