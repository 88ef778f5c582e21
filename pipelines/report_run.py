"""The report on a run: outcomes, clemscore, moves, tokens and faults, and every episode for the viewer.

Reads the journal once, an episode at a time, and keeps counts.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen import store
from pairgen.console import progress
from pairgen.errors import PairgenError
from pairgen.records import Episode, Message, Move
from pipelines import charts
from pipelines.blocks import Blocks
from pipelines.charts import BLUE, ORANGE, SKY, Series
from pipelines.page import Cover, code, figure, note, section, table, tiles, write_page
from pipelines.played import ModelPlayed, learner_of, played
from pipelines.played_page import played_parts, shown
from pipelines.report import Written
from pipelines.scoring import Result, result_of

FIELDS = (
    "id", "game", "experiment", "task", "sample", "seed", "outcome", "score", "source", "roles", "models", "players",
    "fault", "moves",
)  # fmt: skip
FILTERS = (
    ("game", "Game"),
    ("outcome", "Outcome"),
    ("roles", "Player"),
    ("models", "Model"),
    ("experiment", "Experiment"),
)


class Tally(NamedTuple):
    """What is counted while the episodes go by. `tokens` by game are of prompts, cached, completions, then replies."""

    results: list[tuple[str, Result]]
    tokens: dict[str, list[int]]
    finish: Counter[str]
    faults: Counter[tuple[str, str]]
    example: dict[tuple[str, str], str]
    violations: Counter[str]


def write_report(run: Path, out: Path) -> Written:
    """Write the report on the run in `run` to the file `out`. Raises PairgenError where it is none, or empty."""
    store.check_run(run)
    tally = Tally([], defaultdict(lambda: [0, 0, 0, 0]), Counter(), Counter(), {}, Counter())
    with tempfile.TemporaryDirectory(prefix="pairgen-report-") as folder:
        place = Path(folder) / "blocks"
        with place.open("wb") as file:
            blocks = Blocks(file)
            with progress(None, "reading episodes", "episode") as bar:
                for episode in store.stream_episodes(run):
                    count(tally, episode)
                    blocks.row(row_of(episode, blocks))
                    bar.update()
            blocks.close()
        if not blocks.rows:
            raise PairgenError(f"{run} holds no episode: play with pairgen rollout --out {run} --resume.")
        head = {"kind": "episodes", "rows": blocks.rows, "texts": blocks.texts, "fields": FIELDS, "filters": FILTERS}
        scores = played(tally.results)
        cover = _cover(run.resolve().name, tally, scores)
        write_page(out, cover, sections_of(tally, scores, _saved(run)), head, place)
    return Written("episodes", blocks.rows, blocks.characters, out.stat().st_size)


def row_of(episode: Episode, blocks: Blocks) -> list[Any]:
    """An episode as the page has it, its fields in the order of `FIELDS`."""
    e, name = episode, blocks.name
    players = [
        {"player": name(p.name), "role": name(p.role), "model": name(p.model), "learner": p.learner} for p in e.players
    ]
    fault = f"{e.fault.kind} after {e.fault.move} moves: {e.fault.message}" if e.fault else ""
    return [
        e.episode_id, name(e.game), name(e.experiment), e.task_id, e.sample, e.seed, name(e.outcome), e.main_score,
        name(e.source), sorted({p["role"] for p in players}), sorted({p["model"] for p in players}), players,
        blocks.text(fault), [_move(m, blocks) for m in e.moves],
    ]  # fmt: skip


def _move(m: Move, blocks: Blocks) -> dict[str, Any]:
    prompt = blocks.talk(m.prompt)
    return {
        "index": m.index, "player": blocks.name(m.player), "role": blocks.name(m.role), "prompt": prompt,
        "said": blocks.talk([Message("assistant", m.reply)], prompt), "raw": blocks.text(m.raw_reply),
        "violation": blocks.text(m.violation), "finish": blocks.name(m.finish_reason),
        "tokens": [m.prompt_tokens, m.completion_tokens],
    }  # fmt: skip


def count(tally: Tally, episode: Episode) -> None:
    tally.results.append((learner_of(episode), result_of(episode)))
    for m in episode.moves:
        tally.finish[m.finish_reason or "unknown"] += 1
        tally.violations[episode.game] += bool(m.violation)
        if m.completion_tokens >= 0:
            sums = tally.tokens[episode.game]
            for place, number in enumerate((m.prompt_tokens, m.cached_tokens, m.completion_tokens, 1)):
                sums[place] += max(0, number)
    if episode.fault:
        key = (episode.game, episode.fault.kind)
        tally.faults[key] += 1
        tally.example.setdefault(key, episode.fault.message)


def _saved(run: Path) -> dict[str, Any]:
    path = run / store.CONFIG
    found = store.read_json(path) if path.exists() else {}
    return found if isinstance(found, dict) else {}


def _cover(name: str, tally: Tally, scores: Sequence[ModelPlayed]) -> Cover:
    games = len({r.game for _, r in tally.results})
    models = ", ".join(s.model for s in scores)
    lead = f"{len(tally.results):,} episodes of {games} game{'s' * (games != 1)}, played by {models}."
    return Cover(f"Run: {name}", charts.clean(lead), f"Episodes ({len(tally.results):,})")


def sections_of(tally: Tally, scores: Sequence[ModelPlayed], saved: dict[str, Any]) -> list[str]:
    """The overview."""
    return [
        _facts(tally, scores),
        section("played", "Outcomes, clemscore and moves", "Scored as clem eval does.", *played_parts(scores)),
        _tokens(tally),
        _faults(tally),
        _made(saved),
    ]


def _facts(tally: Tally, scores: Sequence[ModelPlayed]) -> str:
    won = sum(r.outcome == "success" for _, r in tally.results)
    facts = [
        (f"{len(tally.results):,}", "episodes"),
        (f"{sum(r.moves for _, r in tally.results):,}", "moves of models"),
        (f"{won:,}", "episodes won"),
    ]
    facts += [(shown(s.clemscore), f"clemscore of {s.model}") for s in scores[:3]]
    return tiles([*facts, (f"{sum(tally.faults.values()):,}", "faults")])


def _tokens(tally: Tally) -> str:
    if not tally.tokens:
        return section(
            "tokens", "Tokens", "The episodes do not say how many tokens they took (imported results do not)."
        )
    parts = (
        Series("prompt, cached", SKY, "#222222"),
        Series("prompt, computed", BLUE),
        Series("completion", ORANGE, "#222222"),
    )
    rows = [
        (g, (cached, max(0, prompt - cached), done)) for g, (prompt, cached, done, _) in sorted(tally.tokens.items())
    ]
    numbers = [
        (g, n, prompt, cached, done, f"{done / n:.1f}")
        for g, (prompt, cached, done, n) in sorted(tally.tokens.items())
        if n
    ]
    header = ("game", "replies", "prompt tokens", "of them cached", "completion tokens", "a reply")
    ends = ", ".join(f"{n:,} {reason}" for reason, n in tally.finish.most_common())
    chart = charts.stacked("Tokens by game", "tokens", rows, parts)
    return section(
        "tokens", "Tokens", "", figure("chart-tokens", "Tokens by game", chart, table(header, numbers)),
        note(f"Why replies ended: {ends}."),
    )  # fmt: skip


def _faults(tally: Tally) -> str:
    rows = [(game, kind, n, tally.example[game, kind][:300]) for (game, kind), n in sorted(tally.faults.items())]
    parts = (
        [table(("game", "fault", "episodes", "such as"), rows)]
        if rows
        else [note("Every episode was played to its end.")]
    )
    broken = [(game, n) for game, n in sorted(tally.violations.items()) if n]
    if broken:
        parts.append(table(("game", "moves that the game master did not accept"), broken))
    return section("faults", "Faults and violations", "", *parts)


def _made(saved: dict[str, Any]) -> str:
    config = saved.get("config") or {}
    rows = [(key, value) for key, value in config.items() if value not in (None, "", [], {}, False)]
    named = [(key, _public(key, value)) for key, value in rows]
    return section(
        "made", "How it was made", "", code(f"pairgen {saved.get('command', '')}"), table(("option", "value"), named)
    )


def _public(key: str, value: object) -> str:
    """A value without the place that it has on this machine."""
    if isinstance(value, list):
        return ", ".join(_public(key, v) for v in value)
    text = str(value)
    return Path(text).name if text.startswith(("/", "~", ".")) else text
