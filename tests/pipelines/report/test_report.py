"""Tests of `precis report`: what the page holds about a run."""

import base64
import hashlib
import html
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code
from support.damaged_results import edit_description, write_success
from support.report_runs import HOSTILE, STORMS, documents_of, write_run

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.report.report import report


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_run(folder)
    return folder


@pytest.fixture(scope="module")
def page(folder) -> str:
    result = report(run=folder / "run")
    assert result.path == f"{folder}/run-report.html"
    text = Path(result.path).read_text(encoding="utf-8")
    assert result.bytes == len(text.encode())
    assert (result.rows, result.documents) == (STORMS + 1, STORMS + 1)
    assert (result.missing_articles, result.missing_reason) == (0, "")
    return text


class Elements(HTMLParser):
    """The tags, attributes and visible text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def text(self):
        return " ".join(" ".join(self.texts).split())


def test_the_page_asks_for_nothing_and_runs_its_script_alone(page):
    elements = Elements(page)
    for tag, attributes in elements.tags:
        assert not {"src", "onerror", "onclick", "onload"} & set(attributes), tag
        address = attributes.get("href") or "#"
        assert address.startswith("#"), (tag, address)
    named = {each.get("http-equiv"): each.get("content") for _, each in elements.tags}
    policy = named["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    # A hostile document is data.
    tags = [tag for tag, _ in elements.tags]
    assert "img" not in tags
    # The list, a block for each 32 documents, and the script of the page.
    assert tags.count("script") == 4
    # As one of the worst it stands outside the blocks too.
    assert HOSTILE in "".join(elements.texts)
    hostile = next(each for each in documents_of(page) if each["id"] == HOSTILE)
    assert "".join(text for text, _ in hostile["source"]["pieces"]).startswith(HOSTILE)


def test_a_document_has_its_source_with_marked_sentences(page):
    document = next(each for each in documents_of(page) if each["id"] == "storm-7")
    pieces = document["source"]["pieces"]
    by_lead = [text for text, marks in pieces if "m:lead" in marks]
    # An emoji is one character in Python and two units in a browser.
    lead = ["\N{WATER WAVE} Storm 7 hit Larkspur.", "Nobody was hurt on Monday."]
    assert by_lead == lead
    assert document["summary"] == "\n".join(lead)
    assert [rank for _, _, rank in document["extractive"]["lead"]] == [1, 2]
    assert document["reference"]["lines"][0] == [["Storm 7 hit Bremen.", []]]
    assert set(document["scores"]) >= {"lead", "frequency", "oracle"}
    measures = {title: values for title, *values in document["quality"]["rows"]}
    assert measures["words"][0] == 9


def test_the_counts_and_the_dead_letters_are_shown(page):
    text, read = Elements(page).text(), STORMS + 3
    assert f"{read} read = {STORMS + 1} written + 0 reused + 0 duplicates" in text
    assert "1 empty + 1 failed" in text and f"records read: {read}" in text
    assert "The counts agree." in text and "read/invalid_json 1 record" in text
    assert '{"article": <b>broken</b>' in text and "empty_article 1 record" in text


def test_flags_are_counted_alike_everywhere(folder, page):
    counts = files.read_json(f"{folder}/run/manifest.json")["quality_flags"]
    named = ("too_short", "short_source", "barely_shorter", "markup_source")
    assert counts == dict.fromkeys(named, 1)
    flags = {each["id"]: each["flags"] for each in documents_of(page) if each["flags"]}
    flagged = {"storm-58": ["too_short"], "storm-59": ["short_source"]}
    assert flags == {**flagged, HOSTILE: ["barely_shorter", "markup_source"]}
    text = Elements(page).text()
    assert "Flagged 4.9 % summaries with a quality flag: 3" in text
    assert "Unsupported facts 0.0 % summaries with a number, date or name" in text
    assert re.search(r"short_source 1 \(1.6 %\)", text)


def test_rouge_and_its_notes_are_those_of_the_evaluation(folder, page):
    rouge = files.read_json(f"{folder}/run-evaluation/rouge.json")
    lead = rouge["systems"][0]
    figures = {name: 100 * value for name, value in lead["rouge1"].items()}
    cell = "{mean:.1f} [{low:.1f}, {high:.1f}]".format(**figures)
    assert (lead["system"], f"<td>{cell}</td>" in page) == ("lead-2", True)
    assert "oracle: an upper bound" in page


def test_groups_stand_with_the_documents_of_their_sentences(folder, page):
    rows = pq.read_table(folder / "run" / "groups").to_pylist()
    by_id = {row["group_id"]: row for row in rows}
    assert len(rows) == 23
    section = page[page.index('<section id="groups"') : page.index('id="scores"')]
    text = Elements(section).text()
    assert "20 of 23 summaries of groups: half of them of the largest" in text
    shown = re.findall(r"<strong>(.*?)</strong> (\d+) member", section)
    shown = [(html.unescape(name), count) for name, count in shown]
    assert len(shown) == len(dict(shown)) == 20
    assert all(by_id[name]["members"] == int(count) for name, count in shown)
    sizes = sorted((row["members"] for row in rows), reverse=True)
    assert [int(count) for _, count in shown[:10]] == sizes[:10]
    assert "h0 13 members, 13 of them with a candidate; centrality" in text
    assert "scored: 1 groups without reference, with the first examples: 22 (" in text
    buttons = re.findall(
        r'data-number="(\d+)">\s*<span>(.*?)</span>\s*<small>(.*?) · \S+, byte \d+, '
        r"characters ([\d,]+) to ([\d,]+)(?: · in (\d+) documents)?<",
        section,
    )
    sentences = [each for name, _ in shown for each in by_id[name]["sentences"]]
    documents = documents_of(page)
    for button, sentence in zip(buttons, sentences, strict=True):
        number, text, name, *offsets, copies = button
        assert html.unescape(text) == sentence["text"]
        assert documents[int(number)]["id"] == sentence["document_id"]
        assert html.unescape(name) == sentence["document_id"]
        assert list(map(int, offsets)) == [sentence["start"], sentence["end"]]
        assert int(copies or 1) == sentence["copies"]
    assert "Scores of groups: system" in page
    assert "ROUGE is not shown" not in page


def test_a_small_page_has_some_documents_and_says_so(folder, tmp_path, capsys):
    command = ("report", str(folder / "run"), "--output", str(tmp_path / "p.html"))
    assert exit_code(*command, "--documents", "10") == 0
    last = capsys.readouterr().out.splitlines()
    assert last[0].startswith(f"report: 10 of {STORMS + 1} documents, 0.")
    assert last[-1] == f"next: open {tmp_path}/p.html in a browser"
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "10 of 61 documents, sorted by ROUGE-1, lowest first" in page
    assert len(documents_of(page)) == 10
    section = page[page.index('<section id="groups"') : page.index('id="scores"')]
    # Sentences of documents that are not on the page.
    assert '<div class="sample">' in section


def test_documents_come_in_the_order_of_their_scores_and_say_it(page):
    documents = documents_of(page)
    scores = [round(100 * each["rouge"], 1) for each in documents]
    assert scores == sorted(scores) and len(set(scores)) > 1
    worst, best = documents[0], max(documents, key=lambda each: each["rouge"])
    assert worst["reason"].startswith(f"ROUGE-1 {100 * worst['rouge']:.1f}")
    flagged = next(each for each in documents if each["id"] == "storm-58")
    assert flagged["reason"].endswith("; 1 quality flag")
    text = Elements(page).text()
    samples = text[text.index("Best summaries") : text.index("Documents All 61")]
    assert best["summary"].split("\n")[0] in samples.split("Worst summaries")[0]
    assert worst["summary"].split("\n")[0] in samples.split("Worst summaries")[1]


def test_articles_that_are_gone_are_named(folder, tmp_path, capsys):
    shutil.copytree(folder / "run", tmp_path / "run")
    manifest = files.read_json(f"{tmp_path}/run/manifest.json")
    moved = tmp_path / "moved.jsonl"
    (folder / "news.jsonl").rename(moved)
    try:
        result = report(run=tmp_path / "run", documents=4)
    finally:
        moved.rename(folder / "news.jsonl")
    assert manifest["corpus"] == f"jsonl:{folder}/news.jsonl"
    assert result.missing_articles == 4
    assert f"{folder}/news.jsonl" in result.missing_reason
    page = Path(result.path).read_text(encoding="utf-8")
    assert "Articles missing for 4 documents: " in page
    assert "the run has no evaluation; create it with precis evaluate --input" in page
    document = documents_of(page)[0]
    assert document["source"] == {"note": result.missing_reason}


def test_another_evaluation_is_not_shown(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    scores = shutil.copytree(folder / "run-evaluation", tmp_path / "run-evaluation")
    for part in scores.rglob("*.parquet"):
        table = pq.read_table(part)
        rows = [{**row, "run_id": "other"} for row in table.to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), part)
    page = Path(report(run=tmp_path / "run", documents=4).path).read_text()
    other = "is the evaluation of another run; create it with precis evaluate --input"
    assert f"not shown, as {scores} {other} {tmp_path}/run<" in page
    command = f"{other} {tmp_path}/run --group_references jsonl:FILE<"
    assert f"not shown, as {scores}/groups {command}" in page


def test_what_is_no_run_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="does not exist; give the --output of"):
        report(run=tmp_path / "none")
    damaged = shutil.copytree(folder / "run", tmp_path / "damaged")
    manifest = damaged / "manifest.json"
    whole = manifest.read_text()
    edit_description(manifest, lambda content: content.update(schema_version=3))
    with pytest.raises(UsageError, match="schema version 3, but this precis reports"):
        report(run=damaged)
    manifest.write_text(whole)
    write_success(manifest)
    with pytest.raises(UsageError, match="DIR is empty: finished run, the --output of"):
        report(run="")
    next((damaged / "data").glob("*.parquet")).write_bytes(b"PAR1")
    with pytest.raises(DataError, match="has 4 bytes instead of the"):
        report(run=damaged)
