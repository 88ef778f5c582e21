"""Blocks hold each message once and give back what went in, whatever it was."""

import base64
import gzip
import io
import json
import re

import pytest
from factories import NASTY

from pairgen.records import Message
from pipelines import blocks as module
from pipelines.blocks import Blocks


def unpacked(file):
    found = {"texts": [], "names": [], "nodes": [[-1, -1, -1]], "rows": []}
    for kind, data in re.findall(rb'data-kind="(\w+)"[^>]*>([^<]*)</script>', file.getvalue()):
        block = json.loads(gzip.decompress(base64.b64decode(data)))
        assert kind != b"texts" or block["first"] == len(found["texts"])
        for name in found:
            found[name] += block.get(name, [])
    return found


def test_a_prompt_that_goes_on_costs_what_it_adds():
    file = io.BytesIO()
    blocks = Blocks(file)
    first = [Message("user", "rules " * 100), Message("assistant", "A")]
    end = blocks.talk(first)
    further = blocks.talk([*first, Message("user", "no")])
    assert blocks.talk(first) == end and further == end + 1
    assert blocks.talk([Message("user", "no")], end) == further
    blocks.row([end, further])
    blocks.close()
    found = unpacked(file)
    assert len(found["nodes"]) == 1 + 3 and found["texts"] == ["rules " * 100, "A", "no"]
    assert found["nodes"][further] == [end, found["names"].index("user"), 2]


@pytest.mark.parametrize("size", [1, 50, 1_000_000])
def test_texts_come_back_in_their_order_however_they_are_cut(monkeypatch, size):
    monkeypatch.setattr(module, "TEXT_CHARACTERS", size)
    monkeypatch.setattr(module, "ROWS", 2)
    texts = [*NASTY, "\ud800 half", *(f"text {n}" for n in range(50))]
    file = io.BytesIO()
    blocks = Blocks(file)
    numbers = [blocks.text(text) for text in texts]
    for number in numbers:
        blocks.row([number, blocks.name(f"name {number}")])
    blocks.close()
    found = unpacked(file)
    assert [found["texts"][n] for n in numbers] == texts
    assert found["rows"] == [[n, i] for i, n in enumerate(numbers)]
    assert found["names"] == [f"name {n}" for n in numbers]
    assert b"<" not in re.sub(rb"</?script[^>]*>", b"", file.getvalue())
