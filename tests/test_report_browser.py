"""The report in a real browser: nothing that was said runs, nothing leaves, and everything can be found and read."""

from __future__ import annotations

import pytest
from factories import NASTY, make_episode, make_move, make_pair, write_pairs, write_run

from pairgen.records import Message, Player
from pipelines import blocks, report, report_run

pytestmark = pytest.mark.browser

ROLES = ("Giver", "Guesser")
GAMES = ("taboo", "wordle", "codenames")
VERDICTS = ("violation", "accepted", "unverifiable: diverged")


def talk(*texts):
    return tuple(Message(("user", "assistant")[i % 2], text) for i, text in enumerate(texts))


def plain_pairs(count=130):
    return [
        make_pair(
            n, game=GAMES[n % 3], role=ROLES[n % 2], strategy=("verbose", "looping")[n % 2], pair_id=f"pair{n:04}",
            prompt=talk("Rules of the game.", f"CLUE: earlier {n}", f"No. Turn {n}."),
            chosen=talk_one(f"CLUE: word {n} here"),
            rejected=talk_one(f"CLUE: term {n} here, I think"), rejected_verdict=VERDICTS[n % 3],
            rejected_reason=f"reason {n}", split="test" if n % 10 == 0 else "train",
        )
        for n in range(count)
    ]  # fmt: skip


def talk_one(text):
    return (Message("assistant", text),)


def nasty_pairs():
    """Each hostile text in every field that is a text."""
    return [
        make_pair(
            n, pair_id=f"nasty{n}", prompt=talk(f"system {text}", text, text), chosen=talk_one(f"{text} chosen"),
            rejected=talk_one(f"{text} rejected"), game=f"game {text}", experiment=text,
            player=text, role=f"role {text}",
            strategy=f"strategy {text}", detail=text, model=text, outcome=text, chosen_verdict=f"accepted {text}",
            chosen_reason=text, rejected_verdict=f"violation {text}", rejected_reason=text, split="train",
        )
        for n, text in enumerate(NASTY)
    ]  # fmt: skip


def nasty_episodes():
    told = []
    for n, text in enumerate((*NASTY, "half \ud800 pair")):
        seats = (Player(f"Player {text}", f"role {text}", f"model {text}"),)
        moves = [
            make_move(0, player=seats[0].name, role=text, reply=f"{text} said", 
                      raw_reply=f"<think>{text}</think>", prompt=f"ask {text}",
                      violation=text, finish_reason=text),
        ]  # fmt: skip
        told.append(make_episode(n, players=seats, moves=moves, game=f"game {text}", experiment=text, outcome="error"))
    return told


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    report.write_report(write_pairs(folder / "plain", plain_pairs(), [make_episode()]), folder / "plain.html")
    report.write_report(write_pairs(folder / "nasty", nasty_pairs(), nasty_episodes()[:-1]), folder / "nasty.html")
    report_run.write_report(write_run(folder / "run", nasty_episodes()), folder / "run.html")
    report_run.write_report(write_run(folder / "episodes", played()), folder / "episodes.html")
    report.write_report(write_pairs(folder / "bare", bare_pairs()), folder / "bare.html")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "ROWS", 10)
        report.write_report(folder / "plain", folder / "pieces.html")
    return folder


def bare_pairs():
    """As they are read from a file that says nothing of a game."""
    nothing = dict.fromkeys(
        ("game", "experiment", "player", "role", "strategy", "detail", "model", "outcome", "rejected_reason"), ""
    )
    return [make_pair(n, **nothing, prompt=talk("How so?"), main_score=None, split="train") for n in range(2)]


def played():
    first, second = talk("Start."), talk("Start.", "CLUE: one", "Go on.")
    moves = [
        make_move(0, prompt="", reply="CLUE: one"), make_move(1, reply="GUESS: a", prompt="Guess it."),
        make_move(2, reply="CLUE: two", violation="says the word"),
    ]  # fmt: skip
    moves = [
        type(moves[0])(**{**{f: getattr(m, f) for f in m.__slots__}, "prompt": p})
        for m, p in zip(moves, (first, talk("Guess it."), second), strict=True)
    ]
    return [make_episode(1, moves=moves), make_episode(2, outcome="lose"), make_episode(3, game="wordle")]


