"""How long the report of a large pair set takes: to write, to open, to filter and to search, in headless Chromium."""

from __future__ import annotations

import dataclasses
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pairgen.console import say, table
from pairgen.records import Message, Pair
from pipelines import pairset
from pipelines.manifest import with_pairs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
WORD = re.compile(r"[a-z]{4,}")
RARE = "xylophone"
"""Is put into one pair, to be searched for through all of them."""


@click.command()
@click.argument("pairs", type=click.Path(exists=True, path_type=Path))
@click.option("--size", default=100_000, show_default=True)
@click.option("--repeat", default=3, show_default=True)
@click.option("--shots", type=click.Path(path_type=Path), help="A folder for screenshots.")
def main(pairs: Path, size: int, repeat: int, shots: Path | None) -> None:
    """Make a set of SIZE pairs out of variations of PAIRS, write its report, open it, and print what that took."""
    from browser import open_browser

    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large"
        made = grown(pairset.read_pairs(pairs), size)
        pairset.write_pairset(large, made, [], [], with_pairs(pairset.read_manifest(pairs), made, []))
        del made
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", "pairgen.cli", "report", str(large)], check=True)
        seconds = time.monotonic() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        file = large.with_name("large.report.html")
        rows = [("written in", f"{seconds:.1f} s"), ("peak memory", f"{peak:.0f} MiB")]
        rows.append(("size of the file", f"{file.stat().st_size / 1e6:.1f} MB"))
        with open_browser() as browser:
            times = [opened(browser, file, size) for _ in range(repeat)]
            rows += [(name, f"{statistics.median(t[name] for t in times):.2f} s") for name in times[0]]
            if shots:
                shoot(browser, file, shots)
    print(f"{size:,} pairs, medians of {repeat}")
    print("\n".join(table(rows, ("what", "took"))))


def grown(pairs: Sequence[Pair], size: int) -> list[Pair]:
    """Variations of the pairs: one word in eight is another one, alike within an episode and copy."""
    words = sorted({word for pair in pairs for message in pair.prompt for word in WORD.findall(message.content)})
    made = []
    for number in range(size):
        pair, copy = pairs[number % len(pairs)], number // len(pairs)
        chance = random.Random(f"{pair.episode_id} {copy}")
        swap = {word: chance.choice(words) for word in chance.sample(words, len(words) // 8)}

        def said(messages: Sequence[Message], swap: dict[str, str] = swap) -> tuple[Message, ...]:
            return tuple(Message(m.role, WORD.sub(lambda w: swap.get(w[0], w[0]), m.content)) for m in messages)

        changed: dict[str, Any] = {side: said(getattr(pair, side)) for side in ("prompt", "chosen", "rejected")}
        if number == size * 2 // 3:
            changed["chosen"] = (Message("assistant", RARE),)
        changed |= {"task_id": pair.task_id + 1000 * copy, "episode_id": f"{pair.episode_id[:10]}{copy:06d}"}
        made.append(dataclasses.replace(pair, pair_id=f"{number:016x}", split="train", **changed))
    return made


def opened(browser: Any, file: Path, size: int) -> dict[str, float]:
    """Seconds to first paint, until all can be used, to filter, to search all texts, and to show one pair."""
    from playwright.sync_api import expect

    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    expect.set_options(timeout=120_000)
    taken = {}
    started = time.monotonic()
    page.goto(file.as_uri(), wait_until="commit")
    expect(page.locator("html")).to_have_attribute("data-ready", "yes")
    taken["until it can be used"] = time.monotonic() - started
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    taken = {"first paint": paint / 1000, **taken}
    count = page.locator("#count")
    game = page.locator("#filter-strategy option").nth(1).get_attribute("value")
    for name, act, shown in (
        ("filter", lambda: page.locator("#filter-strategy").select_option(game), " of "),
        ("clear the filter", lambda: page.locator("#clear").click(), f"{size:,} pairs"),
        ("search all texts", lambda: page.locator("#search").fill(RARE), "1 of "),
    ):
        started = time.monotonic()
        act()
        expect(count).to_contain_text(shown)
        expect(count).not_to_contain_text("searching")
        taken[name] = time.monotonic() - started
    page.context.close()
    say(", ".join(f"{name} {seconds:.2f} s" for name, seconds in taken.items()))
    return taken


def shoot(browser: Any, file: Path, folder: Path) -> None:
    """Pictures of the page: on a desk, dark, and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    views: dict[str, dict[str, Any]] = {
        "desktop": {"viewport": {"width": 1280, "height": 900}},
        "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "is_mobile": True},
    }
    for name, view in views.items():
        page = browser.new_context(**view).new_page()
        page.goto(file.as_uri())
        page.locator(".sides, #detail .bubble").first.wait_for()
        page.evaluate("document.getElementById('viewer').scrollIntoView()")
        page.screenshot(path=folder / f"{name}.png")
        page.context.close()


if __name__ == "__main__":
    main()
