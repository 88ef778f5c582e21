"""Charts are whole SVG documents that say in words what they draw, and bins that lose nothing."""

import xml.etree.ElementTree as ET

import pytest

from pipelines.charts import (
    BLUE,
    RED,
    Mark,
    Series,
    binned,
    clean,
    dots,
    even_edges,
    histogram,
    log_edges,
    ranges,
    stacked,
)
from pipelines.lengths import Five, bins_of, five_of

ONE, TWO = Series("won", BLUE), Series("lost", RED)
SVG = "{http://www.w3.org/2000/svg}"
NAME = "<b>\x00 & \u202e</svg>"


def drawn():
    return {
        "stacked": stacked("T", "episodes", [(NAME, (3, 1)), ("wordle", (0, 2))], (ONE, TWO)),
        "histogram": histogram(
            "T", "tokens", "pairs", [0, 10, 20], [(ONE, [3, 1]), (TWO, [0, 4])], mark=Mark(15, NAME)
        ),
        "ranges": ranges("T", "moves", [(NAME, Five(1, 2, 3, 4, 90))], ONE),
        "dots": dots("T", "right", [(NAME, (0.9, None))], (ONE, TWO), Mark(0.5, "a coin")),
    }


@pytest.mark.parametrize("kind", drawn())
def test_a_chart_is_a_document_of_its_own_with_title_and_description(kind):
    root = ET.fromstring(drawn()[kind])
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    named = [root.find(f"{SVG}{tag}").get("id") for tag in ("title", "desc")]
    assert root.get("aria-labelledby").split() == named
    assert len(root.find(f"{SVG}desc").text) > 10
    assert not [e for e in root.iter() if e.tag in (f"{SVG}b", f"{SVG}script")]


def test_the_lengths_of_bars_are_as_their_values():
    root = ET.fromstring(stacked("T", "episodes", [("a", (30, 10)), ("b", (10, 0))], (ONE, TWO)))
    wide = {
        e.find(f"{SVG}title").text: float(e.get("width"))
        for e in root.iter(f"{SVG}rect")
        if e.find(f"{SVG}title") is not None
    }
    assert len(wide) == 3
    assert wide["a: 30 won (75.0%)"] == pytest.approx(3 * wide["a: 10 lost (25.0%)"], abs=0.3)
    assert wide["b: 10 won (100.0%)"] == pytest.approx(wide["a: 10 lost (25.0%)"], abs=0.3)


def test_nothing_is_drawn_outside_of_the_chart():
    for text in drawn().values():
        root = ET.fromstring(text)
        width = float(root.get("viewBox").split()[2])
        for rect in root.iter(f"{SVG}rect"):
            assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= width


@pytest.mark.parametrize("high", [0, 1, 2, 7, 100, 9_999])
@pytest.mark.parametrize("edges", [log_edges, even_edges])
def test_every_size_falls_into_one_bin(edges, high):
    found = edges(high)
    assert found == sorted(set(found)) and found[-1] > high
    sizes = [(size, 2) for size in range(high + 1)]
    assert sum(binned(sizes, found)) == 2 * (high + 1)


def test_sizes_are_counted_from_their_lower_edge():
    assert binned([(0, 1), (9, 1), (10, 5), (19, 1)], [0, 10, 20]) == [2, 6]


def test_the_histogram_of_a_manifest_counts_every_pair():
    bins = bins_of([0, 5, 5, 99, 1_000])
    assert sum(b.pairs for b in bins) == 5 and len(bins) <= 36 and bins[-1].high > 1_000
    assert [b.high for b in bins[:-1]] == [b.low for b in bins[1:]]
    assert bins_of([]) == ()


def test_the_spread_is_of_sizes_that_occur():
    assert five_of([(1, 1), (2, 1), (3, 1), (4, 1), (90, 1)]) == (1, 2, 3, 4, 90)
    assert five_of([(7, 100)]) == (7, 7, 7, 7, 7)


def test_text_is_made_safe_for_markup():
    assert clean("<a href='x'>\x00\u202e\ud800") == "&lt;a href=&#x27;x&#x27;&gt;\\x00\\x202e\\xd800"
    assert clean("tab\tline\n é 漢 🦊") == "tab\tline\n é 漢 🦊"