class Open:
    """Opens pages of the reports, and collects what a page must never do."""

    def __init__(self, browser, folder):
        self.browser, self.folder, self.faults = browser, folder, []
        self.contexts = []

    def __call__(self, name, fragment="", width=1280, height=900, *, before="", until="body[data-ready]", **options):
        """`before` is a script that runs ahead of those of the page; the page is given back when `until` is there."""
        context = self.browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(10_000)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: self.faults.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.faults.append(str(e)))
        page.on("dialog", lambda d: self.faults.append(f"dialog {d.message}"))
        page.on("request", lambda r: self.faults.append(r.url) if not r.url.startswith("file:") else None)
        page.add_init_script(before)
        page.goto(f"file://{self.folder}/{name}.html{fragment}", wait_until="commit")
        page.wait_for_selector(until)
        return page


@pytest.fixture
def opened(browser, reports):
    opening = Open(browser, reports)
    yield opening
    for context in opening.contexts:
        context.close()
    assert opening.faults == []


def found(page):
    return page.inner_text("#found")


def wait_found(page, text):
    page.wait_for_function("t => document.getElementById('found').textContent.startsWith(t)", arg=text)


def heading(page):
    return page.inner_text("#detail h2")


@pytest.mark.parametrize("name", ["nasty", "run"])
def test_hostile_texts_are_shown_and_never_run(opened, name):
    page = opened(name, "#browse")
    tags = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]")
    rows = page.locator("#list button")
    assert rows.count() == len(NASTY) + (name == "run")
    told = ""
    for n in range(rows.count()):
        page.evaluate("n => pick(n)", n)
        page.wait_for_selector(f"#list button[data-place='{n}'][aria-current]")
        page.wait_for_function("n => document.getElementById('detail').dataset.place === String(n)", arg=n)
        told += page.text_content("#detail")
    for text in NASTY:
        want = text.replace("\x00", "U+0000").replace("\x1b", "U+001B").replace("\x7f", "U+007F")
        assert want.replace("\u202e", "U+202E").replace("\u2066", "U+2066") in told
    after = page.evaluate("[...document.querySelectorAll('*')].map(e => e.localName)")
    assert not set(after) - set(tags) - {"ins", "del", "details", "summary"}
    assert not {"img", "iframe", "object", "embed", "base", "foreignobject"} & set(after)
    assert page.evaluate("window.hit") is None
    assert page.locator("main a[href^=javascript]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_filters_narrow_the_list_and_count_what_they_would_give(opened):
    page = opened("plain", "#browse")
    assert found(page) == "130 pairs"
    page.select_option("#f-game", label="wordle (43)")
    assert found(page) == "43 of 130 pairs"
    strategies = page.locator("#f-strategy option").all_inner_texts()
    assert strategies == ["Strategy: all", "looping (22)", "verbose (21)"]
    page.select_option("#f-strategy", label="looping (22)")
    assert found(page) == "22 of 130 pairs"
    assert set(page.locator("#list .who b").all_inner_texts()) == {"wordle"}
    page.click("#clear")
    wait_found(page, "130 pairs")
    page.select_option("#f-rejected_verdict", label="violation (44)")
    page.select_option("#f-split", label="test (5)")
    page.select_option("#f-role", label="Giver (5)")
    assert found(page) == "5 of 130 pairs"


def test_search_finds_texts_of_every_part_whatever_their_case(opened):
    page = opened("plain", "#browse")
    for words, count in (
        ("TERM 77 HERE", 1),
        ("reason 8", 11),
        ("Rules of the GAME", 130),
        ("pair0005", 1),
        ("nowhere", 0),
    ):
        page.fill("#query", words)
        wait_found(page, f"{count} of 130" if count != 130 else "130 pairs")
    assert "Nothing passes" in page.inner_text("#list")
    page.fill("#query", "earlier 12")
    wait_found(page, "11 of 130")
    page.select_option("#scope", "said")
    wait_found(page, "0 of 130")


SLOW_ROWS = """const text = Response.prototype.text;
Response.prototype.text = async function () {
  const got = await text.call(this);
  if (got.startsWith('{"names"')) await new Promise((done) => setTimeout(done, 100));
  return got;
};"""


def test_a_search_that_begins_while_pairs_are_unpacked_finds_those_that_come_later(opened):
    page = opened("pieces", "#browse", before=SLOW_ROWS, until="#list button")
    page.fill("#query", "Rules of the game")
    page.wait_for_function("() => found !== null")
    assert page.locator("body[data-ready]").count() == 0, "the search must end before the last pairs come"
    page.wait_for_selector("body[data-ready]")
    assert found(page) == "130 pairs"


def test_the_page_box_takes_no_page_that_there_is_not(opened):
    page = opened("plain", "#browse")
    for typed, shown in (("-3", "1"), ("999", "3"), ("0", "1"), ("", "1")):
        page.fill("#page", typed)
        page.keyboard.press("Enter")
        assert page.input_value("#page") == shown


def test_pages_and_keys_step_through_all_pairs(opened):
    page = opened("plain", "#browse")
    assert page.inner_text("#pages") == "3" and page.locator("#list button").count() == 50
    first = heading(page)
    page.keyboard.press("j")
    page.wait_for_function("t => document.querySelector('#detail h2').textContent !== t", arg=first)
    page.keyboard.press("k")
    page.wait_for_function("t => document.querySelector('#detail h2').textContent === t", arg=first)
    page.keyboard.press("ArrowRight")
    assert page.input_value("#page") == "2"
    page.keyboard.press("ArrowUp")
    assert page.input_value("#page") == "1" and page.locator("#list [aria-current]").get_attribute("data-place") == "49"
    page.fill("#page", "3")
    page.keyboard.press("Enter")
    assert page.locator("#list button").count() == 30
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.type("j?")
    assert page.input_value("#query") == "j?" and not page.evaluate("document.getElementById('keys').open")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")
    page.keyboard.press("o")
    assert page.is_visible("#overview") and page.is_hidden("#browse")


def test_a_link_to_one_pair_survives_a_reload(opened):
    page = opened("plain", "#pair=pair0097")
    assert "pair pair0097" in page.inner_text("#detail")
    page.keyboard.press("j")
    page.wait_for_function("() => !document.getElementById('detail').textContent.includes('pair0097')")
    at = page.url
    shown = page.inner_text("#detail .facts >> nth=1")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.url == at and page.inner_text("#detail .facts >> nth=1") == shown
    page.select_option("#f-game", label="taboo (44)")
    page.evaluate("location.hash = '#pair=pair0001'")
    page.wait_for_function("() => document.getElementById('detail').textContent.includes('pair pair0001')")
    page.evaluate("location.hash = '#pair=gone'")
    wait_found(page, "There is no pair gone")


def test_a_pair_shows_the_prompt_what_differs_and_the_game_master(opened):
    page = opened("plain", "#pair=pair0003")
    bubbles = page.locator("#detail .bubble .said").all_inner_texts()
    assert bubbles == ["Rules of the game.", "CLUE: earlier 3", "No. Turn 3."]
    assert page.locator(".side.chosen ins").all_inner_texts() == ["word"]
    assert "".join(page.locator(".side.rejected del").all_text_contents()) == "term, I think"
    assert "violation" in page.inner_text(".side.rejected .verdict") and "reason 3" in page.inner_text(".side.rejected")
    boxes = [page.locator(f".side.{side}").bounding_box() for side in ("chosen", "rejected")]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    page.keyboard.press("p")
    assert page.locator("#detail .bubble").first.is_hidden()
    page.keyboard.press("m")
    assert page.locator("#sides.plain").count() == 1


def test_the_difference_is_by_words_and_bounded(opened):
    page = opened("plain")
    both = page.evaluate("difference('a b c', 'a x c')")
    assert both == [[[True, "a "], [False, "b"], [True, " c"]], [[True, "a "], [False, "x"], [True, " c"]]]
    assert page.evaluate("difference('', 'x y')") == [[], [[False, "x y"]]]
    many = page.evaluate(
        "() => { const a = 'same ' + 'ab '.repeat(9000) + 'end', b = 'same ' + 'cd '.repeat(9000) + 'end';"
        " const t = performance.now();"
        " const [l, r] = difference(a, b); return [l.map(p => p[1]).join('') === a, r.at(-1)[1],"
        " performance.now() - t]; }"
    )
    assert many[0] and many[1].strip() == "end" and many[2] < 2_000


def test_an_episode_is_told_by_player_with_what_broke_a_rule(opened):
    page = opened("episodes", "#browse")
    page.select_option("#f-outcome", label="success (2)")
    page.select_option("#f-game", label="taboo (1)")
    assert page.locator("#detail .talk .said").all_inner_texts() == ["Start.", "CLUE: one", "Go on.", "CLUE: two"]
    assert "says the word" in page.inner_text(".bubble.broken")
    page.get_by_role("button", name="Player 2 (Guesser)").click()
    page.wait_for_function("() => document.querySelector('#detail .talk').textContent.includes('GUESS: a')")
    page.click("#clear")
    page.fill("#query", "guess: A")
    wait_found(page, "1 of 3 episodes")


def colours(page):
    return page.evaluate("['background-color', 'color'].map(p => getComputedStyle(document.body).getPropertyValue(p))")


def test_light_and_dark_follow_the_system_until_one_is_picked(opened):
    light, dark = colours(opened("plain")), colours(opened("plain", color_scheme="dark"))
    assert light != dark
    page = opened("plain", color_scheme="dark")
    page.keyboard.press("t")
    assert colours(page) == light
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert colours(page) == light
    page.keyboard.press("t")
    assert colours(page) == dark


@pytest.mark.parametrize("name", ["plain", "nasty", "run"])
@pytest.mark.parametrize("fragment", ["#overview", "#browse"])
def test_on_a_phone_nothing_is_wider_than_the_screen(opened, name, fragment):
    page = opened(name, fragment, width=360, height=780)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if fragment == "#browse":
        page.locator("#list button").nth(1).click()
        page.wait_for_selector("#detail h2")
        assert page.is_hidden("#list") and page.evaluate("document.documentElement.scrollWidth") <= 360
        page.click("text=‹ List")
        assert page.is_visible("#list")


def test_on_a_phone_going_back_from_a_pair_leads_to_its_place_in_the_list(opened):
    page = opened("plain", "#browse", width=360, height=780)
    for leave in (page.go_back, lambda: page.click("text=‹ List")):
        page.locator("#list button").nth(30).click()
        page.click("text=↓ Next")
        page.wait_for_function("() => document.getElementById('detail').dataset.place === '31'")
        leave()
        page.wait_for_selector("#list button[data-place='31'][aria-current]")
        assert page.url.endswith("#browse") and page.is_hidden("#detail")
        page.wait_for_function(
            "() => { const at = document.querySelector('#list [aria-current]').getBoundingClientRect();"
            " return at.top >= 0 && at.bottom <= innerHeight; }"
        )


def test_on_a_phone_a_link_opens_its_pair_the_first_as_any_other(opened):
    first = opened("plain").evaluate("store.get(0, 'id')")
    for name in (first, "pair0097"):
        page = opened("plain", f"#pair={name}", width=360, height=780)
        page.wait_for_function("t => document.getElementById('detail').textContent.includes(t)", arg=f"pair {name}")
        assert page.is_visible("#detail") and page.is_hidden("#list")
        page.click("text=‹ List")
        assert page.is_visible("#list")


def test_a_pair_that_says_nothing_of_a_game_is_shown_without_gaps(opened):
    page = opened("bare", "#browse")
    page.wait_for_selector("#detail h2")
    assert heading(page).startswith("Pair ") and "/" not in heading(page)
    facts = page.inner_text("#detail > .facts")
    assert facts.startswith("pair ") and ";" not in facts
    assert page.locator(".bubble .by").all_inner_texts() == ["user"]
    assert "" not in page.locator("#detail .chip, #list .chip").all_inner_texts()


NUMBERS = """() => {
  const light = (colour) => {
    const linear = (v) => (v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    const [r, g, b] = colour.match(/[0-9.]+/g).map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b + .05;
  };
  return [...document.querySelectorAll("svg text.on")].map((text) => {
    const x = +text.getAttribute("x"), y = +text.getAttribute("y");
    const bar = [...text.parentNode.querySelectorAll("rect")].find((r) => {
      const [left, top, wide, high] = ["x", "y", "width", "height"].map((a) => +r.getAttribute(a));
      return left < x && x < left + wide && top < y && y < top + high;
    });
    const both = [light(getComputedStyle(text).fill), light(getComputedStyle(bar).fill)];
    return Math.max(...both) / Math.min(...both);
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["plain", "episodes", "run"])
def test_numbers_on_bars_can_be_read(opened, name, scheme):
    contrasts = opened(name, color_scheme=scheme).evaluate(NUMBERS)
    assert contrasts and min(contrasts) >= 4.5


def test_a_chart_is_saved_as_a_file_of_its_own(opened, tmp_path):
    import xml.etree.ElementTree as ET

    page = opened("plain")
    with page.expect_download() as download:
        page.locator("#chart-lengths button").click()
    download.value.save_as(tmp_path / "chart.svg")
    assert download.value.suggested_filename == "chart-lengths.svg"
    assert ET.parse(tmp_path / "chart.svg").getroot().tag.endswith("svg")


def test_without_scripts_the_overview_can_be_read(browser, reports):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{reports}/plain.html")
    assert page.is_visible("#chart-funnel svg") and "Without JavaScript" in page.content()
    context.close()
