"""Tests of the parts of a report: marked texts, histograms, the choice of rows, and the
articles, which are read again.
"""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl

from precis.model.text.article import Article
from precis.pipelines.corpus import corpus as corpus_tasks
from precis.pipelines.corpus.corpus import list_tasks, pack_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import Place
from precis.pipelines.report import articles as articles_module
from precis.pipelines.report import documents, rows
from precis.pipelines.report.articles import articles_of_rows, find_articles
from precis.pipelines.report.documents import ReportedDocument, Span, cut, find_marks
from precis.pipelines.report.facts import page_facts
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.finished_run import corpus_of_run, open_run
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

SCHEMA = pa.schema([SUMMARY_SCHEMA.field(name) for name in rows.NUMBER_COLUMNS])

SCORE_NAMES = ("document_id", "system", "rouge1")


def named_table(names: Sequence[str], lines: Sequence[tuple], **schema) -> pa.Table:
    named = [dict(zip(names, line, strict=True)) for line in lines]
    return pa.Table.from_pylist(named, **schema)


def report_table(lines: Sequence[tuple], method: str = "abstractive") -> pa.Table:
    """A table of (id, flags, log-probability), and the expected ROUGE-2 if known."""
    table = [
        (name, name, method, flags, {"mean_log_prob": log_prob}, *(expected or [None]))
        for name, flags, log_prob, *expected in lines
    ]
    return named_table(SCHEMA.names, table, schema=SCHEMA)


def test_a_text_is_cut_where_spans_begin_and_end():
    spans = [Span(2, 5, "a"), Span(4, 7, "b"), Span(2, 5, "b"), Span(90, 95, "c")]
    assert cut("0123456789", spans) == [
        ("01", []),
        ("23", ["a", "b"]),
        ("4", ["a", "b"]),
        ("56", ["b"]),
        ("789", []),
    ]
    wave = "\N{WATER WAVE}"
    assert cut(f"{wave}x", [Span(1, 9, "a")]) == [(wave, []), ("x", ["a"])]
    assert cut("", [Span(0, 1, "a")]) == []


@pytest.mark.parametrize(
    ("text", "term", "found"),
    [
        ("It cost $4.5 million.", "4.5 million", "4.5 million"),
        ("It cost $4.5m.", "4.5 million", "4.5"),
        ("All 1,200 left.", "1200", "1,200"),
        ("All 1,200 left.", "200", None),
        ("All 12004 left.", "1200", None),
        ("Twenty-five came.", "twenty five", "Twenty-five"),
        ("Angela Merkel spoke.", "Angela Merkel", "Angela Merkel"),
        ("Merkels spoke.", "Merkel", None),
        ("On Monday.", "", None),
    ],
)
def test_terms_are_found_as_the_text_writes_them(text, term, found):
    spans = find_marks(text, [term], "u:number")
    assert [text[span.start : span.end] for span in spans] == [found] * bool(found)


def document(row, article) -> ReportedDocument:
    return ReportedDocument(row, article, {}, False)


def test_written_lines_are_marked_with_the_sentences_behind_them():
    text = "Rain fell on Monday. Three roads closed."
    support = [{"start": 21, "end": 40}, None]
    row = {
        "extractive": [{"method": "lead", "start": 0, "end": 20}],
        "abstractive": [{"rank": 1, "support": support}, {"rank": 2, "support": None}],
    }
    pieces = [("Rain fell on Monday.", ["m:lead"]), (" ", [])]
    pieces.append(("Three roads closed.", ["s:1"]))
    source = document(row, Article.from_text(text)).source()
    assert source == {"pieces": pieces, "note": ""}
    assert document(row, "it is gone").source() == {"note": "it is gone"}
    # The end of a very long source is left out.
    length = documents.MOST_CHARACTERS + 7
    row = {"extractive": [], "abstractive": None}
    found = document(row, Article.from_text("x" * length)).source()
    assert len(found["pieces"][0][0]) == documents.MOST_CHARACTERS
    assert found["note"] == "only the first 60,000 of 60,007 characters are shown"


