"""Charts as plain SVG text, fit for a paper: axes, units, legend, title, description. Pure; knows no pair and no file.

Colours are Okabe and Ito's, which colour-blind readers tell apart. Each shape also has a class, so that a page can draw
it otherwise in the dark; what is written into the shape is how it looks on paper.
"""

from __future__ import annotations

import hashlib
import html
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pipelines.lengths import Five

WIDTH = 620
PITCH, BAR = 26, 17
PLOT = 210
FONT = 12
UNSEEN = ((0x7F, 0x9F), (0x202A, 0x202E), (0x2066, 0x2069), (0xD800, 0xDFFF), (0xFFFE, 0xFFFF))
"""Control characters, marks that turn the direction of what follows, halves of surrogate pairs, no characters."""
INK, SOFT, GRID = "#222222", "#595959", "#dddddd"


class Series(NamedTuple):
    """One kind of thing in a chart: its name, its colour on paper, and the colour of a number written on it."""

    name: str
    colour: str
    ink: str = "#ffffff"


BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#8a8a8a"
GREEN, SKY, PURPLE = "#009e73", "#56b4e9", "#cc79a7"


class Mark(NamedTuple):
    """A line across a chart at a value of its x axis."""

    value: float
    text: str


def stacked(
    title: str, unit: str, rows: Sequence[tuple[str, Sequence[int]]], series: Sequence[Series], *, share: bool = False
) -> str:
    """Horizontal bars, one a row, of one part a series; with `share` every bar is 100% long."""
    totals = [sum(values) for _, values in rows]
    left, right = _margin(rows), 62
    top = 34
    scale, ticks = _linear(1.0 if share else max(totals, default=0), left, WIDTH - right)
    shown = _axis(ticks, scale, top, top + len(rows) * PITCH, "{:.0%}" if share else "{:,g}", unit)
    shown += _legend(series, left)
    for number, ((name, values), total) in enumerate(zip(rows, totals, strict=True)):
        y = top + number * PITCH + (PITCH - BAR) / 2
        shown.append(_text(left - 8, y + BAR - 4, _short(name), "end"))
        at = 0.0
        for one, value in zip(series, values, strict=True):
            size = value / total if share and total else float(value)
            x, wide = scale(at), scale(at + size) - scale(at)
            if value:
                tip = f"{name}: {value:,} {one.name} ({value / total:.1%})"
                shown.append(_rect(x, y, wide, BAR, one, tip))
            if wide > 8 + 7 * len(f"{value:,}"):
                shown.append(_text(x + wide / 2, y + BAR - 4, f"{value:,}", "middle", one.ink, "on"))
            at += size
        shown.append(_text(scale(at) + 6, y + BAR - 4, f"{total:,}", fill=SOFT))
    told = "; ".join(
        f"{name}: " + ", ".join(f"{v:,} {s.name}" for v, s in zip(values, series, strict=True) if v)
        for name, values in rows
    )
    return _svg(title, told, top + len(rows) * PITCH + 44, shown)


def histogram(
    title: str, x_label: str, y_label: str, edges: Sequence[float], counts: Sequence[tuple[Series, Sequence[int]]],
    *, log: bool = False, mark: Mark | None = None,
) -> str:  # fmt: skip
    """Counts between `edges` (one more than counts), as outlines over each other; every second one is dashed."""
    left, right, top = 64, 24, 34
    floor = top + PLOT
    low, high = edges[0], max(edges[-1], mark.value if mark else 0)
    if log:
        scale, ticks = _logarithmic(low, high, left, WIDTH - right)
    else:
        scale, ticks = _linear(high, left, WIDTH - right)
    most = max((max(values, default=0) for _, values in counts), default=0)
    rise, levels = _linear(most, floor, top + 6)
    shown = [_line(left, rise(v), WIDTH - right, rise(v), "grid", GRID) for v in levels]
    shown += [_text(left - 8, rise(v) + 4, f"{v:,g}", "end", SOFT) for v in levels]
    shown += _axis(ticks, scale, floor, floor, "{:,g}", x_label)
    shown.append(_text(16, top + PLOT / 2, y_label, "middle", SOFT, turn=True))
    shown += _legend([s for s, _ in counts], left)
    for number, (one, values) in enumerate(counts):
        corners = [f"M{_n(scale(edges[0]))} {_n(floor)}"]
        for a, b, value in zip(edges, edges[1:], values, strict=False):
            corners.append(f"L{_n(scale(a))} {_n(rise(value))}L{_n(scale(b))} {_n(rise(value))}")
        corners.append(f"L{_n(scale(edges[-1]))} {_n(floor)}Z")
        dash = ' stroke-dasharray="5 3"' if number % 2 else ""
        shown.append(
            f'<path class="{_class(one)} area" d="{"".join(corners)}" fill="{one.colour}" fill-opacity="0.22" '
            f'stroke="{one.colour}" stroke-width="1.8"{dash}/>'
        )
    if mark:
        x = scale(mark.value)
        shown.append(_line(x, top, x, floor, "mark", INK, "4 3"))
        side = "end" if x > WIDTH / 2 else "start"
        shown.append(_text(x + (-6 if side == "end" else 6), top + 12, mark.text, side))
    told = "; ".join(f"{one.name}: {sum(values):,} {y_label}" for one, values in counts)
    return _svg(title, f"{told}; {x_label} from {low:,g} to {edges[-1]:,g}", floor + 46, shown)


