"""The report on a pair set: what the manifest says, as charts and tables, and every pair for the viewer.

Reads the set once, some rows at a time, and keeps counts.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pairgen.console import progress
from pairgen.errors import PairgenError
from pairgen.records import Messages, Pair
from pairgen.store import stream_table
from pipelines import charts, pairset
from pipelines.blocks import Blocks
from pipelines.charts import BLUE, GREY, ORANGE, RED, Mark, Series
from pipelines.funnel import meaning
from pipelines.manifest import Manifest
from pipelines.page import Cover, code, columns, figure, folded, note, section, table, tiles, write_page
from pipelines.played import ModelPlayed
from pipelines.played_page import played_parts
from pipelines.quality_text import audit_rows, remarks

CHOSEN, REJECTED = Series("chosen", BLUE), Series("rejected", RED)
VERDICTS = (Series("accepted", BLUE), Series("violation", ORANGE, "#222222"), Series("unverifiable", GREY, "#222222"))
FIELDS = (
    "id", "game", "experiment", "task", "sample", "index", "player", "role", "strategy", "detail", "split", "model",
    "outcome", "score", "chosen_verdict", "chosen_reason", "rejected_verdict", "rejected_reason", "prompt", "chosen",
    "rejected",
)  # fmt: skip
FILTERS = (
    ("game", "Game"), ("role", "Role"), ("strategy", "Strategy"), ("rejected_verdict", "Rejected"),
    ("chosen_verdict", "Chosen"), ("split", "Split"),
)  # fmt: skip


class Tally(NamedTuple):
    """What is counted while the pairs go by; lengths are characters."""

    lengths: dict[str, Counter[int]]
    verdicts: Counter[tuple[str, str, str, str]]
    turns: Counter[int]


class Written(NamedTuple):
    """What a report holds; `characters` are those of texts that differ, `size` bytes of the file."""

    kind: str
    rows: int
    characters: int
    size: int


def write_report(pairs: Path, out: Path) -> Written:
    """Write the report on the pair set in `pairs` to the file `out`. Raises PairgenError where it is none."""
    manifest = pairset.read_manifest(pairs)
    if not manifest.pairs:
        raise PairgenError(f"{pairs} holds no pairs: make some with pairgen corrupt; its dropped.parquet says why.")
    tally = Tally({"chosen": Counter(), "rejected": Counter()}, Counter(), Counter())
    with tempfile.TemporaryDirectory(prefix="pairgen-report-") as folder:
        place = Path(folder) / "blocks"
        with place.open("wb") as file:
            blocks = Blocks(file)
            with progress(manifest.pairs, "reading pairs", "pair") as bar:
                for pair in _stream(pairs):
                    count(tally, pair)
                    blocks.row(row_of(pair, blocks))
                    bar.update()
            blocks.close()
        name = pairs.resolve().name
        head = {"kind": "pairs", "rows": blocks.rows, "texts": blocks.texts, "fields": FIELDS, "filters": FILTERS}
        write_page(out, _cover(name, manifest), sections_of(manifest, tally), head, place)
    return Written("pairs", blocks.rows, blocks.characters, out.stat().st_size)


def _stream(pairs: Path) -> Iterator[Pair]:
    for side in ("train", "test"):
        path = pairs / "full" / f"{side}.parquet"
        if path.exists():
            yield from stream_table(path, Pair)


def row_of(pair: Pair, blocks: Blocks) -> list[Any]:
    """A pair as the page has it, its fields in the order of `FIELDS`: names, texts and talk as their numbers."""
    p, name = pair, blocks.name
    prompt = blocks.talk(p.prompt)
    return [
        p.pair_id, name(p.game), name(p.experiment), p.task_id, p.sample, p.move_index, name(p.player), name(p.role),
        name(p.strategy), name(p.detail), name(p.split), name(p.model), name(p.outcome), p.main_score,
        name(p.chosen_verdict), blocks.text(p.chosen_reason), name(p.rejected_verdict), blocks.text(p.rejected_reason),
        prompt, blocks.talk(p.chosen, prompt), blocks.talk(p.rejected, prompt),
    ]  # fmt: skip


def count(tally: Tally, pair: Pair) -> None:
    tally.lengths["chosen"][_size(pair.chosen)] += 1
    tally.lengths["rejected"][_size(pair.rejected)] += 1
    tally.turns[pair.move_index + 1] += 1
    tally.verdicts[pair.strategy, pair.game, "chosen", pair.chosen_verdict] += 1
    tally.verdicts[pair.strategy, pair.game, "rejected", pair.rejected_verdict] += 1


def _size(messages: Messages) -> int:
    return sum(len(m.content) for m in messages)


def _cover(name: str, m: Manifest) -> Cover:
    games = len({c.game for c in m.table})
    source = (
        f"read from the file {m.imported}"
        if m.imported
        else "made from the play of " + (", ".join(m.models) or "a model")
    )
    lead = f"{m.pairs:,} preference pairs of {games} game{'s' * (games != 1)}, {source}."
    return Cover(f"Pairs: {name}", charts.clean(lead), f"Pairs ({m.pairs:,})")


def sections_of(m: Manifest, tally: Tally) -> list[str]:
    """The overview."""
    return [
        _facts(m, tally),
        _funnel(m),
        _played(m.played, m, tally),
        _lengths(tally),
        _verdicts(tally),
        _audit(m),
        _tokens(m, tally),
        _made(m),
    ]


def _facts(m: Manifest, tally: Tally) -> str:
    accepted = _share(tally, "chosen", "accepted")
    violated = _share(tally, "rejected", "violation")
    return tiles(
        [
            (f"{m.pairs:,}", f"pairs: {m.train:,} train, {m.test:,} test"),
            (str(len({c.game for c in m.table})), "games"), (str(len({c.strategy for c in m.table})), "strategies"),
            (accepted, "of judged chosen sides are accepted"),
            (violated, "of judged rejected sides break a rule"),
            (f"{m.longer_rejected:.1%}", "of rejected sides are the longer"),
        ]
    )  # fmt: skip


def _share(tally: Tally, side: str, word: str) -> str:
    of = Counter[str]()
    for (_, _, one, verdict), n in tally.verdicts.items():
        if one == side:
            of[_word(verdict)] += n
    judged = of["accepted"] + of["violation"]
    return f"{of[word] / judged:.1%}" if judged else "none asked"


def _funnel(m: Manifest) -> str:
    kept, dropped = Series("kept", BLUE), Series("dropped", ORANGE, "#222222")
    chart = charts.stacked(
        "Kept and dropped, stage by stage",
        "count",
        [(f"{s.stage} ({s.unit})", (s.kept, s.entered - s.kept)) for s in m.funnel],
        (kept, dropped),
    )
    stages = table(
        ("stage", "of", "in", "kept", "dropped"),
        [(s.stage, s.unit, s.entered, s.kept, s.entered - s.kept) for s in m.funnel],
    )
    reasons = [(s.stage, r.count, r.reason, meaning(r.reason)) for s in m.funnel for r in s.dropped]
    return section(
        "funnel", "Funnel", "What went into each stage, what stayed, and why the rest did not.",
        columns(
            figure("chart-funnel", "Kept and dropped, stage by stage", chart, stages),
            table(("stage", "dropped", "reason", "meaning"), reasons) if reasons else note("Nothing was dropped."),
        ),
    )  # fmt: skip


def _played(played: Sequence[ModelPlayed], m: Manifest, tally: Tally) -> str:
    lead = "How the episodes ended that the moves were taken from, scored as clem eval does."
    if played:
        return section("played", "Outcomes, clemscore and moves", lead, *played_parts(played))
    parts = []
    if m.outcomes:
        parts.append(table(("outcome", "episodes"), [(o.outcome, o.episodes) for o in m.outcomes]))
    why = "a published file says nothing of its episodes" if m.imported else "make the set again to have them by game"
    parts.append(note(f"The manifest of this set has no scores by game: {why}. A report on the run has them, too."))
    edges = list(range(1, max(tally.turns, default=1) + 2))
    chart = charts.histogram(
        "Pairs by move", "move of the episode that the pair was made from", "pairs", edges,
        [(Series("pairs", BLUE), charts.binned(tally.turns.items(), edges))],
    )  # fmt: skip
    parts.append(figure("chart-turns", "Pairs by move", chart))
    return section("played", "Outcomes, clemscore and moves", lead, *parts)


def _lengths(tally: Tally) -> str:
    edges = charts.log_edges(max(max(c, default=1) for c in tally.lengths.values()))
    counted = [(s, charts.binned(tally.lengths[s.name].items(), edges)) for s in (CHOSEN, REJECTED)]
    chart = charts.histogram(
        "Lengths of chosen and rejected", "characters (logarithmic)", "pairs", edges, counted, log=True
    )
    rows = [
        (f"{a:,} to {b - 1:,}", c, r)
        for a, b, c, r in zip(edges, edges[1:], counted[0][1], counted[1][1], strict=False)
    ]
    return section(
        "lengths", "Lengths", "", figure(
            "chart-lengths", "Lengths of chosen and rejected", chart, table(("characters", "chosen", "rejected"), rows)
        ),
    )  # fmt: skip


def _word(verdict: str) -> str:
    return next((s.name for s in VERDICTS if verdict.startswith(s.name)), "unverifiable")


def _verdicts(tally: Tally) -> str:
    by: dict[int, dict[str, Counter[str]]] = {0: {}, 1: {}}
    cells: dict[tuple[str, str], Counter[str]] = {}
    full: Counter[tuple[str, str]] = Counter()
    for (strategy, game, side, verdict), n in tally.verdicts.items():
        full[side, verdict] += n
        cells.setdefault((game, strategy), Counter())[f"{side} {_word(verdict)}"] += n
        if side == "rejected":
            for place, name in enumerate((strategy, game)):
                by[place].setdefault(name, Counter())[_word(verdict)] += n
    figures = []
    for place, what in enumerate(("strategy", "game")):
        rows = [(name, [c[s.name] for s in VERDICTS]) for name, c in sorted(by[place].items())]
        title = f"What the game master said of the rejected side, by {what}"
        figures.append(figure(f"chart-verdicts-{what}", title, charts.stacked(title, "pairs", rows, VERDICTS)))
    head = [f"{side} {s.name}" for side in ("chosen", "rejected") for s in VERDICTS]
    listed = [(game, strategy, *(c[h] for h in head)) for (game, strategy), c in sorted(cells.items())]
    return section(
        "verdicts", "Verdicts", "What the game's own referee said when it was given either side at that very move. "
        "(order) marks a replay whose prompts say the same things in another order.",
        columns(*figures),
        folded("Game × strategy", table(("game", "strategy", *head), listed)),
        f'<details class="data"><summary>Every verdict in full</summary>'
        f'{table(("side", "verdict", "pairs"), [(*k, n) for k, n in sorted(full.items())])}</details>',
    )  # fmt: skip


def _audit(m: Manifest) -> str:
    found = [s for s in m.quality.shortcuts if not s.strategy]
    parts = [note(line) for line in remarks(m.quality)]
    if not m.quality.shortcuts:
        return section("audit", "Shortcut audit", "This set was not audited.", *parts)
    names = [row[1] for row in audit_rows(found)]
    chart = charts.dots(
        "How often a rule that reads no prompt finds the rejected side", "pairs that the rule gets right",
        [(name, (s.train, None if s.test < 0 else s.test)) for name, s in zip(names, found, strict=True)],
        (Series("train", BLUE), Series("test", RED)), Mark(0.5, "a coin"),
    )  # fmt: skip
    strings = [(name, s.tells, text) for s, name in zip(found, names, strict=True) for text in s.found]
    told = table(("rule", "the rejected side", "string"), strings)
    rules = table(("strategy", "rule", "the rejected side", "train", "test"), audit_rows(m.quality.shortcuts))
    return section(
        "audit", "Shortcut audit",
        "How often a rule that reads no prompt tells the rejected side from the chosen one. What is far "
        "above a coin, a model can learn instead of the game.",
        columns(
            figure("chart-audit", "How often a rule that reads no prompt finds the rejected side", chart),
            folded("Every rule, by strategy", rules, opened=True),
        ),
        *([folded("The strings that were found", told)] if strings else []),
        *parts,
    )  # fmt: skip


def _tokens(m: Manifest, tally: Tally) -> str:
    check = m.quality.tokens
    if check and check.totals:
        edges = [check.totals[0].low, *(b.high for b in check.totals)]
        limit = check.max_length or check.needed_length
        text = f"max_length {limit:,}" if check.max_length else f"the longest: {limit:,}"
        chart = charts.histogram(
            "Tokens of a pair", f"tokens of the prompt and the longer side ({m.config.tokenizer})", "pairs", edges,
            [(Series("pairs", BLUE), [b.pairs for b in check.totals])], mark=Mark(limit, text),
        )  # fmt: skip
        rows = [(n.column, n.median, n.p90, n.max) for n in check.lengths]
        return section(
            "tokens",
            "Tokens",
            "",
            figure("chart-tokens", "Tokens of a pair", chart),
            table(("tokens", "median", "90%", "most"), rows),
        )
    rows = [(n.column, n.median, n.p90, n.max) for n in m.lengths]
    return section(
        "tokens", "Room that a pair takes",
        f"Tokens were not counted (pairgen corrupt --tokenizer MODEL counts them), so these are characters; the "
        f"longest prompt with the longer of its sides has {m.longest_row:,}.",
        table(("characters", "median", "90%", "most"), rows),
    )  # fmt: skip


def _made(m: Manifest) -> str:
    v = m.versions
    runs = [
        (r.name, r.command, r.model, r.partner or "-", "-" if r.temperature < 0 else f"{r.temperature:g}", r.episodes)
        for r in m.runs
    ]
    kept_out = ", ".join(s.name for s in m.evaluation.sources) or "nothing"
    return section(
        "made", "How it was made", "", code(m.command),
        *([table(("run", "by", "model", "partner", "temperature", "episodes"), runs)] if runs else []),
        note(f"Kept out: {kept_out}; {m.evaluation.removed_pairs:,} pairs of evaluation instances were taken out."),
        *(note(text) for text in m.evaluation.notes),
        note(f"Made by pairgen {v.pairgen}, clemcore {', '.join(v.clemcore) or 'not known'}, Python {v.python}."),
        note(f"Content {m.content}."),
    )  # fmt: skip