def judge(tables, count, value=rows.LOG_PROB, scores=()):
    """The rows that are chosen of some tables, and the best of them."""
    with open_database() as database:
        rows.add_scores(database, scores)
        list(rows.add_rows(database, tables))
        return rows.choose_rows(database, count, value)


def test_the_worst_rows_come_first_and_others_are_drawn():
    lines = [(f"d{number}", [], -1.0) for number in range(40)]
    lines[7] = ("d7", ["repeated", "unsupported_name"], -1.02)
    lines[30] = ("d30", [], -4.0)
    lines[31] = ("d31", ["too_short"], -0.98)
    lines[32] = ("d32", ["short_source"], -0.1)
    lines[33] = ("d33", ["too_short"], -0.02)
    lines[34] = ("d34", [], -0.5)
    chosen = []
    for cuts in ([0, 40], [0, 3, 25, 25, 40]):
        parts = zip(cuts, cuts[1:], strict=False)
        tables = [report_table(lines[start:end]) for start, end in parts]
        found, best = judge(tables, 10)
        chosen.append(list(found.items()))
        # Of rows without a flag the likeliest, which the worst are not.
        assert best[:2] == [32, 34]
    assert chosen[0] == chosen[1]
    # About as likely as the others, and flagged.
    assert list(found)[:3] == [30, 7, 31]
    assert len(found) == 10 and sum(found.values()) == 3
    assert not found[32] and not found[34]
    everything, _ = judge([report_table(lines)], 40)
    assert not any(everything.values())
    assert list(everything)[-2:] == [32, 33]


def test_a_summary_of_another_method_has_no_log_probability():
    tables = [report_table([("a", [], -1.0)]), report_table([("b", [], -9.0)], "lead")]
    assert judge(tables, 2) == ({0: False, 1: False}, [0])


def test_rows_without_a_network_are_judged_by_their_scores():
    scored = [("a", 0.5), ("b", 0.125), ("c", None), ("d", 0.375)]
    systems = [[(name, "lead", x), (name, "oracle", 1.0)] for name, x in scored]
    scores = named_table(SCORE_NAMES, sum(systems, []))
    table = report_table([(name, [], None) for name in "abcd"])
    chosen, best = judge([table], 4, "lead", [scores[:5], scores[5:]])
    assert (list(chosen), best) == ([1, 3, 0, 2], [0, 3, 1])


def test_rows_are_judged_by_their_expected_rouge_where_they_have_it():
    lines = [("a", [], -1.0, 0.25), ("b", [], -2.0, 0.5), ("c", [], -3.0, 0.125)]
    chosen = {2: False, 0: False, 1: False}
    assert judge([report_table(lines)], 3, rows.EXPECTED) == (chosen, [1, 0, 2])


def test_a_row_has_no_scores_where_its_id_was_scored_twice():
    references = {"a": "Rain.", "twice": "Rain.", "bare": None}
    shown = [{"document_id": d, "reference_summary": references[d]} for d in references]
    scores = [
        *(("a", "lead", 0.5), ("a", "oracle", 0.75), ("twice", "lead", 0.25)),
        *(("elsewhere", "lead", 1.0), ("bare", "lead", 1.0)),
        *(("twice", "lead", 1.0), ("twice", "oracle", 1.0), ("a", "random", None)),
    ]
    tables = [named_table(SCORE_NAMES, part) for part in (scores[:4], scores[4:])]
    with open_database() as database:
        rows.add_scores(database, tables)
        found = rows.scores_of(database, shown)
    assert found == [{"lead": 0.5, "oracle": 0.75}, {}, {}]


def stories(count):
    text = "Storm {} hit Larkspur. Nobody was hurt on Monday.\nThe harbour was closed."
    texts = [text.format(number) for number in range(count)]
    return [
        {"id": f"d{number}", "article": text, "highlights": "A storm hit Bremen."}
        for number, text in enumerate(texts)
    ]


def test_the_page_has_every_flag_of_the_run(tmp_path):
    corpus = write_jsonl(tmp_path / "news.jsonl", stories(1))
    summarize(corpus=corpus, output=tmp_path / "run", flat=True, sentences=2)
    flags = page_facts(open_run(f"{tmp_path}/run"))["Every flag of the run"]
    shown = [flags[name] for name in ("flat", "deduplicate", "sentences", "task_bytes")]
    assert shown == ["yes", "no", "2", "16,777,216"]


