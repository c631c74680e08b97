"""Chromium, driven by playwright, which opens the page of a server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
IS_THERE = CHROMIUM is not None and find_spec("playwright") is not None
needs_browser = pytest.mark.skipif(
    not IS_THERE, reason="the page is looked at in Chromium by playwright: one is missing"
)

WAIT = 20_000  # milliseconds in which what must come comes
_ASKED = "body:not(.asking):not(.sampled)"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Looked:
    """The page, as one who looks at it sees it; `wrong`: what its scripts complained of."""

    def __init__(
        self, browser: Any, address: str, *, width: int = 1440, height: int = 900, dark: bool = False, **state: str
    ) -> None:
        from urllib.parse import urlencode

        scheme = "dark" if dark else "light"
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.context.set_default_timeout(WAIT)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.elsewhere: list[str] = []  # requests to other servers
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        here = address.partition("#")[0]
        self.page.on("request", lambda asked: None if asked.url.startswith(here) else self.elsewhere.append(asked.url))
        self.page.goto(address + (f"&{urlencode(state)}" if state else ""))
        self.settled()

    def settled(self) -> Looked:
        """Wait for the answer to be there as a whole."""
        self.page.wait_for_timeout(30)  # an event that asks may be under way
        self.page.wait_for_selector(f"{_ASKED} #records .head")
        return self

    def ask(self, where: str) -> Looked:
        """Type a question and ask it."""
        self.page.fill("#where", where)
        self.page.press("#where", "Enter")
        return self.settled()

    @property
    def count(self) -> str:
        """How many records it says there are."""
        return str(self.page.inner_text("#count b"))

    @property
    def where(self) -> str:
        """The question."""
        return str(self.page.input_value("#where"))

    def texts(self, selector: str) -> list[str]:
        """What these elements say."""
        return list(self.page.locator(selector).all_inner_texts())

    def value(self, field: str, value: str) -> Any:
        """The line of a value of a facet."""
        facet = self.page.locator(".facet", has=self.page.locator(f'h3 .name:text-is("{field}")'))
        return facet.locator(".value", has=self.page.locator(f'.v:text-is("{value}")'))

    def close(self) -> None:
        """Close the tab; what its scripts complained of is an error."""
        self.context.close()
        assert self.wrong == []
        assert self.elsewhere == []


@contextmanager
def looked(browser: Any, address: str, **settings: Any) -> Iterator[Looked]:
    """The page, for as long as this lasts."""
    found = Looked(browser, address, **settings)
    yield found
    found.close()
