"""`pairgen report`: parse, write the page, say where it is."""

from __future__ import annotations

from pathlib import Path

import click

from pairgen.console import finish, json_option


@click.command()
@click.argument("folder", metavar="PAIRS|RUN", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=None, metavar="FILE",
              help="The HTML file [PAIRS.report.html, beside the folder and never in it].")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an earlier report there.")
@json_option
def command(folder: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Write a report on a pair set or a run: one HTML file with charts and a viewer.

    It needs no network and no server: open it with a double click. The folder stays as it is.
    """
    import time

    from pairgen import store
    from pipelines import page, report, report_run

    place = out or (folder if folder.name else folder.resolve()).with_name(f"{folder.resolve().name}.report.html")
    page.check_place(place, folder, overwrite=overwrite)
    begun = time.monotonic()
    writes = report_run.write_report if (folder / store.JOURNAL).exists() else report.write_report
    written = writes(folder, place)
    seconds = time.monotonic() - begun
    summary = {**written._asdict(), "seconds": round(seconds, 2), "out": str(place)}
    size = f"{written.size / 1e6:.1f} MB"
    finish(summary, [f"{written.rows:,} {written.kind} are in {place} ({size}): open it in a browser"], as_json=as_json)
