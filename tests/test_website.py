"""Tests of the documentation site: commands, links, figures, order, errors."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from docs.site.figures import MARKED, filled_pages
from docs.site.navigation import navigation
from docs.site.page_links import anchors, broken_links, prose_lines
from docs.site.reference import INDEX, reference_pages
from precis.model import rouge
from precis.model.config import flag_name
from precis.model.text import stems, stop_words
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.run.options import flag_fields

ROOT = Path(__file__).parents[1]
# A speed, a size, a time or ROUGE; in a table one of the words in its head.
MEASURED = re.compile(
    r"\d (?:\w+/s\b|\w+ (?:a|per) second|[MG]i?B\b|m?s\b|minutes\b|hours\b|times as\b)"
    r"|\d\.\d+ / \d+\.\d"
)
MEASURED_HEAD = re.compile(r"\w/s\b|ROUGE-\d|\bratio\b|\bmemory\b|\bminutes\b")
# Defaults and maxima, which nobody measured.
SETTINGS = re.compile(r"\b(?:8|16|128) MiB|\b512 MB|\b0\.5 GB|\b120 s\b")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_page_with_all_its_flags(name, pages):
    page = pages[f"commands/{name}.md"]
    fields = list(flag_fields(COMMANDS[name].option_groups))
    names = {flag_name(field.name) for field in fields}
    assert names | {"config", "verbose", "help"} <= anchors(page)
    assert all(example in page for example in COMMANDS[name].examples)
    assert "\nSee also [" in page


def test_a_value_and_a_default_are_written_as_the_help_has_them(pages):
    page = pages["commands/summarize.md"]
    assert "`--beam_width HYPOTHESES`{ #beam_width }\n:   hypotheses kept" in page
    assert "1 is greedy search. **Default:** 4\n" in page
    assert "`--fallback none|extractive|always`{ #fallback }" in page
    assert "`--[no-]flat`{ #flat }" in page
    assert "with [`--extractive_bundle`](#extractive_bundle); oracle" in page
    assert "`--for bigquery|" in pages["commands/loaders.md"]
    assert "See also [Corpora](../CORPORA.md), [Runs and warehouses]" in page
    assert "| [`precis verify`](verify.md) | Check that a result" in pages[INDEX]


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/other.md").write_text("# Other\n\n## Two `words`: --here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n"
        "[good](docs/other.md#two-words---here), [good](#page), [web](https://x.org)\n"
        "[no file](docs/none.md) and [no heading](docs/other.md#three)\n\n"
        "```\n[code](none.md)\n```\n\n    [code](none.md)\n\n`[code](none.md)`\n\n"
        "[own](#nothing)\n[out](../outside.md)\n[ref]: lost.md\n"
    )
    assert broken_links([page], tmp_path) == [
        "page.md:4: docs/none.md: no such file",
        "page.md:4: docs/other.md#three: no such heading",
        "page.md:14: #nothing: no such heading",
        "page.md:15: ../outside.md: leads out of the repository",
        "page.md:16: lost.md: no such file",
    ]


def test_the_pages_show_the_figures_that_were_measured():
    for page, text in filled_pages().items():
        assert page.read_text("utf-8") == text, "run: python -m docs.site.figures"


def unmarked_lines(text: str) -> list[int]:
    """The lines of a page that state a measured figure without a marker."""
    numbers, is_measured, in_table = [], False, False
    for number, line in prose_lines(text):
        is_head = line.startswith("|") and not in_table
        in_table = line.startswith("|")
        if is_head:
            is_measured = MEASURED_HEAD.search(line) is not None
        rest = SETTINGS.sub("", MARKED.sub("", line))
        is_row = (
            in_table
            and is_measured
            and not is_head
            and re.search(r"\| *[+-]?\d[\d.,]* ", rest)
        )
        if MEASURED.search(rest) or is_row:
            numbers.append(number)
    return numbers


def test_a_line_with_a_measured_figure_has_a_marker():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    unmarked = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in pages
        for number in unmarked_lines(page.read_text("utf-8"))
    ]
    assert not unmarked


def write_figures(folder: Path, page: str, **values: str) -> None:
    (folder / "docs").mkdir(exist_ok=True)
    figures = {key: {"value": value} for key, value in values.items()}
    (folder / "docs/figures.json").write_text(json.dumps(figures))
    (folder / "README.md").write_text(page)


def test_figures_of_every_form_are_filled(tmp_path):
    page = (
        "10-20<!-- a --> and 0.5 %<!-- b -->, 1.0 / 2.0<!-- c --> / 7<!-- a -->\n"
        "| 1 | **9.9 [9.8, 10.0]<!-- d -->** | *one core*<!-- e --> | <!-- a note -->"
    )
    values = {"a": "1,420", "b": "12 %", "c": "3.5 / 4.5 / 5.5", "d": "-1 [-2, +3]"}
    write_figures(tmp_path, page, **values, e="*an EPYC, 2 cores*")
    assert filled_pages(tmp_path)[tmp_path / "README.md"] == (
        "10-1,420<!-- a --> and 12 %<!-- b -->, "
        "3.5 / 4.5 / 5.5<!-- c --> / 1,420<!-- a -->\n"
        "| 1 | **-1 [-2, +3]<!-- d -->** | *an EPYC, 2 cores*<!-- e --> | "
        "<!-- a note -->"
    )


def test_a_wrong_marker_and_a_wrong_figure_are_refused_by_name(tmp_path):
    page = "1<!-- known -->\nfast<!-- known -->, 3<!-- lost.key -->, 1.<!-- known -->"
    write_figures(tmp_path, page, known="2", unused="3", words="some")
    with pytest.raises(ValueError) as refusal:
        filled_pages(tmp_path)
    assert str(refusal.value).splitlines() == [
        "README.md:2: known: no value before it",
        "README.md:2: known: no value before it",
        "README.md:2: lost.key: not in docs/figures.json",
        "docs/figures.json: unused: on no page",
        "docs/figures.json: words: 'some' does not look like a value",
        "docs/figures.json: words: on no page",
    ]


def test_the_navigation_names_no_page_that_does_not_exist(tmp_path):
    nav = tmp_path / "nav.yml"
    nav.write_text("- Start: index.md\n- How-to:\n  - GONE.md\n")
    with pytest.raises(ValueError, match=r"names pages that do not exist: GONE\.md$"):
        navigation(["index.md"], nav)


def test_the_page_of_languages_names_the_stemmers_lists_and_variants_of_the_code():
    text = (ROOT / "docs/LANGUAGES.md").read_text("utf-8")
    of_row = r"\| ((?:[a-z]{2} )+[a-z]{2}) \|" + r"(.*)\|" * 5
    rows = re.findall(of_row, text)
    named = [(code, *row[1:]) for row in rows for code in row[0].split()]
    codes = [code for code, *_ in named]
    regional = {"ary", "arz", "bs", "ms", "nb", "nn", "sh", "wuu", "yue"}
    assert len(codes) == len(set(codes)) and not regional & set(codes)

    def with_cell(column, value):
        return {row[0] for row in named if value in row[column]}

    rules = ROOT / "precis/model/text/sentence_rules.toml"
    rules = tomllib.loads(rules.read_text("utf-8"))
    assert with_cell(1, "own rules") <= {"he", "st", *rules, *rules["same_as"]}
    assert with_cell(3, "Snowball") == stems._SNOWBALL.keys()
    assert with_cell(4, "yes") == stop_words._lists().keys() - regional
    assert with_cell(5, "characters") == rouge._OF_CHARACTERS
