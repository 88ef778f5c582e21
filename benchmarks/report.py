"""The report at scale: a pair set of 100,000 pairs, made from a real one, written as a report and used in a browser.

The pairs of the given set are taken again and again; each copy has words of its own in prompt and replies, and a
prompt goes on from the earlier moves of its episode, as in play. Prints size, seconds, memory, and what a person waits
for.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from pairgen import store
from pairgen.console import table
from pairgen.records import Message, Messages, Pair, content_id, to_dict
from pipelines import pairset

SWAPPED = 0.15
"""The share of the words of a text that a copy has in another form."""
WORD = re.compile(r"[a-z]{4,}")
ROUNDS = 3


@click.command()
@click.argument("pairs", type=click.Path(path_type=Path, exists=True))
@click.option("--count", type=click.IntRange(1), default=100_000, show_default=True, help="Pairs to make.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder in which set and report are left.")
@click.option("--only-write", type=click.Path(path_type=Path), hidden=True)
def main(pairs: Path, count: int, keep: Path | None, only_write: Path | None) -> None:
    """Measure a report on as many pairs as wanted, made from the pair set PAIRS."""
    if only_write:
        from pipelines.report import write_report

        begun = time.monotonic()
        distinct = write_report(pairs, only_write).characters
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps([time.monotonic() - begun, peak, distinct]))
        return
    with tempfile.TemporaryDirectory(prefix="pairgen-report-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / "pairs"
        characters = make(pairs, made, count)
        report = folder / "report.html"
        command = [sys.executable, __file__, str(made), "--only-write", str(report)]
        seconds, peak, distinct = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        )
        rows: list[tuple[str, str]] = [
            (
                "pairs",
                f"{count:,}, {characters / 1e6:,.0f} million characters, {distinct / 1e6:,.0f} in texts that differ",
            ),
            ("pair set", f"{sum(f.stat().st_size for f in made.rglob('*') if f.is_file()) / 1e6:,.1f} MB"),
            ("report", f"{report.stat().st_size / 1e6:,.1f} MB"),
            ("to write it", f"{seconds:,.1f} s, {count / seconds:,.0f} pairs a second, at most {peak:,} MiB"),
        ]
        rows += used(report)
    print("\n".join(table(rows, ("what", "measured"))))


def make(source: Path, out: Path, count: int) -> int:
    """Write the set; returns the characters of its prompts and replies."""
    real = list(pairset.read_pairs(source))
    manifest = pairset.read_manifest(source)
    shutil.rmtree(out, ignore_errors=True)
    characters = train = 0
    with (
        store.TableWriter(out / "full" / "train.parquet", Pair) as first,
        store.TableWriter(out / "full" / "test.parquet", Pair) as second,
    ):
        for pair in copies(real, count):
            characters += sum(len(m.content) for m in (*pair.prompt, *pair.chosen, *pair.rejected))
            train += pair.split == "train"
            (first if pair.split == "train" else second).write(pair)
    told = dataclasses.replace(manifest, pairs=count, train=train, test=count - train)
    store.write_json(out / store.MANIFEST, to_dict(told))
    return characters


def copies(real: Sequence[Pair], count: int) -> Iterator[Pair]:
    """Copies in the order of the set, round after round; what one episode says is changed alike in all of its pairs."""
    for number in range(count):
        pair = real[number % len(real)]
        copy = number // len(real)
        if not copy:
            yield pair
            continue
        seed = f"{copy} {pair.episode_id}"

        def other(messages: Messages, seed: str = seed) -> Messages:
            return tuple(Message(m.role, changed(m.content, seed)) for m in messages)

        # the first message has the rules of the game, which copies share but for what they ask
        prompt = (pair.prompt[0], *other(pair.prompt[1:]))
        prompt = (Message(prompt[0].role, f"{prompt[0].content}\n[{seed}]"), *prompt[1:])
        name = content_id(copy, pair.pair_id)
        yield dataclasses.replace(
            pair, pair_id=name, prompt=prompt, chosen=other(pair.chosen), rejected=other(pair.rejected), sample=copy
        )


def changed(text: str, seed: str) -> str:
    chance = random.Random(f"{seed} {text}")
    return WORD.sub(lambda m: m[0][::-1] if chance.random() < SWAPPED else m[0], text)


def used(report: Path) -> Iterator[tuple[str, str]]:
    """What a person waits for, in a new browser each time; medians."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("PAIRGEN_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise SystemExit("No Chromium is here: apt-get install chromium, or name one in PAIRGEN_CHROMIUM.")
    found: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        for _ in range(ROUNDS):
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            for name, seconds in visit(browser.new_page(), report):
                found.setdefault(name, []).append(seconds)
            browser.close()
    for name, values in found.items():
        yield name, f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def visit(page: Any, report: Path) -> Iterator[tuple[str, float]]:
    page.set_default_timeout(120_000)
    begun = time.monotonic()
    page.goto(f"file://{report.resolve()}#browse", wait_until="commit")
    page.wait_for_selector("#list button")
    listed = time.monotonic() - begun
    page.wait_for_selector("body[data-ready]")
    ready = time.monotonic() - begun
    paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
    yield "first paint", paint / 1000
    yield "first pairs listed", listed
    yield "all pairs there", ready
    yield "a filter", page.evaluate(FILTER)
    for name, words in SEARCHES:
        seconds, longest = page.evaluate(SEARCH, words)
        yield f"search {name}", seconds
        yield f"search {name}: longest block of the page", longest
    yield "last page", page.evaluate(LAST)


SEARCHES = (("of a common word", "the"), ("of a phrase that is nowhere", "there is no such phrase"))
FILTER = """async () => {
  const select = document.getElementById('f-game');
  select.value = select.options[1].value;
  const begun = performance.now();
  select.dispatchEvent(new Event('change'));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const seconds = (performance.now() - begun) / 1000;
  document.getElementById('clear').click();
  return seconds;
}"""
SEARCH = """async (words) => {
  let longest = 0, last = performance.now(), on = true;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (on) setTimeout(tick, 0);
  };
  tick();
  const begun = performance.now();
  document.getElementById('query').value = words;
  await search();
  on = false;
  return [(performance.now() - begun) / 1000, longest / 1000];
}"""
LAST = """async () => {
  const begun = performance.now();
  document.getElementById('query').value = '';
  await search();
  const page = document.getElementById('page');
  page.value = page.max;
  page.dispatchEvent(new Event('change'));
  while (!document.querySelector('#detail h2')) await new Promise((done) => setTimeout(done, 5));
  return (performance.now() - begun) / 1000;
}"""


if __name__ == "__main__":
    main()
