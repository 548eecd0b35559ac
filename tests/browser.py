"""A real Chromium for the tests of pages: found, started once, and closed.

Nothing is downloaded. Where there is no Chromium, tests skip with a reason.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import pytest

FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync""".split()
NAMES = "chromium chromium-browser google-chrome".split()


def chromium():
    """Where Chromium is, or a skipped test."""
    pytest.importorskip("playwright", reason="the extra [dev] brings playwright")
    given = os.environ.get("CAVEAT_CHROMIUM")
    found = given or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    return found


@contextmanager
def started() -> Iterator:
    """A browser without a window.

    It is for the tests of one file: as long as it runs, an event loop does, too, and
    other tests could start none.
    """
    place = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened, with all it asked for and all it said."""

    def __init__(self, browser, source, *, width=1440, scripts=True, scheme="light"):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            java_script_enabled=scripts,
            color_scheme=scheme,
        )
        self.page = self.context.new_page()
        self.requests, self.messages = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.messages.append(said.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.address = str(source)
        if "://" not in self.address:
            self.address = Path(source).resolve().as_uri()
        self.page.goto(self.address)

    @property
    def content_width(self):
        """How wide the page is, in pixels; more than the window means scrolling."""
        session = self.context.new_cdp_session(self.page)
        return session.send("Page.getLayoutMetrics")["cssContentSize"]["width"]

    @property
    def foreign_requests(self):
        """Requests to elsewhere: not for the page's own host, nor for data within."""
        own = ("data:", "about:", urljoin(self.address, "/"))
        return [url for url in self.requests if not url.startswith(own)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
