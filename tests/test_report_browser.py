"""The report as a person has it: opened from the disk in a real browser, without a network."""

import json
import re
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from browser import open_browser
from factories import make_episode, make_move, make_pair, write_run
from playwright.sync_api import expect

from pairgen.records import Message
from pipelines import pairset
from pipelines.adopt import adopt
from pipelines.manifest import with_pairs
from pipelines.report import write_report

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script><script>window.broken = 1</script>", "<img src=x onerror='window.broken = 2'>", "<!--", "]]>",
    "javascript:window.broken=3", "{{7*7}} ${window.broken = 4}", "\u202etxt.exe", "x\u0000y", "", "🦜" * 3, "a" * 9000,
    "\u2028\u2029", "'\"&amp;&lt;", "<style>*{display:none}</style>", "</title><h1>", "=cmd|'/c calc'!A1",
)  # fmt: skip


def spoiled(number):
    """A pair that holds a hostile text in every field that can hold one."""
    text = HOSTILE[number % len(HOSTILE)]
    names = dict.fromkeys(("detail", "player", "role", "model", "chosen_reason", "rejected_reason"), text or "none")
    return make_pair(
        number, game=f"game {text[:60]}", experiment=text, strategy=text[:60] or "s",
        pair_id=f"{number:03d}{text[:40]}",
        prompt=(Message("user", f"Ask {number} {text}"), Message(text[:20] or "user", text)),
        chosen=(Message("assistant", f"chosen {text}"),), rejected=(Message("assistant", f"rejected {text}"),),
        rejected_verdict=f"violation {text[:30]}", split="test" if number % 4 == 0 else "train", **names,
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A manifest to dress other pairs in."""
    folder = tmp_path_factory.mktemp("base")
    rows = [{"prompt": f"p{i}", "chosen": f"c{i}", "rejected": f"r{i} longer"} for i in range(20)]
    (folder / "x.json").write_text(json.dumps(rows))
    return adopt(folder / "x.json", folder / "set").manifest


def written(folder, base, pairs):
    train, test = ([p for p in pairs if p.split == side] for side in ("train", "test"))
    pairset.write_pairset(folder / "set", train, test, [], with_pairs(base, train, test))
    return write_report(folder / "set", None).path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, base):
    return written(tmp_path_factory.mktemp("hostile"), base, [spoiled(i) for i in range(2 * len(HOSTILE))])


@pytest.fixture(scope="module")
def many(tmp_path_factory, base):
    """A thousand plain pairs: three blocks and twenty pages."""
    games, strategies = ("taboo", "wordle"), ("verbose", "looping", "contrast")
    pairs = [
        make_pair(
            i, game=games[i % 2], strategy=strategies[i % 3], pair_id=f"id{i:04d}", split="train" if i % 10 else "test",
            prompt=(Message("system", "Be brief."), Message("user", f"Clue number {i}")),
            chosen=(Message("assistant", f"GUESS: bird{i}"),),
            rejected=(Message("assistant", f"I say GUESS: bird{i} indeed"),),
        )
        for i in range(1000)
    ]  # fmt: skip
    return written(tmp_path_factory.mktemp("many"), base, pairs)


class Seen:
    """A page with what went wrong on it: messages of the console, errors, requests that would leave the file."""

    def __init__(self, browser, path, place="", **view):
        self.context = browser.new_context(**view)
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "request", lambda r: None if r.url.startswith(("file:", "blob:", "data:")) else self.wrong.append(r.url)
        )
        self.page.goto(path.as_uri() + place)
        ready(self.page)

    def __enter__(self):
        return self.page

    def __exit__(self, *failed):
        self.context.close()
        if not failed[0]:
            assert self.wrong == []


def listed(page):
    return page.locator("#list li").count()


def counted(page, text):
    expect(page.locator("#count")).to_have_text(re.compile(f"^{text}"))


def ready(page):
    expect(page.locator("html")).to_have_attribute("data-ready", "yes")


def test_hostile_texts_are_shown_as_texts_and_nothing_of_them_runs(browser, hostile):
    with Seen(browser, hostile) as page:
        for number in range(len(HOSTILE)):
            page.locator("#list li").nth(number).click()
            expect(page.locator("#list li").nth(number)).to_have_attribute("aria-selected", "true")
        body = page.locator("body").inner_text()
        assert page.evaluate("window.broken") is None
        assert page.locator("main img, main style, main script, h1 h1").count() == 0
        assert page.locator("h1").count() == 1
        assert page.locator("#list li").first.is_visible()
        assert "<img src=x onerror=" in body


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_the_address_leads_to_any_pair_whatever_it_is_called(browser, hostile, number):
    text = HOSTILE[number]
    with Seen(browser, hostile, f"#pair={quote(f'{number:03d}{text[:40]}')}") as page:
        page.locator(".side.chosen .text").wait_for()
        assert page.locator(".side.chosen .text").evaluate("e => e.textContent") == f"chosen {text}"
        assert page.locator(".side.rejected .text").evaluate("e => e.textContent") == f"rejected {text}"
        assert page.evaluate("window.broken") is None


def test_the_policy_lets_nothing_out(browser, many):
    context = browser.new_context()
    page = context.new_page()
    page.goto(many.as_uri())
    policy = page.locator("meta[http-equiv]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.evaluate("fetch('data:,x').then(() => 'let through', () => 'refused')") == "refused"
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.broken = 1'}))")
    assert page.evaluate("window.broken") is None
    context.close()


def test_filters_narrow_the_list_together_and_are_cleared(browser, many):
    with Seen(browser, many) as page:
        counted(page, "1,000 pairs")
        page.locator("#filter-game").select_option(label="taboo (500)")
        counted(page, "500 of")
        page.locator("#filter-strategy").select_option(label="looping (333)")
        counted(page, "166 of")
        assert {t.split(" · ")[1] for t in page.locator("#list .sub span:first-child").all_inner_texts()} == {"looping"}
        page.locator("#filter-split").select_option(label="test (100)")
        counted(page, "33 of")
        page.locator("#clear").click()
        counted(page, "1,000 pairs")


def test_search_reads_prompts_and_both_sides_across_all_blocks(browser, many):
    with Seen(browser, many) as page:
        for words, found in (("clue number 99", 11), ("BIRD777 INDEED", 1), ("id0999", 1), ("nothing says this", 0)):
            page.locator("#search").fill(words)
            counted(page, f"{found} of")
            assert listed(page) == found
        assert page.locator("#detail").inner_text().startswith("Nothing matches")


def test_pages_and_keys_step_through_the_pairs(browser, many):
    with Seen(browser, many) as page:
        assert listed(page) == 50
        assert page.locator("#page").inner_text() == "page 1 of 20"
        page.keyboard.press("n")
        assert page.locator("#page").inner_text() == "page 2 of 20"
        page.keyboard.press("b")
        first = page.locator("#list li[aria-selected=true]").get_attribute("id")
        for _ in range(50):
            page.keyboard.press("j")
        assert page.locator("#page").inner_text() == "page 2 of 20"
        for _ in range(50):
            page.keyboard.press("k")
        assert page.locator("#list li[aria-selected=true]").get_attribute("id") == first
        assert page.locator("#prompt").get_attribute("open") is not None
        page.keyboard.press("p")
        assert page.locator("#prompt").get_attribute("open") is None
        page.keyboard.press("/")
        page.keyboard.type("bird12")
        counted(page, "11 of")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert page.locator("#help").is_visible()


def test_a_shown_pair_is_in_the_address_and_a_reload_shows_it_again(browser, many):
    with Seen(browser, many) as page:
        page.locator("#list li").nth(7).click()
        expect(page).to_have_url(re.compile("#pair="))
        shown = page.locator("#detail h3 + p code").inner_text()
        assert page.evaluate("location.hash") == f"#pair={shown}"
        page.reload()
        ready(page)
        expect(page.locator("#detail h3 + p code")).to_have_text(shown)
        assert page.locator("#detail h3 + p code").inner_text() == shown
        page.evaluate("location.hash = '#pair=id0990'")
        expect(page.locator("#detail h3 + p code")).to_have_text("id0990")


def test_the_difference_is_marked_on_both_sides(browser, many):
    with Seen(browser, many, "#pair=id0005") as page:
        page.locator(".side.rejected mark").first.wait_for()
        assert page.locator(".side.rejected mark").all_inner_texts() == ["I say ", " indeed"]
        assert page.locator(".side.chosen mark").count() == 0
        assert page.locator(".side.rejected .badge").inner_text() == "violation"


def test_light_and_dark_follow_the_system_and_the_button(browser, many):
    def colour(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    with Seen(browser, many, color_scheme="dark") as page:
        dark = colour(page)
        page.locator("#theme").click()
        light = colour(page)
        assert dark != light
        page.keyboard.press("t")
        assert colour(page) == dark
    with Seen(browser, many, color_scheme="light") as page:
        assert colour(page) == light


@pytest.mark.parametrize("report", ["many", "hostile", "run"])
def test_a_phone_scrolls_down_only(browser, report, request):
    with Seen(browser, request.getfixturevalue(report), viewport={"width": 360, "height": 740}, is_mobile=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_chart_is_saved_as_a_drawing_of_its_own(browser, many, tmp_path):
    with Seen(browser, many) as page:
        with page.expect_download() as download:
            page.locator("#chart-lengths button").click()
        download.value.save_as(tmp_path / "chart.svg")
    drawn = ElementTree.parse(tmp_path / "chart.svg").getroot()
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert "characters" in "".join(drawn.itertext())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder, outcomes = tmp_path_factory.mktemp("run"), ("success", "lose", "aborted")
    episodes = [
        make_episode(i, outcome=outcomes[i % 3], moves=(make_move(0, reply=f"say {HOSTILE[i % 8]} {i}"),))
        for i in range(9)
    ]  # fmt: skip
    return write_report(write_run(folder / "run", episodes), None).path


def test_a_run_shows_its_episodes_as_talk(browser, run):
    with Seen(browser, run) as page:
        counted(page, "9 episodes")
        page.locator("#filter-outcome").select_option(label="aborted (3)")
        counted(page, "3 of")
        page.locator("#list li").nth(1).click()
        page.locator("#detail .bubble.assistant").first.wait_for()
        assert page.locator("#detail .bubble.assistant").first.inner_text().startswith("assistant")
        assert page.evaluate("window.broken") is None