def ranges(title: str, unit: str, rows: Sequence[tuple[str, Five]], one: Series) -> str:
    """A box plot a row: whiskers from the least to the most, a box between the quartiles, a line at the median."""
    left, right, top = _margin(rows), 40, 12
    floor = top + len(rows) * PITCH
    scale, ticks = _linear(max((five.high for _, five in rows), default=0), left, WIDTH - right)
    shown = _axis(ticks, scale, top, floor, "{:,g}", unit)
    for number, (name, five) in enumerate(rows):
        y = top + number * PITCH + (PITCH - BAR) / 2
        middle = y + BAR / 2
        tip = f"{name}: {five.low} to {five.high}, quartiles {five.q1}, {five.median}, {five.q3}"
        shown.append(_text(left - 8, y + BAR - 4, _short(name), "end"))
        shown.append(_line(scale(five.low), middle, scale(five.high), middle, "whisker", SOFT))
        shown += [_line(scale(v), middle - 4, scale(v), middle + 4, "whisker", SOFT) for v in (five.low, five.high)]
        shown.append(_rect(scale(five.q1), y, max(2, scale(five.q3) - scale(five.q1)), BAR, one, tip, 0.35))
        x = scale(five.median)
        shown.append(
            f'<path class="{_class(one)} stroke" d="M{_n(x)} {_n(y)}V{_n(y + BAR)}" stroke="{one.colour}" '
            'stroke-width="3"/>'
        )
    told = "; ".join(f"{name}: median {five.median}, {five.low} to {five.high}" for name, five in rows)
    return _svg(title, told, floor + 44, shown)


def dots(
    title: str, unit: str, rows: Sequence[tuple[str, Sequence[float | None]]], series: Sequence[Series], mark: Mark
) -> str:
    """Shares in 0 to 1, one dot a series; the second and later are open rings, so that they show over each other."""
    left, right, top = _margin(rows), 40, 34
    floor = top + len(rows) * PITCH
    scale, ticks = _linear(1.0, left, WIDTH - right)
    shown = _axis(ticks, scale, top, floor, "{:.0%}", unit)
    shown += _legend(series, left)
    shown.append(_line(scale(mark.value), top, scale(mark.value), floor, "mark", INK, "4 3"))
    shown.append(_text(scale(mark.value) + 6, top - 4, mark.text, fill=SOFT))
    for number, (name, values) in enumerate(rows):
        y = top + number * PITCH + PITCH / 2
        shown.append(_text(left - 8, y + 4, _short(name), "end"))
        for order, (one, value) in enumerate(zip(series, values, strict=True)):
            if value is not None:
                kind = "ring" if order else "dot"
                paint = f'fill="none" stroke="{one.colour}" stroke-width="2.4"' if order else f'fill="{one.colour}"'
                shown.append(
                    f'<circle class="{_class(one)} {kind}" cx="{_n(scale(value))}" cy="{_n(y)}" '
                    f'r="{8 if order else 5}" {paint}>{_tip(f"{name}, {one.name}: {value:.1%}")}</circle>'
                )
    told = "; ".join(
        f"{name}: " + ", ".join(f"{s.name} {v:.1%}" for s, v in zip(series, values, strict=True) if v is not None)
        for name, values in rows
    )
    return _svg(title, told, floor + 44, shown)


def log_edges(high: int, bins: int = 36) -> list[int]:
    """Whole numbers from 1 to above `high`, evenly spaced on a logarithmic axis as far as whole numbers can be."""
    last = max(2, high + 1)
    found = {round(last ** (i / bins)) for i in range(bins + 1)}
    return sorted({1, last, *found})


def even_edges(high: int, bins: int = 36) -> list[int]:
    """Whole numbers from 0 to above `high`, evenly spaced."""
    step = max(1, math.ceil((high + 1) / bins))
    return list(range(0, high + step + 1, step))


