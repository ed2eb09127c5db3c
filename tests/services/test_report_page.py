"""The page of `precis report` in headless Chromium: no request, no error, search,
filters, order, documents, two runs, colours, keyboard.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.report_runs import HOSTILE, STORMS, write_runs

from precis.pipelines.report.report import report

pytestmark = pytest.mark.services

CHROMIUM = "/usr/bin/chromium"
DOCUMENTS = STORMS + 1


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("page")
    write_runs(folder, other=True)
    result = report(run=folder / "run", compare=folder / "other")
    return Path(result.path).as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(params=[1440, 390])
def page(browser, address, request) -> Iterator:
    """The page at the width of a desktop and of a phone; it must stay without errors
    and without a request.
    """
    context = browser.new_context(
        viewport={"width": request.param, "height": 900}, color_scheme="light"
    )
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda asked: requests.append(asked.url))
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    yield page
    assert errors == []
    assert set(requests) == {address}
    assert page.evaluate("window.hacked") is None
    context.close()


def shown_ids(page) -> list[str]:
    script = "all => all.map(each => each.firstChild.textContent)"
    return page.locator("#rows .id").evaluate_all(script)


def test_the_page_fits_the_window(page):
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width == page.viewport_size["width"]
    levels = page.locator("h1, h2, h3").evaluate_all(
        "all => all.filter(e => e.offsetParent).map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1


def test_search_filters_and_order(page):
    count = page.locator("#count")
    assert count.inner_text() == f"{DOCUMENTS} of {DOCUMENTS} documents"
    assert page.locator("#rows button").count() == 50
    page.fill("#query", "storm 17 LARKSPUR")
    assert shown_ids(page) == ["storm-17"]
    page.fill("#query", "bremen")  # It stands in the references.
    assert count.inner_text() == f"{STORMS} of {DOCUMENTS} documents"
    page.fill("#query", "no such words")
    assert count.inner_text() == f"None of the {DOCUMENTS} documents matches"
    page.fill("#query", "")
    page.select_option("#sort", "id")
    assert shown_ids(page)[:2] == [HOSTILE, "storm-0"]
    page.click("#next")
    assert page.locator("#place").inner_text() == "Page 2 of 2"
    assert len(shown_ids(page)) == DOCUMENTS - 50
    flags = page.locator("#flag option").all_inner_texts()
    without = f"no flag ({DOCUMENTS - 2})"
    assert flags[:3] == ["all documents", "any flag (2)", without]
    page.select_option("#flag", "+")
    assert shown_ids(page) == ["storm-58", "storm-59"]
    page.select_option("#flag", "short_source")
    assert shown_ids(page) == ["storm-59"]
    page.select_option("#flag", "-")
    assert count.inner_text() == f"{DOCUMENTS - 2} of {DOCUMENTS} documents"
    page.select_option("#flag", "")
    split = page.locator("#split option").nth(1)
    size = int(split.inner_text().split("(")[1].rstrip(")"))
    page.select_option("#split", index=1)
    assert count.inner_text() == f"{size} of {DOCUMENTS} documents"
    assert 0 < size < DOCUMENTS


def test_a_document_shows_its_source_and_its_summaries(page):
    page.fill("#query", "storm-17")
    page.click("#rows button")
    dialog = page.locator("dialog[open]")
    assert dialog.locator("#dialog-title").inner_text() == "storm-17"
    marks = dialog.locator(".article mark")
    assert marks.all_inner_texts() == [
        "\N{WATER WAVE} Storm 17 hit Larkspur.",
        "Nobody was hurt on Monday.",
    ]
    dialog.get_by_label("oracle").check()
    assert "The harbour was closed for 17 days." in marks.all_inner_texts()
    assert dialog.locator("mark.unsupported").all_inner_texts() == ["Bremen"]
    assert "The other run shows: frequency" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    focused = page.evaluate("document.activeElement.dataset.number")
    assert focused == page.locator("#rows button").get_attribute("data-number")


def test_a_document_can_be_scrolled_by_the_keyboard(page):
    page.fill("#query", "storm-17")
    page.click("#rows button")
    body = page.get_by_role("region", name="Document", exact=True)
    body.focus()
    assert page.evaluate("document.activeElement.id") == "dialog-body"
    measures = page.get_by_role("region", name="Measures of the summaries")
    measures.focus()
    assert page.evaluate("document.activeElement.className") == "scroll"


def damaged(address, browser, tmp_path, *, block, script=""):
    """The page with half of a block."""
    text = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    found = re.search(f'id="{block}">([^<]*)<', text)
    text = text.replace(found[1], found[1][: len(found[1]) // 8 * 4])
    (tmp_path / "damaged.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    page.add_init_script(script)
    page.goto((tmp_path / "damaged.html").as_uri())
    return page


def test_a_page_that_cannot_be_unpacked_says_so(address, browser, tmp_path):
    page = damaged(address, browser, tmp_path, block="list")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "The list of documents cannot be shown: the data" in alert.inner_text()
    assert not page.locator("#toolbar").is_visible()
    page.close()
    script = "delete window.DecompressionStream"
    page = damaged(address, browser, tmp_path, block="list", script=script)
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "this browser is too old to unpack it" in alert.inner_text()
    page.close()


def test_a_document_that_cannot_be_unpacked_says_so(address, browser, tmp_path):
    page = damaged(address, browser, tmp_path, block="block-0")
    page.wait_for_selector("html[data-ready]")
    page.locator("#rows button").first.click()
    alert = page.locator("dialog[open]").get_by_role("alert")
    alert.wait_for()
    assert "This document cannot be shown: the data" in alert.inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#rows button").count() == 50
    page.close()


def test_a_hostile_document_is_shown_as_text(page):
    page.fill("#query", "onerror=window.hacked")
    page.click("#rows button")
    assert page.locator("dialog[open] #dialog-title").inner_text() == HOSTILE
    assert HOSTILE in page.locator(".article").inner_text()
    assert page.locator("main img").count() == 0


def test_the_keyboard_moves_in_the_list_and_between_documents(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.select_option("#sort", "id")
    page.locator("#rows button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    title = page.locator("dialog[open] #dialog-title")
    assert title.inner_text() == "storm-0"
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.getElementById('dialog-title').innerText=='storm-1'"
    )
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "document.getElementById('dialog-title').innerText=='storm-0'"
    )


def test_two_runs_are_compared(page):
    text = page.locator("#comparison").inner_text()
    assert "Equal in both runs: lead-2, frequency." in text
    assert "summary" in page.locator("#comparison table").first.inner_text()
    changed = page.locator("#changed button")
    assert changed.count() == 10
    page.select_option("#sort", "change")
    first = shown_ids(page)[0]
    assert changed.first.locator(".id").inner_text().startswith(first)
    changed.first.click()
    assert page.locator("dialog[open] #dialog-title").inner_text() == first


def test_colours_follow_the_system_and_the_button(page):
    background = "getComputedStyle(document.body).backgroundColor"
    button = page.locator("#theme")
    assert button.inner_text() == "Dark colours"
    assert button.get_attribute("aria-pressed") == "false"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == "rgb(15, 20, 25)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(15, 20, 25)"
    assert button.inner_text() == "Dark colours"
    assert button.get_attribute("aria-pressed") == "true"
    assert button.get_attribute("aria-label") is None


def test_the_page_is_printed_in_dark_letters_without_its_controls(page):
    page.click("#theme")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    assert not page.locator("#toolbar").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator("#rouge table").first.is_visible()


CONTRAST = """
() => {
  const channel = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) =>
    .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("main *, header *, dialog *")) {
    const text = [...element.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
    if (!text || !element.offsetParent || element.closest(".heat, svg")) continue;
    if (element.disabled) continue;
    const a = light(parse(getComputedStyle(element).color));
    const b = light(behind(element));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) low.push([element.className, element.textContent, ratio]);
  }
  return low;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_the_contrast_that_wcag_asks_for(page, scheme):
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate(CONTRAST) == []
    page.locator("#rows button").first.click()
    assert page.evaluate(CONTRAST) == []
