"""Tests of two runs side by side: paired differences, rows with another text."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from support.report_tables import report_table

from precis.pipelines.report.chosen_rows import ChosenRow, RowChoice
from precis.pipelines.report.compared_rows import RowNumbers, changed_rows
from precis.pipelines.report.comparison import (
    compare_measures,
    compare_scores,
    differing_settings,
    text_change,
)


def numbers_of(rows):
    collected = RowNumbers()
    collected.add(report_table(rows[:1]))
    collected.add(report_table(rows[1:]))
    collected.finish()
    return collected


def test_differences_are_paired_by_document():
    mine = [("a", [], 10, -1.0), ("b", [], 20, -1.0), ("x", [], 90, -1.0)]
    others = [("y", [], 50, -1.0), ("b", ["empty"], 14, -1.0), ("a", [], 8, None)]
    found = {
        difference.measure: difference
        for difference in compare_measures(numbers_of(mine), numbers_of(others))
    }
    words = found["words"]
    assert (words.rows, words.mean, words.other_mean) == (2, 15.0, 11.0)
    assert (words.difference, words.low, words.high) == (4.0, 2.0, 6.0)
    assert not words.touches_zero
    assert found["mean log-probability"].rows == 1
    assert found["flags"].difference == -0.5
    assert found["novel bigrams %"].is_zero and found["flags"].touches_zero
    # An id that stands twice is no pair.
    assert compare_measures(numbers_of([mine[0]] * 2), numbers_of(others)) == []
    assert compare_measures(numbers_of([]), numbers_of(others)) == []


def scored_run(systems, scores):
    """A run with an evaluation of (document, system, ROUGE of all kinds)."""
    names = ("document_id", "system", "rouge1", "rouge2", "rougeLsum")
    tables = [
        pa.Table.from_pylist(
            [
                dict(zip(names, (document, system, *[value] * 3), strict=True))
                for document, system, value in part
            ],
            schema=pa.schema(
                [(name, pa.string()) for name in names[:2]]
                + [(name, pa.float64()) for name in names[2:]]
            ),
        )
        for part in (scores[:3], scores[3:])
    ]
    rows = [{"method": name, "system": f"{name}-2"} for name in systems]
    return SimpleNamespace(evaluation={"systems": rows}, scores=lambda: iter(tables))


def test_scores_are_paired_system_by_system():
    mine = [
        *(("a", "lead", 0.5), ("a", "random", 0.25), ("b", "lead", 0.25)),
        *(("c", "lead", None), ("twice", "lead", 1.0), ("twice", "lead", 1.0)),
        ("a", "alone", 1.0),
    ]
    others = [
        *(("b", "lead", 0.125), ("a", "lead", 0.25), ("a", "random", 0.25)),
        *(("c", "lead", 1.0), ("twice", "lead", 0.0), ("z", "bare", 0.0)),
    ]
    found = compare_scores(
        scored_run(["lead", "random", "alone", "bare"], mine),
        scored_run(["random", "lead", "bare"], others),
    )
    assert list(found) == ["lead-2", "random-2"]
    rouge1, _, rouge_lsum = found["lead-2"]
    assert (rouge1.rows, rouge1.mean, rouge1.other_mean) == (2, 0.375, 0.1875)
    assert (rouge1.low, rouge1.high) == (0.125, 0.25)
    assert rouge_lsum.difference == 0.1875
    assert all(each.is_zero for each in found["random-2"])


def test_rows_with_another_text_are_found_among_all_rows():
    mine = numbers_of(
        [
            ("same", [], 90, -1.0, "Rain."),
            ("a", [], 20, -1.0, "Rain fell."),
            ("alone", [], 20, -1.0, "Rain."),
            ("b", ["empty"], 5, -1.0, "Snow."),
            ("article", [], None, -1.0, "All of it."),
        ]
    )
    others = numbers_of(
        [
            ("b", [], 10, -1.0, "Sleet."),
            ("article", [], 30, -1.0, "Some."),
            ("a", [], 21, -1.0, "Rain came down."),
            ("same", [], 10, -1.0, "Rain."),
        ]
    )
    numbers, paired = changed_rows(mine, others)
    assert (numbers.tolist(), paired) == ([4, 3, 1], 4)
    assert mine.concerns.tolist() == pytest.approx([0.1, 0.1, 0.1, 1.1, 0.1])
    assert changed_rows(mine, mine)[0].tolist() == []


def test_rows_that_changed_have_a_place_on_the_page():
    rows = [(f"d{number}", [], 20, -1.0) for number in range(40)]
    rows[7] = ("d7", ["repeated"], 20, -0.5)
    rows[30] = ("d30", ["too_short"], 20, -4.0)
    choice = RowChoice(8)
    choice.add(report_table(rows))
    changed = [ChosenRow(7, 1.05, False, True), ChosenRow(12, 0.1, False, True)]
    chosen = choice.rows(changed)
    assert len({row.number for row in chosen}) == 8
    assert [row.number for row in chosen[:2]] == [30, 7]
    assert [row.number for row in chosen if row.is_changed] == [7, 12]
    assert sum(row.is_drawn for row in chosen) == 3
    everything = RowChoice(40)
    everything.add(report_table(rows))
    assert not any(row.is_changed for row in everything.rows(changed))


def test_a_change_is_the_share_of_other_words():
    assert text_change("Rain fell.", "rain FELL") == 0
    assert text_change("Rain fell.", "Snow melts") == 1
    assert text_change("a b c", "a d e") == pytest.approx(2 / 3)
    assert text_change("", "") == 0


def test_settings_that_differ_are_named():
    first = {"corpus": "c", "settings": {"beam_width": 4, "clean": "none"}}
    other = {"corpus": "c", "settings": {"beam_width": 2, "clean": "none"}}
    assert differing_settings(first, other) == [("beam_width", 4, 2)]
