"""`pairgen import`: parse, read, print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from pairgen.console import finish, json_option

SUMMARY = (
    "episodes", "outcomes", "model_moves", "average_played", "average_quality", "clemscore", "sources", "violations",
    "prompts_checked", "prompts_differ", "skipped",
)  # fmt: skip


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RESULTS...")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Run folder.")
@click.option("--overwrite", is_flag=True, help="Replace the run in --out.")
@json_option
def command(results: tuple[Path, ...], out: Path, overwrite: bool, as_json: bool) -> None:
    """Take clembench results into a run.

    RESULTS are folders that clem run has written (clemcore 2.4 and later), or parts of them: all of the results, a
    model's, a game's, or one episode. Of several models each becomes a source of its own; `clem score` must have run,
    or the episodes stay unscored.
    """
    from pipelines import ingest

    manifest = ingest.import_results(results, out, overwrite=overwrite)
    summary = {"out": str(out), **{name: manifest[name] for name in SUMMARY}}
    finish(summary, _lines(out, manifest), as_json=as_json)


def _lines(out: Path, manifest: dict[str, Any]) -> list[str]:
    from pipelines.scoring import table_lines

    lines = table_lines(manifest)
    if len(manifest["sources"]) > 1:
        each = (f"{name}: {numbers['clemscore']}" for name, numbers in manifest["sources"].items())
        lines.append(f"of several sources together; clemscore of each: {', '.join(each)}")
    unscored = sum(outcomes.get("unscored", 0) for outcomes in manifest["outcomes"].values())
    if unscored:
        lines.append(f"{unscored} episodes have no score: run clem score on the results and import them again.")
    checked, differ = manifest["prompts_checked"], manifest["prompts_differ"]
    lines.append(f"prompts: {checked} checked against what was sent, {differ} differ")
    if differ:
        lines.append(f"the first that differs: {manifest['first_difference']}")
    for kind, what in (("skipped", "left out"), ("unread", "read in part")):
        for entry in manifest[kind][:5]:
            lines.append(f"{what}: {entry['path']}: {entry['reason']}")
        if len(manifest[kind]) > 5:
            lines.append(f"{what}: {len(manifest[kind]) - 5} more, see manifest.json")
    lines += [f"run: {out}", f"next: pairgen corrupt {shlex.quote(str(out))} --strategy verbose --out PAIRS"]
    return lines
