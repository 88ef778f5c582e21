"""Outcomes, clemscore and moves per episode as charts and tables: what both reports show. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pairgen.records import OUTCOMES
from pipelines import charts
from pipelines.charts import BLUE, GREEN, GREY, ORANGE, RED, Series
from pipelines.lengths import Five
from pipelines.page import columns, figure, note, table
from pipelines.played import ModelPlayed

ENDS = {
    "success": Series("success", BLUE), "lose": Series("lose", ORANGE, "#222222"),
    "aborted": Series("aborted", RED, "#000000"), "error": Series("error", "#cc79a7", "#222222"),
    "unscored": Series("unscored", GREY, "#222222"),
}  # fmt: skip


def played_parts(played: Sequence[ModelPlayed]) -> list[str]:
    """For each model its outcomes and moves by game, and its scores."""
    return [part for number, model in enumerate(played) for part in _model(model, number)]


def _model(model: ModelPlayed, number: int) -> list[str]:
    counts = [(g.game, {e.outcome: e.episodes for e in g.outcomes}) for g in model.games]
    met = [o for o in OUTCOMES if any(o in c for _, c in counts)]
    title = f"Outcomes of {model.model}"
    outcomes = charts.stacked(
        title, "episodes", [(game, [c.get(o, 0) for o in met]) for game, c in counts], [ENDS[o] for o in met]
    )
    moves = charts.ranges(
        f"Moves per episode of {model.model}", "moves of models per episode",
        [(g.game, Five(*g.moves)) for g in model.games], Series("moves", GREEN),
    )  # fmt: skip
    rows = [
        (g.game, g.episodes, *(c.get(o, 0) for o in met), shown(g.played), shown(g.quality), g.moves[2], g.moves[4])
        for g, (_, c) in zip(model.games, counts, strict=True)
    ]
    header = ("game", "episodes", *met, "% played", "main score", "moves (median)", "moves (most)")
    return [
        columns(
            figure(f"chart-outcomes-{number}", title, outcomes),
            figure(f"chart-moves-{number}", f"Moves per episode of {model.model}", moves),
        ),
        table(header, rows),
        note(
            f"{model.model}: played {shown(model.average_played)} %, quality {shown(model.average_quality)}, "
            f"clemscore {shown(model.clemscore)}."
        ),
    ]


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
