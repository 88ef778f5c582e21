"""Charts as plain SVG that stands alone: styled by its own attributes, readable in a paper. Pure; knows no record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Told apart by colour-blind readers (Okabe and Ito)."""
INK, LINES = "#444b54", "#d0d7de"
WIDTH, ROW, FONT = 640, 22, 12
CHARACTER = 6.6
"""About the width of a character at this font size."""


class Series(NamedTuple):
    """A name and one number for each row or bin."""

    name: str
    values: tuple[float, ...]


def bars(title: str, rows: Sequence[str], series: Sequence[Series], unit: str) -> str:
    """A horizontal bar a row, its parts one after the other."""
    left = min(240.0, 12 + CHARACTER * max((len(row) for row in rows), default=0))
    most = max((sum(s.values[i] for s in series) for i in range(len(rows))), default=0) or 1
    ticks = _ticks(most)
    scale = (WIDTH - left - 60) / ticks[-1]
    top = _legend_height(series)
    bottom = top + ROW * len(rows)
    parts = [_legend(series)] if top else []
    for tick in ticks:
        x = left + tick * scale
        parts.append(_line(x, top, x, bottom + 4))
        parts.append(_text(x, bottom + 18, _number(tick), "middle"))
    for i, row in enumerate(rows):
        y, x = top + i * ROW, left
        parts.append(_text(left - 6, y + 15, _cut(row, left), "end"))
        for s, colour in zip(series, COLOURS, strict=False):
            width = s.values[i] * scale
            if width > 0:
                told = f"{row}: {_number(s.values[i])} {s.name}".strip()
                parts.append(
                    f'<rect x="{x:.1f}" y="{y + 4}" width="{max(width, 0.5):.1f}" height="{ROW - 8}" fill="{colour}">'
                    f"<title>{escape(told)}</title></rect>"
                )
            x += width
        parts.append(_text(x + 5, y + 15, _number(sum(s.values[i] for s in series)), "start"))
    parts.append(_text(left + (WIDTH - left - 60) / 2, bottom + 36, unit, "middle"))
    return _svg(title, bottom + 44, parts)


def histogram(
    title: str,
    edges: Sequence[float],
    series: Sequence[Series],
    unit: str,
    counted: str,
    mark: tuple[float, str] | None = None,
) -> str:
    """Series side by side over bins with these `edges` (one more than values); `mark` is a place and what it is."""
    left, height = 54.0, 170.0
    top = _legend_height(series) + (18 if mark else 0)
    bins = len(edges) - 1
    most = max((value for s in series for value in s.values), default=0) or 1
    ticks = _ticks(most)
    scale, step = height / ticks[-1], (WIDTH - left - 20) / max(bins, 1)
    bottom = top + height
    parts = [_legend(series)] if len(series) > 1 else []
    for tick in ticks:
        parts.append(_line(left, bottom - tick * scale, WIDTH - 20, bottom - tick * scale))
        parts.append(_text(left - 6, bottom - tick * scale + 4, _number(tick), "end"))
    for n, (s, colour) in enumerate(zip(series, COLOURS, strict=False)):
        wide = (step - 2) / len(series)
        for i, value in enumerate(s.values):
            if value:
                told = f"{_number(edges[i])} to {_number(edges[i + 1])}: {_number(value)} {s.name}".strip()
                parts.append(
                    f'<rect x="{left + i * step + 1 + n * wide:.1f}" y="{bottom - value * scale:.1f}" '
                    f'width="{wide:.1f}" height="{value * scale:.1f}" fill="{colour}">'
                    f"<title>{escape(told)}</title></rect>"
                )
    every = max(1, math.ceil(bins / 10))
    parts += [_text(left + i * step, bottom + 16, _number(edges[i]), "middle") for i in range(0, bins + 1, every)]
    if mark:
        x = left + step * _place(edges, mark[0])
        parts.append(
            f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{bottom}" stroke="{INK}" stroke-dasharray="4 3"/>'
        )
        beyond = " →" if mark[0] > edges[-1] else ""
        parts.append(_text(x, top - 8, mark[1] + beyond, "end" if x > WIDTH / 2 else "start"))
    parts.append(_text(left + (WIDTH - left - 20) / 2, bottom + 34, unit, "middle"))
    parts.append(f'<text x="14" y="{top + height / 2:.1f}" transform="rotate(-90 14 {top + height / 2:.1f})" '
                 f'text-anchor="middle" fill="{INK}">{escape(counted)}</text>')  # fmt: skip
    return _svg(title, bottom + 42, parts)


def bin_edges(values: Sequence[float], bins: int = 24) -> list[float]:
    """Round edges that hold all values: equal steps, or, where they span more than a factor of 50, equal factors."""
    low, high = min(values, default=0), max(values, default=1)
    if low >= 0 and high > 50 * max(low, 1):
        factors = max(1, math.ceil(math.log2(high + 1)))
        return [0.0, *(float(2**i) for i in range(factors + 1))]
    step = _round_up(max(1.0, (high - low) / bins))
    start = math.floor(low / step) * step
    return [start + i * step for i in range(int((high - start) // step) + 2)]


def binned(values: Sequence[float], edges: Sequence[float]) -> tuple[float, ...]:
    """How many values lie in each bin; an edge belongs to the bin that it begins."""
    import bisect

    counts = [0.0] * (len(edges) - 1)
    for value in values:
        counts[min(len(counts) - 1, max(0, bisect.bisect_right(edges, value) - 1))] += 1
    return tuple(counts)


def _place(edges: Sequence[float], value: float) -> float:
    """Where a value lies, in bins from the left."""
    for i, (a, b) in enumerate(pairwise(edges)):
        if value <= b:
            return i + max(0.0, value - a) / (b - a)
    return len(edges) - 1.0


def _ticks(most: float) -> list[float]:
    step = _round_up(most / 4)
    return [i * step for i in range(math.ceil(most / step) + 1)]


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(float(power * n) for n in (1, 2, 5, 10) if power * n >= value * (1 - 1e-9))


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}".rstrip("0").rstrip(".")


def _cut(text: str, width: float) -> str:
    most = int((width - 8) / CHARACTER)
    return text if len(text) <= most else text[: most - 1] + "…"


def _legend_height(series: Sequence[Series]) -> int:
    return 26 if len(series) > 1 else 6


def _legend(series: Sequence[Series]) -> str:
    x, parts = 12.0, []
    for s, colour in zip(series, COLOURS, strict=False):
        parts.append(
            f'<rect x="{x:.1f}" y="4" width="11" height="11" fill="{colour}"/>' + _text(x + 16, 14, s.name, "start")
        )
        x += 36 + CHARACTER * len(s.name)
    return "".join(parts)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{LINES}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>'


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" font-family="Helvetica, Arial, sans-serif" font-size="{FONT}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
