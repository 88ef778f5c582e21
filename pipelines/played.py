"""How models did in games: outcomes, clemscore and moves per episode, a model at a time. Pure records of the manifest.

Scores of different models never mix: `clem eval` gives each its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pairgen.records import Episode
from pipelines.lengths import five_of
from pipelines.scoring import Result, result_of, score


@dataclass(frozen=True, slots=True)
class Ended:
    """So many episodes ended so."""

    outcome: str
    episodes: int


@dataclass(frozen=True, slots=True)
class GamePlayed:
    """One game: outcomes, % played and mean main score (None: no episode); `moves` is the spread of moves an episode
    (least, quartiles, most)."""

    game: str
    outcomes: tuple[Ended, ...]
    moves: tuple[int, ...]
    played: float | None
    quality: float | None

    @property
    def episodes(self) -> int:
        return sum(e.episodes for e in self.outcomes)


@dataclass(frozen=True, slots=True)
class ModelPlayed:
    """All games that one model played, and its means over them."""

    model: str
    games: tuple[GamePlayed, ...]
    average_played: float | None
    average_quality: float | None
    clemscore: float | None


def played_of(episodes: Iterable[Episode]) -> tuple[ModelPlayed, ...]:
    return played((learner_of(e), result_of(e)) for e in episodes)


def learner_of(episode: Episode) -> str:
    """The model whose play this is; partners and what a game scripts do not count."""
    names = {p.model for p in episode.players if p.learner and not p.programmatic}
    return " and ".join(sorted(names)) or "no model"


def played(results: Iterable[tuple[str, Result]]) -> tuple[ModelPlayed, ...]:
    """What each model (by name) did, models and games in the order of their names."""
    by_model: dict[str, list[Result]] = defaultdict(list)
    for model, result in results:
        by_model[model].append(result)
    return tuple(_one(model, by_model[model]) for model in sorted(by_model))


def _one(model: str, results: list[Result]) -> ModelPlayed:
    moves: dict[str, Counter[int]] = defaultdict(Counter)
    for result in results:
        moves[result.game][result.moves] += 1
    scores = score(results)
    games = tuple(
        GamePlayed(
            g.game, tuple(Ended(outcome, n) for outcome, n in g.outcomes.items()),
            tuple(five_of(list(moves[g.game].items()))), g.played, g.quality,
        )
        for g in scores.games
    )  # fmt: skip
    return ModelPlayed(model, games, scores.average_played, scores.average_quality, scores.clemscore)
