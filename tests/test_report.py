"""What `pairgen report` writes, without a browser: one file, whole, beside the set and never in it."""

import base64
import gzip
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from factories import make_episode, make_episodes, make_pair, write_run

from pairgen.cli import main
from pipelines import page
from pipelines.page import Item, Section, Shape, write_page
from pipelines.pairset import read_manifest, read_pairs

SHAPE = Shape("pairs", "pairs", "Pairs", {}, ("game",), ("game",), ("game",), "game")


@pytest.fixture(autouse=True)
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"p{i // 3}", "chosen": f"c{i}", "rejected": f"r{i} is longer"} for i in range(50)]
    Path("x.json").write_text(json.dumps(rows))
    call("import", "x.json", "--out", "pairs")
    write_run(Path("run"), [*make_episodes(tasks=5), make_episode(9, outcome="error"), make_episode(8, outcome="lose")])


def call(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def unpacked(path):
    """The data of a page, by the id of the element that holds it."""
    found = re.findall(r'<script type="text/plain" id="([^"]+)">([^<]*)</script>', Path(path).read_text())
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in found}


def test_all_pairs_are_in_the_page_whole():
    told = json.loads(call("report", "pairs", "--json").stdout.splitlines()[-1])
    assert (told["out"], told["pairs"]) == ("pairs.report.html", 50)
    data = unpacked("pairs.report.html")
    pairs = {pair.pair_id: pair for pair in read_pairs(Path("pairs"))}
    assert sorted(data["index"]["ids"]) == sorted(pairs)
    strings, rows = data["block-0"]["strings"], data["block-0"]["items"]
    for name, row in zip(data["index"]["ids"], rows, strict=True):
        for side in ("prompt", "chosen", "rejected"):
            said = [(role, strings[i]) for role, i in row[side]]
            assert said == [(m.role, m.content) for m in getattr(pairs[name], side)]
    assert len(strings) == len(set(strings))


def test_the_report_lies_beside_the_set_which_stays_as_it_is():
    before = sorted(str(path) for path in Path("pairs").rglob("*"))
    call("report", "pairs")
    assert sorted(str(path) for path in Path("pairs").rglob("*")) == before
    assert Path("pairs.report.html").is_file()
    assert call("report", ".").exit_code == 1


def test_the_same_set_gives_the_same_bytes():
    first = call("report", "pairs", "--out", "a.html")
    assert first.exit_code == 0
    call("report", "pairs", "--out", "b.html")
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()


def test_a_file_that_is_there_is_replaced_only_when_told():
    Path("mine.html").write_text("mine")
    refused = call("report", "pairs", "--out", "mine.html")
    assert refused.exit_code == 2 and "--overwrite" in refused.output
    assert Path("mine.html").read_text() == "mine"
    assert call("report", "pairs", "--out", "mine.html", "--overwrite").exit_code == 0
    assert "<!doctype html>" in Path("mine.html").read_text()
    assert "name a file" in call("report", "pairs", "--out", "run").output


def test_the_funnel_and_the_audit_are_tables_of_the_page():
    call("report", "pairs")
    text, manifest = Path("pairs.report.html").read_text(), read_manifest(Path("pairs"))
    assert f"{manifest.train} train, {manifest.test} test" in text
    assert "the longer side" in text and "chart-funnel" in text
    assert "Not checked: the set may hold evaluation instances" in text


def test_a_run_tells_outcomes_moves_and_faults():
    told = json.loads(call("report", "run", "--json").stdout.splitlines()[-1])
    assert (told["kind"], told["episodes"]) == ("episodes", 12)
    text, data = Path("run.report.html").read_text(), unpacked("run.report.html")
    assert "it broke" in text and "Moves per episode" in text
    assert sorted(data["index"]["columns"]["outcome"]["names"]) == ["error", "lose", "success"]
    talk = data["block-0"]["items"][0]["players"][0]["talk"]
    strings = data["block-0"]["strings"]
    assert [(role, strings[i]) for role, i, *_ in talk][-1][0] == "assistant"


def test_what_is_neither_set_nor_run_is_said():
    Path("empty").mkdir()
    result = call("report", "empty")
    assert result.exit_code == 1 and "neither a pair set nor a run" in result.output
    assert call("report", "run", "--tokenizer", "x").exit_code == 2


def test_items_are_packed_in_blocks_and_one_at_a_time(monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 10)
    open_items, most, texts = 0, 0, []

    def items():
        nonlocal open_items, most
        for i in range(35):
            open_items += 1
            most = max(most, open_items)
            yield Item(f"i{i}", "p", {"game": "g"}, lambda strings: {"facts": [["n", strings.place("same")]]})

    def write(text):
        nonlocal open_items
        open_items = 0
        texts.append(text)

    assert write_page(write, "T", [Section("a", "A", "")], SHAPE, items()) == 35
    assert most == 10
    assert sum('id="block-' in text for text in texts) == 4


def test_a_title_cannot_end_its_element():
    texts = []
    write_page(texts.append, "</title><script>", [Section("a", "<b>", page.table(("<h>",), [("<c>",)]))], SHAPE, [])
    text = "".join(texts)
    assert "</title><script>" not in text
    assert "&lt;/title&gt;&lt;script&gt;" in text and "&lt;h&gt;" in text and "&lt;c&gt;" in text


def test_long_tables_are_folded():
    assert "<details>" not in page.table(("n",), [(i,) for i in range(page.LONG_TABLE)])
    assert "<details>" in page.table(("n",), [(i,) for i in range(page.LONG_TABLE + 1)])


def test_a_pair_of_the_factory_has_its_verdict_as_a_filter():
    from pipelines import pairset
    from pipelines.manifest import with_pairs

    pairs = [make_pair(i, split="train", rejected_verdict=v) for i, v in enumerate(("accepted", "violation (order)"))]
    pairset.write_pairset(Path("two"), pairs, [], [], with_pairs(read_manifest(Path("pairs")), pairs, []))
    call("report", "two")
    columns = unpacked("two.report.html")["index"]["columns"]
    assert sorted(columns["said"]["names"]) == ["accepted", "violation"]
    assert sorted(columns["rejected_verdict"]["names"]) == ["accepted", "violation (order)"]
