"""The shell of a report: one HTML file that loads nothing, with its policy, style, scripts and data. Knows no section.

Whatever was said in a game is data: it stands in the page as JSON without `<` or as base64, or goes through `clean`.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from pairgen import __version__
from pairgen.errors import UsageProblem
from pairgen.store import write_atomic
from pipelines.charts import clean

SCRIPTS = ("report_diff.js", "report_data.js", "report_view.js")
GENERATOR = b'<meta name="generator" content="pairgen report">'
FIRST_BYTES = 2_000
"""Within which a report says that it is one."""


class Cover(NamedTuple):
    """What a page says before its sections; `browse` names the tab of the viewer, `lead` is HTML."""

    title: str
    lead: str
    browse: str


def write_page(out: Path, cover: Cover, sections: Sequence[str], head: dict[str, Any], blocks: Path) -> None:
    """Write the page to `out`, all or nothing: `sections` are HTML, `blocks` the file that Blocks wrote."""
    style = _file("report.css")
    scripts = [_file(name) for name in SCRIPTS]
    allowed = " ".join(_hash(script) for script in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; connect-src 'none'; img-src 'none'; "
        "base-uri 'none'; form-action 'none'"
    )
    before, _, after = _file("report.html").partition("$blocks")
    values = {
        "policy": policy, "title": clean(cover.title), "style": style, "lead": cover.lead,
        "browse": clean(cover.browse), "overview": "\n".join(sections), "head": json_text(head),
        "footer": f"Written by pairgen {clean(__version__)}. It is complete: it loads nothing and sends nothing.",
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }  # fmt: skip

    def write(path: Path) -> None:
        with path.open("wb") as file:
            file.write(Template(before).substitute(values).encode("utf-8"))
            with blocks.open("rb") as data:
                shutil.copyfileobj(data, file)
            file.write(Template(after).substitute(values).encode("utf-8"))

    write_atomic(out, write)


def check_place(out: Path, folder: Path, *, overwrite: bool) -> None:
    """Raise UsageProblem where `folder` is none, or its report must not be written to `out`: within it, or over
    something else."""
    if folder.is_file():
        raise UsageProblem(f"{folder} is a file: make a pair set of it first, pairgen import {folder} --out PAIRS.")
    if folder.resolve() in out.resolve().parents:
        raise UsageProblem(f"{out} would lie in {folder}, which holds nothing of others: give another --out.")
    if out.is_dir():
        raise UsageProblem(f"{out} is a folder: give the path of an .html file.")
    if not out.exists():
        return
    if not overwrite:
        raise UsageProblem(f"{out} is there already: say --overwrite to replace it, or give another --out.")
    with out.open("rb") as file:
        if GENERATOR not in file.read(FIRST_BYTES):
            raise UsageProblem(f"{out} is no report of pairgen, so --overwrite leaves it alone: give another --out.")


def json_text(data: Any) -> str:
    """JSON that ends no element and begins none, whatever is in it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def section(name: str, title: str, lead: str, *parts: str) -> str:
    """A section of the overview; `lead` is text, parts are HTML."""
    told = f"<p>{clean(lead)}</p>" if lead else ""
    return f'<section aria-labelledby="h-{name}"><h2 id="h-{name}">{clean(title)}</h2>{told}{"".join(parts)}</section>'


def figure(name: str, caption: str, svg: str, data: str = "") -> str:
    """A chart with its caption; `data` (HTML) are its numbers, folded."""
    numbers = folded("Numbers", data) if data else ""
    return (
        f'<figure id="{name}"><figcaption>{clean(caption)}</figcaption><div class="plot">{svg}</div>{numbers}</figure>'
    )


def columns(*parts: str) -> str:
    return f'<div class="columns">{"".join(parts)}</div>'


def tiles(facts: Sequence[tuple[str, str]]) -> str:
    """Big numbers, each with what it counts."""
    items = "".join(f"<li><b>{clean(value)}</b><span>{clean(what)}</span></li>" for value, what in facts)
    return f'<ul class="tiles">{items}</ul>'


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of texts; numbers (also as text, with % or -) stand to the right."""
    kind = {True: ' class="n"', False: ""}
    right = [bool(rows) and all(_numeric(row[i]) for row in rows) for i in range(len(header))]

    def cells(tag: str, row: Sequence[object]) -> str:
        return "".join(f"<{tag}{kind[n]}>{clean(_shown(c))}</{tag}>" for c, n in zip(row, right, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{cells("th", header)}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def folded(summary: str, inside: str, *, opened: bool = False) -> str:
    """HTML that can be folded away."""
    return f'<details class="data"{" open" if opened else ""}><summary>{clean(summary)}</summary>{inside}</details>'


def note(text: str, *, warn: bool = False) -> str:
    return f'<p class="note{" warn" if warn else ""}">{clean(text)}</p>'


def code(text: str) -> str:
    return f"<pre><code>{clean(text)}</code></pre>"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _numeric(value: object) -> bool:
    if isinstance(value, str):
        return value in ("-", "none") or value.rstrip("%").replace(",", "").replace(".", "").isdigit()
    return isinstance(value, (int, float))


def _file(name: str) -> str:
    return importlib.resources.files("pipelines").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
