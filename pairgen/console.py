"""What a person sees: progress and messages on standard error, the summary on standard output. Knows no stage."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """The `--json` option that every command has."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print the summary as one JSON object on the last line of output."
    )(function)


class Number(click.FloatRange):
    """A finite number in a range: `nan` lies in every range as click compares it, and is no JSON."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


def say(text: str) -> None:
    """A message for the person at the terminal (standard error)."""
    click.echo(text, err=True)


def finish(summary: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """End a command: `lines` for a person, or, with --json, the lines on standard error and the summary last."""
    for line in lines:
        click.echo(line, err=as_json)
    if as_json:
        sys.stdout.flush()
        click.echo(json.dumps(summary, ensure_ascii=False))


def progress(total: int | None, what: str, unit: str, *, initial: int = 0) -> Any:
    """A tqdm bar on standard error with rate and time left; plain lines far apart where that is no terminal."""
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    return tqdm(
        total=total, desc=what, unit=f" {unit}", initial=initial, file=sys.stderr, dynamic_ncols=terminal,
        mininterval=0.2 if terminal else 10.0, disable=bool(os.environ.get("PAIRGEN_NO_PROGRESS")),
    )  # fmt: skip


def table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> list[str]:
    """Rows as aligned text; numbers to the right."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(header[i]), *(len(r[i]) for r in cells)) if cells else len(h) for i, h in enumerate(header)]
    right = [bool(rows) and all(isinstance(r[i], (int, float)) for r in rows) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()

    return [line(header), *(line(r) for r in cells)]
