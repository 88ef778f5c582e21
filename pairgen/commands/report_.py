"""`pairgen report`: parse, write the page, print."""

from __future__ import annotations

from pathlib import Path

import click

from pairgen.console import finish, json_option


@click.command()
@click.argument("place", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="PAIRS|RUN")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="The file [NAME.report.html beside the folder]."
)
@click.option("--tokenizer", default="", metavar="MODEL", help="Count the pairs in tokens of this model, too.")
@click.option("--overwrite", is_flag=True, help="Replace the file in --out.")
@json_option
def command(place: Path, out: Path | None, tokenizer: str, overwrite: bool, as_json: bool) -> None:
    """Write a report on a pair set or a run: one HTML file that needs no network.

    It has the funnel, outcomes, verdicts, lengths and shortcuts as tables and charts (each can be saved as SVG), and a
    viewer of all pairs or episodes with filters and search. Without --out it lies beside the folder.
    """
    from pipelines.report import write_report

    written = write_report(place, out, tokenizer=tokenizer, overwrite=overwrite or out is None)
    size = f"{written.bytes / 1e6:.1f} MB"
    summary = {"out": str(written.path), "kind": written.kind, written.kind: written.items, "bytes": written.bytes}
    lines = [f"{written.items:,} {written.kind} are in {written.path} ({size}): open it in a browser"]
    finish(summary, lines, as_json=as_json)
