"""The documentation site in Chromium, read from disk as a reader opens it."""

import re
from pathlib import Path
from typing import Any

import pytest

from docs.site.build import build_site
from precis.pipelines.command_line.commands import COMMANDS

pytestmark = pytest.mark.services

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    first = build_site(tmp_path_factory.mktemp("site"))
    assert first.name == "index.html"
    return first.parent


class Watched:
    """A page of the browser, with its errors and the requests that left the disk."""

    def __init__(self, browser: Any, viewport: dict[str, int], **settings: Any) -> None:
        self.page = browser.new_context(viewport=viewport, **settings).new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._note)
        self.page.on("request", self._check)
        self.page.on("requestfailed", lambda request: self.faults.append(request.url))

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def _check(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(request.url)

    def is_wider_than_the_window(self) -> bool:
        return self.page.evaluate(
            "document.documentElement.scrollWidth > window.innerWidth"
        )


def test_every_page_opens_without_an_error_or_a_request(site, browser):
    names = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    names.remove("404.html")  # It is for servers and names its files from their root.
    assert {f"commands/{name}.html" for name in COMMANDS} < names
    assert {"index.html", "RUNNING.html", "tutorials/own-corpus.html"} < names
    for viewport in (DESKTOP, PHONE):
        watched = Watched(browser, viewport)
        for name in sorted(names):
            watched.page.goto((site / name).as_uri())
            assert watched.page.locator("h1").first.is_visible(), name
            assert not watched.is_wider_than_the_window(), (name, viewport)
        assert watched.faults == []


def test_the_search_works_without_a_server(site, browser):
    watched = Watched(browser, DESKTOP)
    page = watched.page
    page.goto((site / "tutorials/own-corpus.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    box = page.get_by_role("combobox", name="Search")
    for letter in "chunk_merge":
        box.press(letter)
    hit = page.locator("dialog a", has_text="Long documents").first
    hit.wait_for()
    assert box.input_value() == "chunk_merge"
    hit.click()
    page.wait_for_url(re.compile(r"/RUNNING\.html(\?.*)?#long-documents$"))
    assert watched.faults == []
