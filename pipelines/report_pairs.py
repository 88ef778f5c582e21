"""What the report says of a pair set, read off its manifest and its rows. Writes no file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairgen.console import progress
from pipelines import card, charts, page
from pipelines.charts import Series
from pipelines.funnel import meaning
from pipelines.manifest import Judged, Manifest
from pipelines.page import Item, Section, Shape, Strings
from pipelines.quality_text import audit_rows, remarks

if TYPE_CHECKING:
    import polars as pl

    from pipelines.tokens import Tokenizer

VERDICTS = ("violation", "accepted", "unverifiable")
PREVIEW = 90
SHAPE = Shape(
    kind="pairs", things="pairs", title="Pairs",
    labels={"rejected_verdict": "verdict on rejected", "chosen_verdict": "verdict on chosen"},
    filters=("game", "role", "strategy", "rejected_verdict", "chosen_verdict", "split"),
    heading=("game", "experiment", "task", "role", "strategy", "split"),
    subtitle=("game", "strategy"), outcome="said",
)  # fmt: skip
ORDER = ("game", "experiment", "task_id", "sample", "player", "move_index", "strategy", "pair_id")
"""Pairs of one episode stand together: their prompts share most of their texts."""


class Sizes(NamedTuple):
    """Characters of each side of each pair, and which move of its episode a pair is (from 0)."""

    row: list[int]
    chosen: list[int]
    rejected: list[int]
    move: list[int]


def subject(
    folder: Path, manifest: Manifest, tokenizer: Tokenizer | None = None
) -> tuple[str, Sequence[Section], Shape, Iterator[Item], int]:
    """The title, sections and items of a pair set; with a `tokenizer`, its rows are counted in tokens, too."""
    frame = _read(folder)
    tokens = _tokens(frame, tokenizer) if tokenizer else []
    sizes = _sizes(frame)
    sections = [
        Section("overview", "Overview", _overview(manifest)),
        Section("funnel", "Funnel", _funnel(manifest)),
        Section("verdicts", "What the game masters say", _verdicts(manifest, frame)),
        Section("lengths", "Lengths", _lengths(manifest, sizes, tokens)),
        Section("shortcuts", "Shortcuts", _shortcuts(manifest)),
        Section("kept-out", "Kept out", _kept_out(manifest)),
    ]
    title = f"{manifest.pairs:,} preference pairs: {folder.resolve().name}"
    return title, sections, SHAPE, items(frame), frame.height


def _read(folder: Path) -> pl.DataFrame:
    import polars as pl

    from pairgen.records import Pair, polars_schema

    there = [path for side in ("train", "test") if (path := folder / "full" / f"{side}.parquet").exists()]
    if not there:
        return pl.DataFrame(schema=polars_schema(Pair))
    # The file's own schema may name lists' items otherwise than polars does: columns are put in order by name.
    return pl.concat([pl.read_parquet(path) for path in there]).sort(ORDER)


def _sizes(frame: pl.DataFrame) -> Sizes:
    import polars as pl

    def characters(side: str) -> pl.Expr:
        return pl.col(side).list.eval(pl.element().struct.field("content").str.len_chars()).list.sum().alias(side)

    counted = frame.select(*(characters(side) for side in ("prompt", "chosen", "rejected")), "move_index")
    row = counted.select(pl.col("prompt") + pl.max_horizontal("chosen", "rejected")).to_series()
    return Sizes(row.to_list(), *(counted[name].to_list() for name in ("chosen", "rejected", "move_index")))


def _tokens(frame: pl.DataFrame, tokenizer: Tokenizer) -> list[int]:
    """The tokens of each row's prompt and longer side, as a trainer counts them."""
    from pipelines.tokens import BATCH, count

    sides = frame.select("prompt", "chosen", "rejected")
    with progress(frame.height, "counting tokens", "pair") as bar:
        counted = []
        for start in range(0, frame.height, BATCH):
            found = count(list(sides.slice(start, BATCH).iter_rows()), tokenizer)
            counted += [counts.longest for counts in found]
            bar.update(len(found))
    return counted


def items(frame: pl.DataFrame) -> Iterator[Item]:
    """Every pair, block by block from the frame."""
    for start in range(0, frame.height, page.BLOCK):
        for row in frame.slice(start, page.BLOCK).iter_rows(named=True):
            yield _item(row)


def _item(row: dict[str, Any]) -> Item:
    said = "\n".join(message["content"] for message in row["chosen"])
    filters = {
        **{name: str(row[name] or "") for name in ("game", "role", "strategy", "split", "experiment")},
        "task": str(row["task_id"]), "said": _kind(row["rejected_verdict"]),
        **{name: row[name] for name in ("rejected_verdict", "chosen_verdict")},
    }  # fmt: skip
    return Item(row["pair_id"], " ".join(said.split())[:PREVIEW], filters, lambda strings: _body(row, strings))


