"""Tests of the documentation site: pages of the commands, links, order, errors."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from precis.model.config import flag_name
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.run_command import run_command
from precis.pipelines.flags.flags import flag_info
from website.build import site_page
from website.navigation import navigation
from website.page_links import anchors, broken_links, pages_of_repository
from website.reference import INDEX, reference_pages

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_the_flags_that_the_command_takes(name, pages, capsys):
    with pytest.raises(SystemExit):
        run_command([name, "--help", "all"])
    shown = re.findall(
        r"^  (-[^ ].*?)(?:  .*)?$", capsys.readouterr().out, re.MULTILINE
    )
    shown = [flag for flag in shown if "--" in flag]
    page = pages[f"commands/{name}.md"]
    terms = re.findall(r"^`(-[^`]+)`\{", page, re.MULTILINE)
    assert [
        term.replace("-h, --help [all]", "-h [all], --help [all]") for term in terms
    ] == shown
    assert {"--config FILE", "--[no-]quiet"} <= set(terms)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_page_with_all_its_flags(name, pages):
    page = pages[f"commands/{name}.md"]
    fields = [f for kind in COMMANDS[name].concerns for f in dataclasses.fields(kind)]
    names = {flag_name(field.name) for field in fields}
    assert names | {"config", "verbose", "help"} <= anchors(page)
    entries = dict(re.findall(r"^`[^`]+`\{ #(\w+) \}\n:   (.*)$", page, re.MULTILINE))
    terms = dict(re.findall(r"^`([^`]+)`\{ #(\w+) \}$", page, re.MULTILINE))
    by_anchor = {anchor: term for term, anchor in terms.items()}
    for field in fields:
        info = flag_info(field)
        text = entries[flag_name(field.name)].replace("\\", "")
        assert info.help.split()[0].strip("`,;") in text
        for choice in info.choices:
            assert choice in by_anchor[flag_name(field.name)]
        if isinstance(field.default, bool):
            assert text.endswith(f"**Default:** {'on' if field.default else 'off'}")
        elif isinstance(field.default, int) and not info.default_text:
            assert text.endswith(f"**Default:** {field.default}")
    assert all(example in page for example in COMMANDS[name].text.examples)
    common = [flag_name(field.name) for field in fields if flag_info(field).is_common]
    assert all(f"(#{flag})" in page for flag in common)


def test_a_value_and_a_default_are_written_as_the_help_has_them(pages):
    page = pages["commands/summarize.md"]
    assert "`--beam_width HYPOTHESES`{ #beam_width }\n:   hypotheses kept" in page
    assert "1 is greedy search. **Default:** 4\n" in page
    assert "`--redundancy none|trigrams|mmr`{ #redundancy }" in page
    assert "`--[no-]flat`{ #flat }" in page
    assert "needs [`--extractive_bundle`](#extractive_bundle)" in page
    assert "`--for bigquery|" in pages["commands/loaders.md"]
    assert "See also [Corpora](../CORPORA.md), [Runs night after night]" in page
    assert "| [`precis verify`](verify.md) | Check that a result" in pages[INDEX]


def test_a_page_names_those_that_say_more(pages):
    without = [
        name for name in COMMANDS if "\nSee also [" not in pages[f"commands/{name}.md"]
    ]
    assert without == []


def test_no_page_of_the_repository_has_a_broken_link():
    pages = pages_of_repository()
    names = {page.relative_to(ROOT).as_posix() for page in pages}
    assert {"README.md", "docs/FAQ.md", "docs/tutorials/own-corpus.md"} <= names
    assert broken_links(pages) == []


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


def test_headings_of_one_name_have_anchors_as_on_github():
    text = "# A b\n\n## A b\n\n```\n# code\n```\n\n`--x`{ #x }\n"
    assert anchors(text) == {"a-b", "a-b-1", "x"}


def test_the_site_has_links_to_its_pages_and_the_names_of_other_files():
    readme = site_page(ROOT / "README.md", "index.md")
    assert "](docs/" not in readme and "[CORPORA.md](CORPORA.md)" in readme
    summarizer = site_page(ROOT / "docs/SUMMARIZER.md", "SUMMARIZER.md")
    path = "`pipelines/options/summarizer_recipes.py`"
    assert path in summarizer and "](../pipelines" not in summarizer
    tutorial = site_page(ROOT / "docs/tutorials/tpu.md", "tutorials/tpu.md")
    assert "](../TRAINING_WORKERS.md#tpu)" in tutorial


def test_the_navigation_takes_pages_that_it_does_not_name(tmp_path):
    nav = tmp_path / "nav.yml"
    nav.write_text("- Start: index.md\n- How-to:\n  - A.md\n- All:\n  - C: COMMANDS\n")
    found = ["index.md", "A.md", "NEW.md", "commands/index.md", "commands/digest.md"]
    assert navigation(found, nav) == [
        {"Start": "index.md"},
        {"How-to": ["A.md", "NEW.md"]},
        {"All": [{"C": ["commands/index.md", {"digest": "commands/digest.md"}]}]},
    ]


def test_the_navigation_names_no_page_that_does_not_exist(tmp_path):
    nav = tmp_path / "nav.yml"
    nav.write_text("- Start: index.md\n- How-to:\n  - GONE.md\n")
    with pytest.raises(ValueError, match=r"names pages that do not exist: GONE\.md$"):
        navigation(["index.md"], nav)


def test_every_page_begins_with_its_title():
    for page in pages_of_repository():
        assert page.read_text(encoding="utf-8").startswith("# "), page


def test_the_settings_of_the_site_load_nothing_from_the_network():
    text = (ROOT / "website/mkdocs.yml").read_text()
    settings = yaml.safe_load(re.sub(r"!!python\S*", "", text))
    assert settings["theme"]["font"] is False
    assert {"search", "offline"} <= set(settings["plugins"])


def templates() -> list[str]:
    """The texts of the code; a line break stands for what is put in."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("model", "pipelines")
        for path in (ROOT / folder).rglob("*.py")
    ]
    names = {
        target.id: node.value.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        template(node, names)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.Constant)
    ]


def template(node: ast.expr, names: dict[str, object]) -> str:
    """A text of the code, with the constants of `names` in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(template(value, names) for value in node.values)
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    if isinstance(node.value, ast.Name) and node.value.id in names:
        return str(names[node.value.id])
    return "'\n'" if node.conversion == ord("r") else "\n"


def test_the_messages_of_the_faq_are_those_of_the_code():
    page = (ROOT / "docs/FAQ.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### (.*)\n\n    (.*)$", page, re.MULTILINE)
    assert len(sections) == page.count("\n### ") >= 25
    texts = templates()
    unknown = []
    for heading, message in sections:
        fixed = [part for part in message.split("...") if part.strip(" :;,.'")]
        pattern = re.compile(".*".join(map(re.escape, fixed)), re.DOTALL)
        assert len("".join(fixed)) > 11, heading
        if not any(pattern.search(text) for text in texts):
            unknown.append((heading, fixed))
    assert unknown == []
