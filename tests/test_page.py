"""The shell of a report lets nothing in that was said, loads nothing, and is written where it harms nothing."""

import base64
import hashlib
import json
import re

import pytest
from factories import NASTY

from pairgen.errors import UsageProblem
from pipelines.page import Cover, check_place, figure, folded, json_text, note, section, table, tiles, write_page


def page(folder, *sections, title="Pairs"):
    blocks = folder / "blocks"
    blocks.write_bytes(b'<script type="text/plain" class="block" data-kind="rows">AA==</script>\n')
    write_page(folder / "page.html", Cover(title, "lead", "Pairs"), sections, {"kind": "pairs", "t": title}, blocks)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_the_policy_allows_exactly_the_scripts_and_the_style_of_the_page(tmp_path):
    text = page(tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy and "connect-src 'none'" in policy and "unsafe" not in policy
    inside = re.findall(r"<script>(.*?)</script>|<style>(.*?)</style>", text, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256("".join(pair).encode()).digest()).decode() for pair in inside}
    assert hashes == set(re.findall(r"sha256-([^']*)", policy)) and len(hashes) == 4


def test_nothing_in_the_page_names_another_place(tmp_path):
    text = page(tmp_path)
    assert set(re.findall(r"https?://[^\"'\s<)]*", text)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|\bfetch\(|style=\"|\son\w+=\"", text
    )


@pytest.mark.parametrize("nasty", [*filter(None, NASTY), "\ud800"])
def test_hostile_text_stays_text_in_every_part(tmp_path, nasty):
    parts = (
        table((nasty,), [(nasty,)]),
        note(nasty),
        tiles([(nasty, nasty)]),
        figure("f", nasty, "", folded(nasty, "")),
    )
    text = page(tmp_path, section("s", nasty, nasty, *parts), title=nasty)
    plain = page(tmp_path, section("s", "x", "x", table(("x",), [("x",)]), note("x"), tiles([("x", "x")]),
                                   figure("f", "x", "", folded("x", ""))), title="x")  # fmt: skip
    assert re.findall(r"<[a-z/!]+", text) == re.findall(r"<[a-z/!]+", plain)
    assert not re.search(r"[\x00-\x08\x7f\u202e\u2066]", text)


def test_json_in_the_page_is_the_data_without_a_bracket():
    assert "<" not in json_text(list(NASTY)) and json.loads(json_text(list(NASTY))) == list(NASTY)


def test_numbers_stand_to_the_right():
    html = table(("game", "n", "share"), [("a", 1_000, "9.5%"), ("b", 2, "-")])
    assert re.findall(r'<th( class="n")?>', html) == ["", ' class="n"', ' class="n"'] and "1,000" in html


def test_a_report_is_written_beside_the_folder_and_over_reports_alone(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    with pytest.raises(UsageProblem, match="would lie in"):
        check_place(folder / "deep" / "r.html", folder, overwrite=True)
    with pytest.raises(UsageProblem, match="is a folder"):
        check_place(tmp_path, folder, overwrite=True)
    other = tmp_path / "mine.html"
    other.write_text("<p>mine</p>")
    with pytest.raises(UsageProblem, match="--overwrite"):
        check_place(other, folder, overwrite=False)
    with pytest.raises(UsageProblem, match="no report of pairgen"):
        check_place(other, folder, overwrite=True)
    page(tmp_path)
    check_place(tmp_path / "page.html", folder, overwrite=True)
    check_place(tmp_path / "new.html", folder, overwrite=False)
    with pytest.raises(UsageProblem, match="pairgen import .* --out PAIRS"):
        check_place(tmp_path / "new.html", tmp_path / "mine.html", overwrite=False)