def _body(row: dict[str, Any], strings: Strings) -> dict[str, Any]:
    def messages(side: str) -> list[list[Any]]:
        return [[message["role"], strings.place(message["content"])] for message in row[side]]

    facts = {
        "made": row["detail"], "player": row["player"], "model": row["model"], "move": str(row["move_index"]),
        "sample": str(row["sample"]), "episode": row["episode_id"],
    }  # fmt: skip
    return {
        **{side: messages(side) for side in ("prompt", "chosen", "rejected")},
        "cv": strings.place(row["chosen_verdict"]), "cr": strings.place(row["chosen_reason"]),
        "rv": strings.place(row["rejected_verdict"]), "rr": strings.place(row["rejected_reason"]),
        "facts": [[name, strings.place(text)] for name, text in facts.items()],
    }  # fmt: skip


def _overview(m: Manifest) -> str:
    accepted, judged = _share(m, "chosen", "accepted")
    broken, of = _share(m, "rejected", "violation")
    length = next((s for s in m.quality.shortcuts if s.rule == "longer" and not s.strategy), None)
    facts = [
        (f"{m.pairs:,}", f"pairs: {m.train:,} train, {m.test:,} test"),
        (str(len({c.game for c in m.table})), "games"),
        (_percent(accepted, judged), f"of {judged:,} judged chosen sides accepted"),
        (_percent(broken, of), f"of {of:,} judged rejected sides break a rule"),
        *([(f"{length.train:.0%}", f"told apart by length alone ({length.tells})")] if length else []),
        (f"{m.evaluation.removed_pairs:,}", "pairs of evaluation instances taken out"),
    ]
    runs = [
        (r.name, r.model or "unknown", r.revision, r.episodes, "" if r.temperature < 0 else f"{r.temperature:g}")
        for r in m.runs
    ]
    played = f"<p>Runs that the moves come from:</p>{page.table(RUN_HEADER, runs)}" if runs else ""
    outcomes = ", ".join(f"{o.episodes:,} {o.outcome}" for o in m.outcomes)
    told = f"<p>Outcomes of their episodes: {escape(outcomes)}. Games, clemscore and moves per episode are in the "
    told += "report of each run (<code>pairgen report RUN</code>).</p>"
    by = (
        f"<p>Moves of {escape(', '.join(m.models) or 'an unknown model')}; made by <code>{escape(m.command)}</code></p>"
    )
    return f"{page.tiles(facts)}{by}{played}{told if outcomes else ''}"


RUN_HEADER = ("run", "model", "revision", "episodes", "temperature")


def _share(m: Manifest, side: str, verdict: str) -> tuple[int, int]:
    counts = Counter[str]()
    for v in m.verdicts:
        if v.side == side:
            counts[_kind(v.verdict)] += v.pairs
    return counts[verdict], counts["accepted"] + counts["violation"]


def _kind(verdict: str) -> str:
    return next((word for word in VERDICTS if verdict.startswith(word)), "unverifiable")


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def _funnel(m: Manifest) -> str:
    rows = [f"{s.stage} ({s.unit})" for s in m.funnel]
    series = [
        Series("kept", tuple(float(s.kept) for s in m.funnel)),
        Series("left out", tuple(float(s.entered - s.kept) for s in m.funnel)),
    ]
    told = [(s.stage, r.count, r.reason, meaning(r.reason)) for s in m.funnel for r in s.dropped]
    chart = page.figure("chart-funnel", "What each stage lets through", charts.bars("Funnel", rows, series, "items"))
    return f'<div class="charts">{chart}</div>{page.table(("stage", "left out", "reason", "meaning"), told)}'


def _verdicts(m: Manifest, frame: pl.DataFrame) -> str:
    judged = m.judged or _judged(frame)
    strategies = sorted({j.strategy for j in judged})
    counts = Counter[tuple[str, str]]()
    for j in judged:
        counts[j.strategy, _kind(j.verdict)] += j.pairs
    series = [Series(v, tuple(float(counts[s, v]) for s in strategies)) for v in VERDICTS]
    cells = Counter[tuple[str, str, str]]()
    for j in judged:
        cells[j.game, j.strategy, _kind(j.verdict)] += j.pairs
    rows = [
        (game, strategy, *(cells[game, strategy, v] for v in VERDICTS))
        for game, strategy in sorted({(j.game, j.strategy) for j in judged})
    ]
    chart = page.figure("chart-verdicts", "Rejected side, by strategy",
                        charts.bars("Verdicts on the rejected side", strategies, series, "pairs"))  # fmt: skip
    both = [(v.side, v.verdict, v.pairs) for v in m.verdicts]
    return (
        f'<div class="charts">{chart}<div>{page.table(("side", "verdict", "pairs"), both)}</div></div>'
        f"<p>Rejected side, by game and strategy:</p>{page.table(('game', 'strategy', *VERDICTS), rows)}"
    )


