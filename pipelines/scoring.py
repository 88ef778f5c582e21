"""Outcomes, moves and clemscore of played episodes. Pure: episodes in, numbers out.

The numbers are those of `clem eval`: a game's share of played episodes and its mean main score, each rounded to two
digits, then their means over games, rounded again, and clemscore = played / 100 * quality.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pairgen.console import table
from pairgen.records import OUTCOMES, Episode

SCORED = ("success", "lose", "aborted")


class Result(NamedTuple):
    """How one episode ended: what scoring needs of it."""

    game: str
    source: str
    outcome: str
    main_score: float | None
    moves: int


def result_of(episode: Episode) -> Result:
    return Result(episode.game, episode.source, episode.outcome, episode.main_score, len(episode.moves))


class GameScore(NamedTuple):
    """One game: how its episodes ended, how many moves models made, % played and mean main score (None: no episode)."""

    game: str
    outcomes: dict[str, int]
    model_moves: int
    played: float | None
    quality: float | None

    @property
    def episodes(self) -> int:
        return sum(self.outcomes.values())


class Scores(NamedTuple):
    """All games in the order of their names, and the means over games; None where no episode was scored."""

    games: tuple[GameScore, ...]
    average_played: float | None
    average_quality: float | None
    clemscore: float | None


def score(results: Iterable[Result]) -> Scores:
    """The scores of some episodes.

    Only episodes that the game's scorer has judged count for % played. Whatever has a main score counts for quality (an
    aborted episode has none, by clembench's rules); a game without any is left out of the mean, as `clem eval` does.
    """
    by_game: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_game[result.game].append(result)
    games = tuple(_score_game(game, by_game[game]) for game in sorted(by_game))
    played = _rounded(_mean(g.played for g in games))
    quality = _rounded(_mean(g.quality for g in games))
    both = None if played is None or quality is None else _rounded(played / 100 * quality)
    return Scores(games, played, quality, both)


def _score_game(game: str, results: Sequence[Result]) -> GameScore:
    counts = Counter(r.outcome for r in results)
    share = _mean(float(r.outcome != "aborted") for r in results if r.outcome in SCORED)
    return GameScore(
        game=game,
        outcomes={outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]},
        model_moves=sum(r.moves for r in results),
        played=None if share is None else _rounded(share * 100),
        quality=_rounded(_mean(r.main_score for r in results)),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there, None when none is; summed as pandas does (Kahan), to its last bit."""
    total = lost = 0.0
    count = 0
    for value in values:
        if value is not None:
            gain = value - lost
            larger = total + gain
            lost = (larger - total) - gain
            total, count = larger, count + 1
    return total / count if count else None


def _rounded(value: float | None) -> float | None:
    """To two digits as numpy does it: scaled, rounded half to even, scaled back."""
    return None if value is None else round(value * 100) / 100


def totals(episodes: Iterable[Episode]) -> dict[str, Any]:
    """The scores of episodes as a manifest and a command's summary have them; takes them in one at a time."""
    return summary(score(map(result_of, episodes)))


def summary(scores: Scores) -> dict[str, Any]:
    """Scores as plain numbers by game; `played` counts the episodes that did not end in an error."""
    episodes = sum(g.episodes for g in scores.games)
    return {
        "episodes": episodes,
        "played": episodes - sum(g.outcomes.get("error", 0) for g in scores.games),
        "outcomes": {g.game: g.outcomes for g in scores.games},
        "model_moves": {g.game: g.model_moves for g in scores.games},
        "played_by_game": {g.game: g.played for g in scores.games},
        "quality_by_game": {g.game: g.quality for g in scores.games},
        "average_played": scores.average_played,
        "average_quality": scores.average_quality,
        "clemscore": scores.clemscore,
    }


HEADER = ("game", "episodes", "success", "lose", "aborted", "other", "moves", "% played", "main score")


def table_lines(numbers: Mapping[str, Any]) -> list[str]:
    """A `summary` for a person: one line a game (`other` ended in an error or has no score), then the clemscore."""
    rows = [
        (
            game,
            sum(outcomes.values()),
            *(outcomes.get(outcome, 0) for outcome in SCORED),
            sum(n for outcome, n in outcomes.items() if outcome not in SCORED),
            numbers["model_moves"][game],
            _shown(numbers["played_by_game"][game]),
            _shown(numbers["quality_by_game"][game]),
        )
        for game, outcomes in numbers["outcomes"].items()
    ]
    means = [_shown(numbers[name]) for name in ("average_played", "average_quality", "clemscore")]
    return [*table(rows, HEADER), f"played {means[0]} %, quality {means[1]}, clemscore {means[2]}"]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
