"""What the report says of a run: how the games went, game by game, and every episode. Writes no file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pairgen import store
from pairgen.records import OUTCOMES, Episode, Move, Player
from pipelines import charts, page
from pipelines.charts import Series
from pipelines.page import Item, Section, Shape, Strings

PREVIEW = 90
SHAPE = Shape(
    kind="episodes", things="episodes", title="Episodes", labels={},
    filters=("game", "experiment", "outcome", "source"),
    heading=("game", "experiment", "task", "sample"), subtitle=("game", "experiment", "task"), outcome="outcome",
)  # fmt: skip


def subject(run: Path) -> tuple[str, Sequence[Section], Shape, Iterator[Item], int]:
    """The title, sections and items of a run; its journal is read twice and never held."""
    path = run / store.MANIFEST
    manifest: dict[str, Any] = store.read_json(path) if path.exists() else {}
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    moves: Counter[int] = Counter()
    tokens: Counter[int] = Counter()
    finished: Counter[str] = Counter()
    faults: Counter[tuple[str, str, str]] = Counter()
    scores: dict[str, list[float]] = defaultdict(list)
    for episode in store.stream_episodes(run):
        outcomes[episode.game][episode.outcome] += 1
        moves[len(episode.moves)] += 1
        tokens.update(move.completion_tokens for move in episode.moves if move.completion_tokens >= 0)
        finished.update(move.finish_reason or "not recorded" for move in episode.moves)
        if episode.fault:
            faults[episode.game, episode.fault.kind, episode.fault.message] += 1
        if episode.main_score is not None and episode.outcome in ("success", "lose"):
            scores[episode.game].append(episode.main_score)
    count = moves.total()
    sections = [
        Section("overview", "Overview", _overview(manifest, count)),
        Section("games", "Games", _games(manifest, outcomes, scores)),
        Section("moves", "Moves", _moves(moves, tokens, finished)),
        Section("faults", "Faults", _faults(manifest, faults)),
    ]
    return f"{count:,} episodes: {run.resolve().name}", sections, SHAPE, items(run), count


def items(run: Path) -> Iterator[Item]:
    """Every episode of the journal, in its order."""
    return map(_item, store.stream_episodes(run))


def _item(e: Episode) -> Item:
    said = next((move.reply for move in e.moves), e.fault.message if e.fault else "")
    filters = {
        "game": e.game, "experiment": e.experiment, "task": str(e.task_id), "outcome": e.outcome, "source": e.source,
        "sample": f"sample {e.sample}",
    }  # fmt: skip
    return Item(e.episode_id, " ".join(said.split())[:PREVIEW], filters, lambda strings: _body(e, strings))


def _body(e: Episode, strings: Strings) -> dict[str, Any]:
    facts = {
        "score": "" if e.main_score is None else f"{e.main_score:g}", "moves": str(len(e.moves)), "seed": str(e.seed),
        "fault": f"{e.fault.kind}: {e.fault.message}" if e.fault else "", "clemcore": e.clemcore_version,
    }  # fmt: skip
    talks = [(player, [move for move in e.moves if move.player == player.name]) for player in e.players]
    return {
        "facts": [[name, strings.place(text)] for name, text in facts.items()],
        "players": [_player(player, moves, strings) for player, moves in talks if moves],
    }


def _player(player: Player, moves: Sequence[Move], strings: Strings) -> dict[str, Any]:
    """What one player saw and said: the last prompt holds all before it, but for what a game leaves out later."""
    talk: list[list[Any]] = [[m.role, strings.place(m.content)] for m in moves[-1].prompt]
    talk.append(["assistant", strings.place(moves[-1].reply), strings.place(moves[-1].violation)])
    return {"name": player.name, "role": player.role, "model": player.model, "talk": talk}


def _overview(m: dict[str, Any], count: int) -> str:
    facts = [(f"{count:,}", "episodes")]
    for key, what in (("clemscore", "clemscore"), ("average_played", "% played"), ("average_quality", "quality score")):
        if isinstance(m.get(key), (int, float)):
            facts.append((f"{m[key]:.2f}", what))
    last = m.get("last_session") or {}
    if last.get("seconds"):
        facts.append((f"{last['episodes'] / last['seconds']:.2f}", "episodes/s in the last session"))
        facts.append((f"{last['completion_tokens'] / last['seconds']:,.0f}", "output tokens/s"))
        facts.append(
            (f"{last['cached_tokens'] / max(1, last['prompt_tokens']):.0%}", "of prompt tokens from the cache")
        )
    config = m.get("config") or {}
    told = [(name, str(value)) for name, value in config.items() if value not in (None, "", [], False)]
    shown = f"<details><summary>how it was played</summary>{page.table(('option', 'value'), told)}</details>"
    return f"{page.tiles(facts)}{shown if told else ''}"


def _games(m: dict[str, Any], outcomes: dict[str, Counter[str]], scores: dict[str, list[float]]) -> str:
    games = sorted(outcomes)
    series = [
        Series(outcome, tuple(float(outcomes[game][outcome]) for game in games))
        for outcome in OUTCOMES
        if any(outcomes[game][outcome] for game in games)
    ]
    chart = page.figure("chart-outcomes", "Outcomes", charts.bars("Outcomes by game", games, series, "episodes"))
    played, quality = m.get("played_by_game") or {}, m.get("quality_by_game") or {}
    names = [s.name for s in series]
    rows = [
        (game, *(outcomes[game][name] for name in names), _told(played.get(game)), _told(quality.get(game)))
        for game in games
    ]
    everything = sorted(value for values in scores.values() for value in values)
    edges = [float(i) for i in range(0, 101, 10)]
    main = charts.histogram("Main scores", edges, [Series("episodes", charts.binned(everything, edges))],
                            "main score of played episodes", "episodes")  # fmt: skip
    figures = chart + (page.figure("chart-scores", "Scores", main) if everything else "")
    return f'<div class="charts">{figures}</div>{page.table(("game", *names, "% played", "quality"), rows)}'


def _told(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, (int, float)) else "none"


def _moves(moves: Counter[int], tokens: Counter[int], finished: Counter[str]) -> str:
    figures = [("chart-moves", "Moves per episode", "moves of model players", "episodes", moves)]
    if tokens:
        figures.append(("chart-tokens", "Length of replies", "tokens", "moves", tokens))
    drawn = "".join(
        page.figure(name, title, _counted(title, counts, unit, things)) for name, title, unit, things, counts in figures
    )
    ended = page.table(("how the model ended", "moves"), finished.most_common())
    return f'<div class="charts">{drawn}</div>{ended}'


def _counted(title: str, counts: Counter[int], unit: str, things: str) -> str:
    """A histogram of numbers that were counted already."""
    edges = charts.bin_edges([float(value) for value in counts])
    values = [0.0] * (len(edges) - 1)
    for value, times in counts.items():
        place = charts.binned([float(value)], edges).index(1.0)
        values[place] += times
    return charts.histogram(title, edges, [Series(things, tuple(values))], unit, things)


def _faults(m: dict[str, Any], faults: Counter[tuple[str, str, str]]) -> str:
    fixes = {(f["game"], f["kind"]): f["fix"] for f in m.get("faults") or [] if isinstance(f, dict) and "fix" in f}
    rows = [(*name, times, fixes.get(name[:2], "")) for name, times in faults.most_common()]
    left = (m.get("evaluation") or {}).get("left_out")
    told = f"<p>{left:,} evaluation instances were not played.</p>" if left else ""
    return told + (page.table(("game", "kind", "message", "episodes", "fix"), rows) if rows else "<p>None.</p>")
