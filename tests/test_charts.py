from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.charts import Series, bars, bin_edges, binned, histogram

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.lists(st.integers(0, 100_000), min_size=1, max_size=60)


def drawn(svg):
    return ElementTree.fromstring(svg)


def filled(root):
    return [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]


def test_bars_are_as_long_as_their_numbers_and_say_them():
    root = drawn(bars("T", ["a", "b"], [Series("x", (10, 20)), Series("y", (0, 5))], "pairs"))
    found = {r.find(f"{SVG}title").text: float(r.get("width")) for r in filled(root)}
    assert set(found) == {"a: 10 x", "b: 20 x", "b: 5 y"}
    assert found["b: 20 x"] == pytest.approx(2 * found["a: 10 x"], abs=0.2)


def test_texts_in_a_chart_are_escaped():
    root = drawn(bars("<T>", ["</svg><script>"], [Series("&", (1,))], "'\""))
    assert "</svg><script>" in "".join(root.itertext())
    assert root.get("aria-label") == "<T>"


def test_a_chart_without_numbers_is_still_a_chart():
    assert drawn(bars("T", [], [Series("x", ())], "pairs")).tag == f"{SVG}svg"
    edges = bin_edges([])
    assert drawn(histogram("T", edges, [Series("x", binned([], edges))], "u", "n")).tag == f"{SVG}svg"


@given(numbers)
def test_every_value_is_in_one_bin(values):
    edges = bin_edges(values)
    assert edges == sorted(set(edges))
    assert edges[0] <= min(values) and max(values) <= edges[-1]
    assert sum(binned(values, edges)) == len(values)


def test_an_edge_belongs_to_the_bin_that_it_begins():
    assert binned([0, 9, 10, 29, 30], [0, 10, 20, 30]) == (2, 1, 2)


@given(numbers)
def test_a_histogram_draws_what_was_counted(values):
    edges = bin_edges(values)
    counts = binned(values, edges)
    assert len(filled(drawn(histogram("T", edges, [Series("x", counts)], "u", "n")))) == sum(c > 0 for c in counts)
