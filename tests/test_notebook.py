"""What was written once is read again, whatever it holds and wherever a kill tore it."""

from __future__ import annotations

import pytest

from pipelines.notebook import Notebook


@pytest.mark.parametrize("text", ["plain", "two\nlines", "a\u2028b\x85c\x0bd", "\ud800", "é\u202e漢", ""])
def test_any_text_is_read_as_it_was_written(tmp_path, text):
    Notebook(tmp_path / "n").add([["k", text, None], ["l", text, 1]])
    assert Notebook(tmp_path / "n").lines == [["k", text, None], ["l", text, 1]]


@pytest.mark.parametrize("torn", [b'["half', b'["half", "\xc3', b"[1, 2]", b"{}", b"\xff\xfe"])
def test_a_torn_line_costs_none_after_it(tmp_path, torn):
    path = tmp_path / "n"
    Notebook(path).add([["first"]])
    path.write_bytes(path.read_bytes() + torn)
    notebook = Notebook(path)
    notebook.add([["second"]])
    notebook.add([["third"]])
    lines = Notebook(path).lines
    assert [line for line in lines if line != [1, 2]] == [["first"], ["second"], ["third"]]


def test_nothing_to_add_makes_no_file(tmp_path):
    Notebook(tmp_path / "n").add([])
    assert not (tmp_path / "n").exists() and Notebook(tmp_path / "n").lines == []
