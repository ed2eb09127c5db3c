"""Tests of the parts of a report: marked texts, histograms, the choice of rows, heat
maps by words, blocks of documents.
"""

import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from precis.model.text.article import Article
from precis.pipelines.report import documents
from precis.pipelines.report.distributions import Distributions, join_bins
from precis.pipelines.report.documents import Document, Span, cut, find_terms
from precis.pipelines.report.page import DOCUMENTS_A_BLOCK, pack_documents
from precis.pipelines.report.rows import (
    OuterScores,
    RowChoice,
    count_flags,
    log_probabilities,
    scores_of_rows,
    take_rows,
)


def _quality(
    words: float | None, log_prob: float | None = None
) -> dict[str, float | None]:
    return {
        "words": words,
        "novel_2grams_percent": 50.0,
        "repetition_rate": 0.25,
        "compression": 4.0,
        "density": 2.0,
        "mean_log_prob": log_prob,
    }


def report_table(rows: Sequence[tuple]) -> pa.Table:
    """A table of (id, flags, words, log-probability)."""
    return pa.Table.from_pylist(
        [
            {
                "document_id": name,
                "content_sha256": name,
                "article_words": 100,
                "summary_method": "abstractive",
                "quality_flags": flags,
                "extractive_quality": _quality(30),
                "abstractive_quality": _quality(words, log_prob),
            }
            for name, flags, words, log_prob in rows
        ],
        schema=SCHEMA,
    )


QUALITY_TYPE = pa.struct([(name, pa.float64()) for name in _quality(0)])
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


def document(row, article) -> Document:
    return Document(row, article, {}, False)


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


def test_histograms_hold_every_row_whatever_the_tables():
    numbers = np.random.default_rng(3).integers(5, 60, 500)
    rows = [(f"d{place}", [], int(words), -1.0) for place, words in enumerate(numbers)]
    distributions = Distributions()
    distributions.add(report_table(rows[:100]))
    distributions.add(report_table([]))
    distributions.add(report_table(rows[100:]))
    shown = {measure.field: systems for measure, systems in distributions.shown()}
    words = shown["words"]
    assert words["abstractive"].mean == pytest.approx(numbers.mean())
    assert words["abstractive"].quantile(0.5) == np.median(numbers)
    edges, shares = join_bins(words)
    counts = np.histogram(numbers, edges)[0]
    inner = slice(1, -1)  # The outer bins also hold the values beyond them.
    assert shares["abstractive"][inner].tolist() == pytest.approx(
        (100 * counts / 500)[inner].tolist()
    )
    for systems in shown.values():
        for of_system in join_bins(systems)[1].values():
            assert of_system.sum() == pytest.approx(100)
    assert set(words) == {"extractive", "abstractive"}
    assert set(shown["mean_log_prob"]) == {"abstractive"}
    assert shown["repetition_rate"]["extractive"].mean == 25.0


def test_the_worst_rows_come_first_and_others_are_drawn():
    rows = [(f"d{number}", [], 20, -1.0) for number in range(40)]
    rows[7] = ("d7", ["repeated", "unsupported_name"], 20, -1.02)
    rows[30] = ("d30", [], 20, -4.0)
    rows[31] = ("d31", ["too_short"], 20, -0.98)
    rows[32] = ("d32", ["short_source"], 20, -0.1)
    rows[33] = ("d33", ["too_short"], 20, -0.05)
    rows[34] = ("d34", [], 20, -0.5)
    assert count_flags(report_table(rows))[[7, 30, 31, 32]].tolist() == [2, 0, 1, 0]
    chosen = []
    for cuts in ([0, 40], [0, 3, 25, 40]):
        choice = RowChoice(10)
        for start, end in zip(cuts, cuts[1:], strict=False):
            table = report_table(rows[start:end])
            choice.add(table, log_probabilities(table))
        choice.add(report_table([]), np.empty(0))
        chosen.append(choice.rows())
        # Of rows without a flag the likeliest, which the worst are not.
        assert choice.best()[:2] == [32, 34]
    assert list(chosen[0].items()) == list(chosen[1].items())
    # About as likely as the others, and flagged.
    assert list(chosen[0])[:3] == [30, 7, 31]
    assert len(chosen[0]) == 10 and sum(chosen[0].values()) == 3
    assert not chosen[0][32] and not chosen[0][34]
    everything = RowChoice(40)
    everything.add(report_table(rows), log_probabilities(report_table(rows)))
    assert not any(everything.rows().values())
    assert list(everything.rows())[-2:] == [32, 33]


def test_a_summary_of_another_method_has_no_log_probability():
    table = report_table([("a", [], 20, -1.0), ("b", [], 20, -9.0)])
    methods = pa.array(["abstractive", "lead"])
    table = table.set_column(
        table.schema.get_field_index("summary_method"), "summary_method", methods
    )
    np.testing.assert_array_equal(log_probabilities(table), [-1.0, np.nan])
    choice = RowChoice(2)
    choice.add(table, log_probabilities(table))
    assert choice.rows() == {0: False, 1: False}
    assert choice.best() == [0]


def test_the_chosen_rows_are_read_from_the_tables():
    rows = [(f"d{number}", [], number, -1.0) for number in range(9)]
    taken = take_rows([report_table(rows[:4]), report_table(rows[4:])], [7, 0])
    assert {number: row["document_id"] for number, row in taken.items()} == {
        7: "d7",
        0: "d0",
    }


def test_a_report_starts_without_beam():
    check = (
        "import sys, precis.pipelines.report.report; "
        "assert not {'apache_beam', 'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


class _Noise(NamedTuple):
    """A document whose source cannot be compressed."""

    number: int

    def details(self):
        return {"number": self.number}

    def source(self):
        return {"text": np.random.default_rng(self.number).bytes(500).hex()}


def test_blocks_leave_out_the_sources_of_the_last_documents():
    noises = [_Noise(number) for number in range(3 * DOCUMENTS_A_BLOCK - 5)]
    whole, with_source = pack_documents(noises)
    assert (len(whole), with_source) == (3, len(noises))
    room = len(whole[0]) + 1000
    some, with_source = pack_documents(noises, room)
    assert (len(some), with_source) == (3, DOCUMENTS_A_BLOCK)
    assert some[0] == whole[0]
    assert sum(map(len, some)) <= room
    none, with_source = pack_documents(noises, 300)
    assert (len(none), with_source) == (3, 0)


def test_the_lowest_and_the_highest_scores_of_a_system_are_kept():
    scores = [("a", 0.5), ("b", 0.125), ("c", None), ("d", 0.375), ("e", 0.25)]
    rows = [
        {"document_id": name, "system": system, "rouge1": value}
        for name, of_lead in scores
        for system, value in (("lead", of_lead), ("oracle", 1.0))
    ]
    tables = [pa.Table.from_pylist(rows[:6]), pa.Table.from_pylist(rows[6:])]
    table = report_table([(name, [], 9, 0.0) for name in "abcdef"])
    found = OuterScores(tables, "lead", 1).of(table)
    nan = np.nan
    np.testing.assert_array_equal(found, [50.0, 12.5, nan, nan, nan, nan])
    found = OuterScores(tables, "lead", 2).of(table)
    np.testing.assert_array_equal(found, [50.0, 12.5, nan, 37.5, 25.0, nan])


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
    found = scores_of_rows(rows, tables)
    assert found == [{"lead": 0.5, "oracle": 0.75}, {}, {}]
