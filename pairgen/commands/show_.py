"""`pairgen show`: pairs side by side in the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from pairgen.console import finish, json_option
from pairgen.errors import PairgenError, UsageProblem, did_you_mean

VERDICTS = ("accepted", "violation", "unverifiable")


@click.command()
@click.argument("pairs", type=click.Path(path_type=Path))
@click.option("--game", default="", help="Pairs of this game alone.")
@click.option("--strategy", default="", help="Pairs of this strategy alone.")
@click.option("--verdict", default="", help="Pairs whose rejected side has this verdict, such as violation.")
@click.option("-n", "count", type=click.IntRange(1), default=5, show_default=True, help="How many.")
@click.option("--width", type=click.IntRange(40), default=None, help="Columns [those of the terminal].")
@json_option
def command(pairs: Path, game: str, strategy: str, verdict: str, count: int, width: int | None, as_json: bool) -> None:
    """Show pairs beside each other, with what differs in ⟦brackets⟧."""
    from pairgen.records import Pair, to_dict
    from pairgen.store import read_table
    from pipelines.show import side_by_side

    tables = [pairs / "full" / f"{side}.parquet" for side in ("train", "test")]
    there = [table for table in tables if table.exists()]
    if not there:
        raise PairgenError(f"{pairs} holds no pair set: give the --out folder of pairgen corrupt.")
    rows: list[Pair] = [row for table in there for row in read_table(table, Pair)]
    for option, wanted, known in (
        ("--game", game, {row.game for row in rows}),
        ("--strategy", strategy, {row.strategy for row in rows}),
    ):
        if wanted and wanted not in known:
            raise UsageProblem(f"{option} {wanted}: the set has none of it, {did_you_mean(wanted, known)}")
    said = {word for row in rows for word in (row.rejected_verdict, row.rejected_verdict.split(":")[0])}
    words = {*VERDICTS, *said}
    if not any(word.startswith(verdict) for word in words):
        raise UsageProblem(f"--verdict {verdict} is none that a game master gives, {did_you_mean(verdict, words)}")
    chosen = [
        row
        for row in rows
        if game in ("", row.game) and strategy in ("", row.strategy) and row.rejected_verdict.startswith(verdict)
    ]
    columns = width or min(160, shutil.get_terminal_size((100, 24)).columns)
    lines = [
        line for row in chosen[:count] for line in (*side_by_side(row, width=columns), "─" * columns)
    ]  # fmt: skip
    lines.append(f"{min(count, len(chosen))} of {len(chosen)} pairs")
    finish({"pairs": [to_dict(row) for row in chosen[:count]], "found": len(chosen)}, lines, as_json=as_json)
