"""Debian's Chromium, or another one, through playwright: what the tests of pages need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str:
    """The path of a browser. Fails with the fix where there is none."""
    named = os.environ.get("PAIRGEN_CHROMIUM", "")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), "")
    if not found:
        raise AssertionError(
            "no browser: apt-get install chromium, or set PAIRGEN_CHROMIUM to one (or -m 'not browser')"
        )
    return found


@contextmanager
def open_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
