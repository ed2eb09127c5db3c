"""The page of `precis report` in headless Chromium: no request, no error, search,
filters, order, documents, export, colours, keyboard.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.report_runs import HOSTILE, STORMS, write_run

from precis.pipelines.report.report import report

pytestmark = pytest.mark.services
DOCUMENTS = STORMS + 1


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("page")
    write_run(folder)
    result = report(run=folder / "run")
    return Path(result.path).as_uri()


def wait_for(locator):
    """Assertions that wait: the page hears of some events after the call returns."""
    from playwright.sync_api import expect

    return expect(locator)


@pytest.fixture(params=[1400, 400])
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
    assert {each for each in requests if not each.startswith("blob:")} == {address}
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
    wait_for(count).to_have_text(f"{DOCUMENTS} of {DOCUMENTS} documents")
    wait_for(page.locator("#rows button")).to_have_count(20)
    page.fill("#query", "storm 17 LARKSPUR")
    assert shown_ids(page) == ["storm-17"]
    page.fill("#query", "bremen")  # It stands in the references.
    wait_for(count).to_have_text(f"{STORMS} of {DOCUMENTS} documents")
    page.fill("#query", "no such words")
    wait_for(count).to_have_text(f"None of {DOCUMENTS} documents match")
    page.fill("#query", "")
    page.select_option("#sort", "id")
    assert shown_ids(page)[:2] == [HOSTILE, "storm-0"]
    page.click("#next")
    wait_for(page.locator("#place")).to_have_text("Page 2 of 4")
    assert len(shown_ids(page)) == 20
    flags = page.locator("#flag option").all_inner_texts()
    without = f"no flag ({DOCUMENTS - 3})"
    assert flags[:3] == ["all documents", "any flag (3)", without]
    page.select_option("#flag", "+")
    assert sorted(shown_ids(page)) == [HOSTILE, "storm-58", "storm-59"]
    page.select_option("#flag", "short_source")
    assert shown_ids(page) == ["storm-59"]
    page.select_option("#flag", "-")
    wait_for(count).to_have_text(f"{DOCUMENTS - 3} of {DOCUMENTS} documents")
    page.select_option("#flag", "")
    split = page.locator("#split option").nth(1)
    size = int(split.inner_text().split("(")[1].rstrip(")"))
    page.select_option("#split", index=1)
    wait_for(count).to_have_text(f"{size} of {DOCUMENTS} documents")
    assert 0 < size < DOCUMENTS


def test_a_document_shows_its_source_and_its_summaries(page):
    page.fill("#query", "storm-17")
    page.click("#rows button")
    dialog = page.locator("dialog[open]")
    wait_for(dialog.locator("#dialog-title")).to_have_text("storm-17")
    marks = dialog.locator(".article mark")
    assert marks.all_inner_texts() == [
        "\N{WATER WAVE} Storm 17 hit Larkspur.",
        "Nobody was hurt on Monday.",
    ]
    dialog.get_by_label("oracle").check()
    assert "The harbour was closed for 17 days." in marks.all_inner_texts()
    assert "Storm 17 hit Bremen." in dialog.inner_text()
    page.keyboard.press("Escape")
    wait_for(page.locator("dialog[open]")).to_have_count(0)
    focused = page.evaluate("document.activeElement.dataset.number")
    assert focused == page.locator("#rows button").get_attribute("data-number")


def test_a_sentence_of_a_group_opens_its_document(page):
    sentence = page.locator("#groups details[open] button").first
    text, name = (sentence.locator(tag).inner_text() for tag in ("span", "small"))
    sentence.click()
    title = page.locator("dialog[open] #dialog-title")
    wait_for(title).to_have_text(name.split(" ")[0])
    assert text in page.locator("dialog[open] .article").inner_text()


OLD_BROWSER = "delete window.DecompressionStream"


@pytest.mark.parametrize(
    ("block", "script", "message"),
    [
        ("list", "", "The list of documents cannot be shown: the data"),
        ("list", OLD_BROWSER, "this browser is too old; open the page"),
        ("block-0", "", "This document cannot be shown: the data"),
    ],
)
def test_what_cannot_be_unpacked_says_so(
    address, browser, tmp_path, block, script, message
):
    text = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    found = re.search(f'id="{block}">([^<]*)<', text)
    text = text.replace(found[1], found[1][: len(found[1]) // 8 * 4])
    (tmp_path / "damaged.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    page.add_init_script(script)
    page.goto((tmp_path / "damaged.html").as_uri())
    if block != "list":
        page.locator("#rows button").first.click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert message in alert.inner_text()
    assert page.locator("#toolbar").is_visible() == (block != "list")
    page.close()


def test_a_hostile_document_is_shown_as_text(page):
    page.fill("#query", "onerror=window.hacked")
    page.click("#rows button")
    wait_for(page.locator("dialog[open] #dialog-title")).to_have_text(HOSTILE)
    assert HOSTILE in page.locator(".article").inner_text()
    assert page.locator("main img").count() == 0


def test_the_keyboard_moves_in_the_list_and_between_documents(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.select_option("#sort", "id")
    page.locator("#rows button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    title = page.locator("dialog[open] #dialog-title")
    wait_for(title).to_have_text("storm-0")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.getElementById('dialog-title').innerText=='storm-1'"
    )
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "document.getElementById('dialog-title').innerText=='storm-0'"
    )


def test_the_filtered_list_is_saved_as_csv(page, tmp_path):
    page.select_option("#sort", "id")
    page.fill("#query", "nothing happened to the machine")
    page.fill("#query", "storm-1")
    shown = shown_ids(page)
    with page.expect_download() as download:
        page.click("#export")
    path = tmp_path / "documents.csv"
    download.value.save_as(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == shown
    assert rows[0]["summary"].endswith("hit Larkspur.\nNobody was hurt on Monday.")
    assert float(rows[0]["rouge"]) > 0 and rows[0]["log_prob"] == ""


def test_colours_follow_the_system_and_the_button(page):
    background = "getComputedStyle(document.body).backgroundColor"
    button = page.locator("#theme")
    wait_for(button).to_have_text("Use dark colours")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == "rgb(15, 20, 25)"
    wait_for(button).to_have_text("Use light colours")
    page.click("#theme")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(15, 20, 25)"
    wait_for(button).to_have_text("Use light colours")


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
    if (!text || !element.offsetParent || element.closest("svg")) continue;
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