def binned(sizes: Iterable[tuple[int, int]], edges: Sequence[int]) -> list[int]:
    """How many of `(size, how many)` fall between each two edges; what lies below the first counts into it."""
    counts = [0] * (len(edges) - 1)
    place = 0
    for size, number in sorted(sizes):
        while place < len(counts) - 1 and size >= edges[place + 1]:
            place += 1
        counts[place] += number
    return counts


Scale = Callable[[float], float]


def _linear(high: float, start: float, end: float) -> tuple[Scale, list[float]]:
    """From 0 to a round number that is not below `high`; ticks are round, too (whole ones where `high` is not 1)."""
    share = high == 1.0
    step = 10 ** math.floor(math.log10(max(high, 1e-9) / 5)) if high else 1.0
    step *= next((f for f in (1, 2, 5, 10) if high / (step * f) <= 6), 10)
    step = step if share else max(1.0, step)
    most = max(step, math.ceil(round(high / step, 9)) * step)
    ticks = [round(i * step, 9) for i in range(round(most / step) + 1)]
    return lambda value: start + (end - start) * value / most, ticks


def _logarithmic(low: float, high: float, start: float, end: float) -> tuple[Scale, list[float]]:
    first, last = math.log(max(low, 1)), math.log(max(high, low + 1, 2))

    def scale(value: float) -> float:
        return start + (end - start) * (math.log(max(value, 1)) - first) / (last - first)

    steps = [d * 10**e for e in range(12) for d in (1, 2, 5)]
    ticks: list[float] = [t for t in steps if low <= t <= high]
    return scale, ticks if len(ticks) <= 9 else [t for t in ticks if math.log10(t).is_integer()]


def _axis(ticks: Sequence[float], scale: Scale, top: float, floor: float, form: str, label: str) -> list[str]:
    shown = [_line(scale(t), top, scale(t), floor, "grid", GRID) for t in ticks if floor > top]
    ends = [scale(t) for t in ticks] or [0.0]
    shown.append(_line(min(ends), floor, WIDTH - 24 if floor == top else max(ends), floor, "axis", SOFT))
    shown += [_line(scale(t), floor, scale(t), floor + 4, "axis", SOFT) for t in ticks]
    shown += [_text(scale(t), floor + 17, form.format(t), "middle", SOFT) for t in ticks]
    shown.append(_text((min(ends) + max(ends)) / 2, floor + 36, label, "middle", SOFT))
    return shown


def _legend(series: Sequence[Series], x: float) -> list[str]:
    shown = []
    for one in series:
        shown.append(
            f'<rect class="{_class(one)}" x="{_n(x)}" y="6" width="12" height="12" rx="2" fill="{one.colour}"/>'
        )
        shown.append(_text(x + 17, 16, one.name))
        x += 17 + 6.6 * len(one.name) + 20
    return shown


def _margin(rows: Sequence[tuple[str, object]]) -> float:
    return 24 + 6.5 * max((len(_short(name)) for name, _ in rows), default=4)


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"


def _class(one: Series) -> str:
    return "c-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in one.colour.lower()).strip("-")


def _rect(x: float, y: float, w: float, h: float, one: Series, tip: str, opacity: float = 1) -> str:
    clear = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    return (
        f'<rect class="{_class(one)}" x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" '
        f'fill="{one.colour}"{clear}>{_tip(tip)}</rect>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, colour: str, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line class="{kind}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" stroke="{colour}"{dashed}/>'


def _text(
    x: float, y: float, text: str, anchor: str = "start", fill: str = INK, kind: str = "", *, turn: bool = False
) -> str:
    kind = kind or ("soft" if fill == SOFT else "ink")
    turned = f' transform="rotate(-90 {_n(x)} {_n(y)})"' if turn else ""
    return (
        f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" fill="{fill}"{turned}>'
        f"{clean(text)}</text>"
    )


def _tip(text: str) -> str:
    return f"<title>{clean(text)}</title>"


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def clean(text: str) -> str:
    """A text as HTML and XML take it: marked-up characters escaped, those that no XML may hold made visible."""
    return html.escape("".join(c if _writable(c) else f"\\x{ord(c):02x}" for c in text))


def _writable(c: str) -> bool:
    code = ord(c)
    if code < 0x20:
        return c in "\n\t"
    return not any(first <= code <= last for first, last in UNSEEN)


def _svg(title: str, told: str, height: float, shown: Sequence[str]) -> str:
    name = "c" + hashlib.blake2b(f"{title} {told}".encode("utf-8", "replace"), digest_size=5).hexdigest()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {_n(height)}" width="{WIDTH}" '
        f'height="{_n(height)}" role="img" aria-labelledby="{name}t {name}d" font-size="{FONT}" '
        "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">"
        f'<title id="{name}t">{clean(title)}</title><desc id="{name}d">{clean(told)}</desc>{"".join(shown)}</svg>'
    )
