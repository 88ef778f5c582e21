"""The report: a pair set or a run as one HTML file, with charts, tables and a viewer. Makes and judges nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pairgen import store
from pairgen.console import progress
from pairgen.errors import PairgenError, UsageProblem
from pipelines import pairset, report_pairs, report_run
from pipelines.page import Item, write_page
from pipelines.tokens import load_tokenizer


class Written(NamedTuple):
    """Where the report is, what it shows and how large it is."""

    path: Path
    kind: str
    items: int
    bytes: int


def write_report(place: Path, out: Path | None, *, tokenizer: str = "", overwrite: bool = False) -> Written:
    """Write the report on the pair set or run in the folder `place`; `tokenizer` counts the pairs in tokens, too.

    Raises UsageProblem when `out` is taken, PairgenError when `place` is neither.
    """
    out = out or _beside(place)
    if out.is_dir():
        raise UsageProblem(f"--out {out} is a folder: name a file in it, such as {out / 'report.html'}.")
    if out.exists() and not overwrite:
        raise UsageProblem(f"{out} is there already: say --overwrite to replace it, or give another --out.")
    is_run = (place / store.JOURNAL).exists()
    if not is_run and not (place / store.MANIFEST).exists():
        raise PairgenError(f"{place} is neither a pair set nor a run: give the --out folder of corrupt or rollout.")
    if is_run and tokenizer:
        raise UsageProblem("--tokenizer is for pairs: a run knows the tokens of its replies.")
    if is_run:
        title, sections, shape, items, count = report_run.subject(place)
    else:
        loaded = load_tokenizer(tokenizer) if tokenizer else None
        title, sections, shape, items, count = report_pairs.subject(place, pairset.read_manifest(place), loaded)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            written = write_page(file.write, title, sections, shape, _counted(items, count, shape.things))
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return Written(out, shape.kind, written, out.stat().st_size)


def _beside(place: Path) -> Path:
    """Beside the folder and not in it: a pair set holds nothing but what it is made of."""
    whole = place.resolve()
    return (place if place.name else whole).with_name(f"{whole.name}.report.html")


def _counted(items: Iterable[Item], count: int, things: str) -> Iterator[Item]:
    with progress(count, "writing the report", things.removesuffix("s")) as bar:
        for item in items:
            yield item
            bar.update()
