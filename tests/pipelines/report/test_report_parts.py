"""Tests of the parts of a report: marked texts, histograms, the choice of rows, heat
maps by words, blocks of documents.
"""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from precis.model.text.article import Article
from precis.pipelines.report import documents, rows
from precis.pipelines.report.documents import ReportedDocument, Span, cut, find_marks
from precis.pipelines.run.key_tables import open_database
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
    assert cut("\N{WATER WAVE}x", [Span(1, 9, "a")]) == [
        ("\N{WATER WAVE}", []),
        ("x", ["a"]),
    ]
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
    assert document(row, Article.from_text(text)).source() == {
        "pieces": [
            ("Rain fell on Monday.", ["m:lead"]),
            (" ", []),
            ("Three roads closed.", ["s:1"]),
        ],
        "note": "",
    }
    assert document(row, "it is gone").source() == {"note": "it is gone"}


def test_the_end_of_a_very_long_source_is_left_out():
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
    assert judge([report_table(lines)], 3, rows.EXPECTED) == (
        {2: False, 0: False, 1: False},
        [1, 0, 2],
    )


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