def _judged(frame: pl.DataFrame) -> tuple[Judged, ...]:
    """For sets of releases whose manifest does not count it."""
    rows = frame.select("game", "strategy", "rejected_verdict").iter_rows()
    counts = Counter((game, strategy, _kind(verdict)) for game, strategy, verdict in rows)
    return tuple(Judged(*name, counts[name]) for name in sorted(counts))


def _lengths(m: Manifest, sizes: Sizes, counted: Sequence[int]) -> str:
    edges = charts.bin_edges([*sizes.chosen, *sizes.rejected])
    series = [
        Series("chosen", charts.binned(sizes.chosen, edges)),
        Series("rejected", charts.binned(sizes.rejected, edges)),
    ]
    sides = charts.histogram("Lengths of both sides", edges, series, "characters", "pairs")
    edges = charts.bin_edges(sizes.row)
    whole = charts.histogram("Length of a row", edges, [Series("pairs", charts.binned(sizes.row, edges))],
                             "characters of prompt and longer side", "pairs")  # fmt: skip
    edges = [float(i) for i in range(max(sizes.move, default=0) + 2)]
    moves = charts.histogram("Which move", edges, [Series("pairs", charts.binned(sizes.move, edges))],
                             "move of the episode (0: its first)", "pairs")  # fmt: skip
    tokens = m.quality.tokens
    in_tokens = ""
    if counted:
        edges, limit = charts.bin_edges(counted), card.max_length_of(m)
        rows_of = [Series("pairs", charts.binned(counted, edges))]
        mark = (float(limit), f"max_length {limit:,}")
        chart = charts.histogram("Tokens of a row", edges, rows_of, "tokens of prompt and longer side", "pairs", mark)
        in_tokens = page.figure("chart-tokens", "Whole rows in tokens, against max_length", chart)
    columns = [*m.lengths, *(tokens.lengths if tokens else ())]
    names = [n.column for n in m.lengths] + [f"{n.column} (tokens)" for n in (tokens.lengths if tokens else ())]
    rows = [(name, n.median, n.p90, n.max) for name, n in zip(names, columns, strict=True)]
    told = [] if counted else ["For lengths in tokens: pairgen report --tokenizer MODEL."]
    told += remarks(m.quality)
    return (
        '<div class="charts">'
        + page.figure("chart-lengths", "Chosen and rejected", sides)
        + page.figure("chart-rows", "Whole rows", whole)
        + in_tokens
        + page.figure("chart-moves", "Where in their episodes the pairs are", moves)
        + f"</div>{page.table(('characters of', 'median', '90 %', 'longest'), rows)}"
        + "".join(f"<p>{escape(line)}</p>" for line in told)
    )


def _shortcuts(m: Manifest) -> str:
    if not m.quality.shortcuts:
        return "<p>The set was not audited.</p>"
    header = ("strategy", "rule", "the rejected side", "train", "test")
    strings = "".join(
        f"<p>{escape(s.tells)}:</p><ul>{''.join(f'<li><code>{escape(text)}</code></li>' for text in s.found)}</ul>"
        for s in m.quality.shortcuts
        if s.found and not s.strategy
    )
    return (
        '<p class="soft">How often a rule that reads no prompt finds the rejected side; a coin is right in 50 %.</p>'
        f"{page.table(header, audit_rows(m.quality.shortcuts))}{strings}"
    )


def _kept_out(m: Manifest) -> str:
    e = m.evaluation
    notes = "".join(f"<p>{escape(note)}</p>" for note in e.notes)
    if not e.sources:
        return f"<p>Not checked: the set may hold evaluation instances.</p>{notes}"
    sources = page.table(
        ("source", "kind", "revision", "keys", "contents"),
        [(s.name, s.kind, s.revision, s.keys, s.contents) for s in e.sources],
    )
    nets = Counter[str]()
    for r in e.removed:
        nets[r.net] += r.pairs
    caught = page.table(("net", "meaning", "pairs"), [(net, meaning(net), nets[net]) for net in sorted(nets)])
    return f"{sources}{caught if nets else '<p>No pair was of an evaluation instance.</p>'}{notes}"
