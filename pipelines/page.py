"""One HTML file that needs no network: sections, charts, and items packed in blocks that the page unpacks when needed.

Texts are escaped here, or packed so that the page can only show them as text. Knows nothing of pairs or runs.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from string import Template
from typing import Any, NamedTuple

from pairgen import __version__

BLOCK = 400
"""Items in a block: what the page unpacks at once."""
LONG_TABLE = 16
"""Rows from which a table is folded."""


class Section(NamedTuple):
    """A part of the page with a heading; `html` is escaped already, `name` is its place in the address."""

    name: str
    heading: str
    html: str


class Item(NamedTuple):
    """One thing in the viewer. `filters` are short values by column, `body` tells all, with texts as places."""

    id: str
    preview: str
    filters: dict[str, str]
    body: Callable[[Strings], dict[str, Any]]


class Strings:
    """The texts of a block, each once; `used` are the places that were asked for since it was last emptied."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.used: set[int] = set()

    def place(self, text: str) -> int:
        found = self.texts.setdefault(text, len(self.texts))
        self.used.add(found)
        return found


class Shape(NamedTuple):
    """How the viewer presents items: `columns` with their labels, those to filter by, and where others are shown."""

    kind: str
    things: str
    title: str
    labels: dict[str, str]
    filters: tuple[str, ...]
    heading: tuple[str, ...]
    subtitle: tuple[str, ...]
    outcome: str


def write_page(
    write: Callable[[str], Any], title: str, sections: Sequence[Section], shape: Shape, items: Iterable[Item]
) -> int:
    """Hand the page to `write` piece by piece, one block of items in memory at a time; the number of items.

    The first section comes before the viewer, the others after it.
    """
    style, script = _file("report.css"), _file("report.js")
    places = [(s.name, s.heading) for s in sections]
    nav = " ".join(f'<a href="#{n}">{escape(h)}</a>' for n, h in (*places[:1], ("viewer", shape.title), *places[1:]))
    told = {
        "title": escape(title), "style": style, "script": script, "style_hash": _digest(style), "things": shape.things,
        "script_hash": _digest(script), "nav": nav, "viewer_title": escape(shape.title),
        "overview": "\n".join(map(_section, sections[:1])), "rest": "\n".join(map(_section, sections[1:])),
        "footer": f"Made by pairgen {escape(__version__)}.",
    }  # fmt: skip
    before, after = (Template(part).substitute(told) for part in _file("report.html").split("$data"))
    write(before)
    index = _Index(shape)
    for number, block in enumerate(_blocks(items)):
        write(_packed(f"block-{number}", _block(block, index)))
    write(_packed("index", index.plain()))
    write(after)
    return len(index.ids)


class _Index:
    """What the page must know of every item at once."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self.ids: list[str] = []
        self.previews: list[str] = []
        names = {*shape.filters, *shape.heading, *shape.subtitle, shape.outcome}
        self.columns: dict[str, tuple[dict[str, int], list[int]]] = {name: ({}, []) for name in sorted(names)}

    def add(self, item: Item) -> None:
        self.ids.append(item.id)
        self.previews.append(item.preview)
        for name, (names, codes) in self.columns.items():
            codes.append(names.setdefault(item.filters.get(name, ""), len(names)))

    def plain(self) -> dict[str, Any]:
        columns = {name: {"names": list(names), "codes": codes} for name, (names, codes) in self.columns.items()}
        shown = self.shape._asdict() | {"size": BLOCK, "ids": self.ids, "previews": self.previews}
        return {**shown, "columns": columns}


def _blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    block: list[Item] = []
    for item in items:
        block.append(item)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def _block(items: Sequence[Item], index: _Index) -> dict[str, Any]:
    strings, rows = Strings(), []
    for item in items:
        index.add(item)
        strings.used = set()
        rows.append({**item.body(strings), "t": sorted(strings.used)})
    return {"strings": list(strings.texts), "items": rows}


def _packed(name: str, data: Any) -> str:
    """Data as the page unpacks it: nothing in it can end the element that holds it."""
    text = json.dumps(data, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>\n'


def _section(section: Section) -> str:
    return f'<section id="{section.name}"><h2>{escape(section.heading)}</h2>\n{section.html}\n</section>'


def figure(name: str, title: str, svg: str) -> str:
    """A chart with its title and a button that saves it."""
    return (
        f'<figure id="{name}"><figcaption>{escape(title)} <button type="button" class="small">save SVG</button>'
        f"</figcaption>{svg}</figure>"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as an HTML table; columns of numbers to the right."""
    cells = [list(row) for row in rows]
    numbers = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(header))]

    def line(tag: str, row: Sequence[object]) -> str:
        parts = zip(row, numbers, strict=True)
        return "".join(f"<{tag}{' class=n' if right else ''}>{escape(_shown(c))}</{tag}>" for c, right in parts)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in cells)
    whole = (
        f'<div class="scroll"><table><thead><tr>{line("th", header)}</tr></thead><tbody>{body}</tbody></table></div>'
    )
    if len(cells) <= LONG_TABLE:
        return whole
    return f"<details><summary>{len(cells)} rows: {escape(', '.join(header))}</summary>{whole}</details>"


def tiles(facts: Sequence[tuple[str, str]]) -> str:
    """A few numbers in large print: the number and what it is."""
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{escape(number)}</b><span>{escape(what)}</span></div>' for number, what in facts
    ) + "</div>"  # fmt: skip


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float)) or (isinstance(cell, str) and cell[:-1].replace(".", "").isdigit())


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.2f}" if isinstance(cell, float) else str(cell)


def _file(name: str) -> str:
    return importlib.resources.files("pipelines").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The hash by which the page's policy lets this very style or script run, and nothing else."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
