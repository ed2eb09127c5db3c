"""Tests of the parts of a report: marked texts, histograms, the choice of rows, heat
maps by words, blocks of documents.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from precis.model.text.article import Article
from precis.pipelines.report import documents
from precis.pipelines.report.distributions import add_measures, distributions
from precis.pipelines.report.documents import ReportedDocument, Span, cut, find_terms
from precis.pipelines.report.rows import Judgement
from precis.pipelines.run.key_tables import open_database

QUALITY = {
    **{"words": 30.0, "novel_2grams_percent": 50.0, "repetition_rate": 0.25},
    **{"compression": 4.0, "density": 2.0, "mean_log_prob": None},
}
QUALITY_TYPE = pa.struct([(name, pa.float64()) for name in QUALITY])
SCHEMA = pa.schema(
    [
        ("document_id", pa.string()),
        ("content_sha256", pa.string()),
        ("article_words", pa.int32()),
        ("summary_method", pa.string()),
        ("quality_flags", pa.list_(pa.string())),
        ("extractive_quality", QUALITY_TYPE),
        ("abstractive_quality", QUALITY_TYPE),
    ]
)


def report_table(rows: Sequence[tuple]) -> pa.Table:
    """A table of (id, flags, words, log-probability)."""
    written = [
        {**QUALITY, "words": words, "mean_log_prob": log_prob}
        for _, _, words, log_prob in rows
    ]
    lines = [
        (name, name, 100, "abstractive", flags, QUALITY, quality)
        for (name, flags, *_), quality in zip(rows, written, strict=True)
    ]
    table = [dict(zip(SCHEMA.names, line, strict=True)) for line in lines]
    return pa.Table.from_pylist(table, schema=SCHEMA)


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
    spans = find_terms(text, [term], "u:number")
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
    assert found["note"] == "the first 60,000 of 60,007 characters are shown"


def test_the_measures_of_every_row_whatever_the_tables():
    values = np.random.default_rng(3).integers(5, 160, 500)
    rows = [(f"d{place}", [], int(words), -1.0) for place, words in enumerate(values)]
    with open_database() as database:
        for part in (rows[:100], [], rows[100:]):
            add_measures(database, report_table(part))
        shown = {(title, system): row for title, system, row in distributions(database)}
    limits = [np.mean(values), *np.quantile(values, (0.5, 0.05, 0.95), method="lower")]
    words = [f"{each:,.0f}" if each >= 100 else f"{each:.3g}" for each in limits]
    assert shown["Length of the summaries, words", "abstractive"] == words
    systems = {system for title, system in shown if title.startswith("Log-prob")}
    assert systems == {"abstractive"}
    assert shown["Repeated trigrams, %", "extractive"] == ["25"] * 4
    assert shown["Length of the articles, words", "article"] == ["100"] * 4


@pytest.fixture
def judge():
    """The rows that are chosen of some tables, and the best of them."""

    def choose(tables, count, system="", scores=()):
        with open_database() as database:
            judgement = Judgement(database)
            judgement.add_scores(scores)
            for table in tables:
                judgement.add(table)
            return judgement.choose(count, system)

    return choose


def test_the_worst_rows_come_first_and_others_are_drawn(judge):
    rows = [(f"d{number}", [], 20, -1.0) for number in range(40)]
    rows[7] = ("d7", ["repeated", "unsupported_name"], 20, -1.02)
    rows[30] = ("d30", [], 20, -4.0)
    rows[31] = ("d31", ["too_short"], 20, -0.98)
    rows[32] = ("d32", ["short_source"], 20, -0.1)
    rows[33] = ("d33", ["too_short"], 20, -0.02)
    rows[34] = ("d34", [], 20, -0.5)
    chosen = []
    for cuts in ([0, 40], [0, 3, 25, 25, 40]):
        parts = zip(cuts, cuts[1:], strict=False)
        tables = [report_table(rows[start:end]) for start, end in parts]
        found, best = judge(tables, 10)
        chosen.append(list(found.items()))
        # Of rows without a flag the likeliest, which the worst are not.
        assert best[:2] == [32, 34]
    assert chosen[0] == chosen[1]
    # About as likely as the others, and flagged.
    assert list(found)[:3] == [30, 7, 31]
    assert len(found) == 10 and sum(found.values()) == 3
    assert not found[32] and not found[34]
    everything, _ = judge([report_table(rows)], 40)
    assert not any(everything.values())
    assert list(everything)[-2:] == [32, 33]


def test_a_summary_of_another_method_has_no_log_probability(judge):
    table = report_table([("a", [], 20, -1.0), ("b", [], 20, -9.0)])
    methods = pa.array(["abstractive", "lead"])
    place = table.schema.get_field_index("summary_method")
    table = table.set_column(place, "summary_method", methods)
    assert judge([table], 2) == ({0: False, 1: False}, [0])


def test_rows_without_a_network_are_judged_by_their_scores(judge):
    scored = [("a", 0.5), ("b", 0.125), ("c", None), ("d", 0.375)]
    scores = pa.Table.from_pylist(
        [
            {"document_id": name, "system": system, "rouge1": value}
            for name, of_lead in scored
            for system, value in (("lead", of_lead), ("oracle", 1.0))
        ]
    )
    table = report_table([(name, [], 9, None) for name in "abcd"])
    chosen, best = judge([table], 4, "lead", [scores[:5], scores[5:]])
    assert (list(chosen), best) == ([1, 3, 0, 2], [0, 3, 1])


def test_a_row_has_no_scores_where_its_id_was_scored_twice():
    rows = [
        {"document_id": name, "reference_summary": text}
        for name, text in [("a", "Rain."), ("twice", "Rain."), ("bare", None)]
    ]
    scores = [
        *(("a", "lead", 0.5), ("a", "oracle", 0.75), ("twice", "lead", 0.25)),
        *(("elsewhere", "lead", 1.0), ("bare", "lead", 1.0)),
        *(("twice", "lead", 1.0), ("twice", "oracle", 1.0), ("a", "random", None)),
    ]
    names = ("document_id", "system", "rouge1")
    tables = [
        pa.Table.from_pylist([dict(zip(names, each, strict=True)) for each in part])
        for part in (scores[:4], scores[4:])
    ]
    with open_database() as database:
        judgement = Judgement(database)
        judgement.add_scores(tables)
        found = judgement.scores_of(rows)
    assert found == [{"lead": 0.5, "oracle": 0.75}, {}, {}]