def test_a_changed_or_lost_article_is_not_shown(tmp_path):
    corpus = tmp_path / "news.jsonl"
    lines = stories(3)
    flags = {"extractive": "lead", "min_source_words": 0, "task_bytes": 300}
    summarize(corpus=write_jsonl(corpus, lines), output=tmp_path / "run", **flags)
    rows = pq.read_table(tmp_path / "run" / "data").to_pylist()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    expected = CorpusOptions(corpus=f"jsonl:{corpus}", task_bytes=300)
    assert corpus_of_run(manifest) == expected
    found = articles_of_rows(rows, manifest)
    texts = [line["article"] for line in lines]
    assert [each.document.article for each in found] == texts
    changed = [{**line, "article": line["article"].upper()} for line in lines]
    write_jsonl(corpus, changed)
    reason = "the article was changed after it was summarized"
    assert articles_of_rows(rows, manifest) == [reason] * 3
    write_jsonl(corpus, changed[:1])
    gone = "the article is no longer in the corpus"
    assert articles_of_rows(rows, manifest) == [reason, gone, gone]
    corpus.unlink()
    assert all("no file matches" in each for each in articles_of_rows(rows, manifest))
    other = {"provenance": {"flags": {"corpus": "zip:news.zip"}}}
    assert "unknown corpus 'zip:news.zip'" in articles_of_rows(rows, other)[0]


def corpora(folder: Path):
    """Corpora of several tasks each, of every scheme that needs no package."""
    lines = stories(12)
    write_jsonl(folder / "a.jsonl", lines)
    rows = "".join('{id},"{article}",{highlights}\n'.format(**line) for line in lines)
    (folder / "a.csv").write_text("id,article,highlights\n" + rows)
    table = pa.Table.from_pylist(lines)
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    (folder / "texts").mkdir()
    for line in lines:
        (folder / "texts" / f"{line['id']}.txt").write_text(line["article"])
    return {
        "jsonl": f"jsonl:{folder}/*.jsonl",
        "csv": f"csv:{folder}/a.csv",
        "parquet": f"parquet:{folder}/*.parquet",
        "text": f"text:{folder}/texts/*.txt",
        "sample": "sample:12",
    }


@pytest.mark.parametrize("scheme", ["jsonl", "csv", "parquet", "text", "sample"])
def test_articles_are_found_at_their_places(scheme, tmp_path, monkeypatch):
    # Small tasks are joined, and read piece by piece.
    packed = functools.partial(pack_tasks, most=2)
    monkeypatch.setattr(corpus_tasks, "pack_tasks", packed)
    corpus = CorpusOptions(corpus=corpora(tmp_path)[scheme], task_bytes=300)
    tasks = list_tasks(corpus)
    articles = [record for task in tasks for record in read_task(task, corpus)]
    assert len(tasks) > 1 and len(articles) == 12
    assert scheme == "text" or any(task.pieces for task in tasks)
    wanted = [articles[number].document for number in (11, 0, 7, 7)]
    places = [Place(each.source_file, each.source_position) for each in wanted]
    found = find_articles(places, corpus)
    assert list(found) == list(dict.fromkeys(places))
    for place, document in zip(places, wanted, strict=True):
        assert isinstance(found[place], Article)
        assert found[place].document.article == document.article


def test_only_the_tasks_of_the_places_are_read(tmp_path, monkeypatch):
    reader = mock.Mock(wraps=articles_module.read_task)
    monkeypatch.setattr(articles_module, "read_task", reader)
    path = tmp_path / "a.jsonl"
    corpus = CorpusOptions(corpus=write_jsonl(path, stories(40)), task_bytes=1000)
    start = path.read_bytes().index(b'{"id": "d20"')
    place = Place(str(path), f"byte {start}")
    assert find_articles([place], corpus)[place].document.document_id == "d20"
    (call,) = reader.call_args_list
    assert 0 < call.args[0].start <= start
