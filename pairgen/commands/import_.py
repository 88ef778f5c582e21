"""`pairgen import`: parse, read, print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from pairgen.console import finish, json_option
from pairgen.errors import UsageProblem

SUMMARY = (
    "episodes", "outcomes", "model_moves", "average_played", "average_quality", "clemscore", "sources", "violations",
    "prompts_checked", "prompts_differ", "skipped",
)  # fmt: skip


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RESULTS...")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the run, or of the pair set.")
@click.option("--dedup", is_flag=True, help="Of a pair file: leave out what repeats.")
@click.option("--overwrite", is_flag=True, help="Replace the import in --out.")
@json_option
def command(results: tuple[Path, ...], out: Path, dedup: bool, overwrite: bool, as_json: bool) -> None:
    """Take clembench results into a run, or a file of preference pairs into a pair set.

    RESULTS are folders that clem run has written (clemcore 2.4 and later), or parts of them: all of the results, a
    model's, a game's, or one episode. Of several models each becomes a source of its own; `clem score` must have run,
    or the episodes stay unscored.

    One FILE of pairs instead (.json, .jsonl or .parquet with prompt, chosen and rejected) becomes a pair set as it is,
    split by instance; what repeats in it and what gives its rejected sides away is told.
    """
    from pipelines import ingest, pairfile

    files = [path for path in results if path.is_file() and path.suffix in pairfile.SUFFIXES]
    if files and len(results) > 1:
        raise UsageProblem(f"{files[0]} is a file of pairs, which is imported alone: leave out the others.")
    if files:
        _adopt(files[0], out, dedup=dedup, overwrite=overwrite, as_json=as_json)
        return
    if dedup:
        raise UsageProblem("--dedup is for a file of pairs: leave it out, pairgen corrupt takes out what repeats.")
    manifest = ingest.import_results(results, out, overwrite=overwrite)
    summary = {"out": str(out), **{name: manifest[name] for name in SUMMARY}}
    finish(summary, _lines(out, manifest), as_json=as_json)


def _adopt(path: Path, out: Path, *, dedup: bool, overwrite: bool, as_json: bool) -> None:
    from pairgen.records import to_dict
    from pipelines.adopt import adopt
    from pipelines.funnel import meaning
    from pipelines.quality_text import quality_lines, string_lines

    made, repeats = adopt(path, out, dedup=dedup, overwrite=overwrite)
    read = made.funnel[0].entered
    lines = [f"{read} pairs are in {path.name}; what repeats in it{' was left out' if dedup else ''}:"]
    lines += [f"  {r.count} {r.reason} ({meaning(r.reason)})" for r in repeats] or ["  nothing"]
    again = sum(r.count for r in repeats if r.reason in ("duplicate", "repeated_chosen"))
    if again:
        lines.append(f"So {again} of {read} rows repeat the prompt and the chosen side of another one.")
    lines += ["", *quality_lines(made.quality), *string_lines(made.quality), ""]
    lines.append(f"{made.pairs} pairs ({made.train} train, {made.test} test) are in {out}")
    if repeats and not dedup:
        lines.append(f"next: pairgen import {shlex.quote(str(path))} --dedup --out {shlex.quote(str(out))} --overwrite")
    summary = {
        "out": str(out), "read": read, "pairs": made.pairs, "train": made.train, "test": made.test,
        "repeats": {r.reason: r.count for r in repeats}, "quality": to_dict(made.quality), "content": made.content,
    }  # fmt: skip
    finish(summary, lines, as_json=as_json)


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
