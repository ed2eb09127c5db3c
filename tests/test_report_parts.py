"""Tests of the parts of a report: marked texts, histograms, the choice of rows, heat
maps by words, blocks of documents.
"""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from support.report_tables import report_table

from precis.model.bundle import network_bundle
from precis.model.inference import attention
from precis.model.inference.attention import HeadWeights
from precis.model.text.article import Article
from precis.pipelines.report import document_details, heat_maps
from precis.pipelines.report.chosen_rows import (
    ChosenRow,
    RowChoice,
    scores_of_rows,
    take_rows,
)
from precis.pipelines.report.columns import concern, count_flags
from precis.pipelines.report.comparison import (
    rows_by_key,
)
from precis.pipelines.report.distributions import Distributions
from precis.pipelines.report.heat_maps import draw_heat_maps, of_words
from precis.pipelines.report.marked_text import Span, cut, find_terms
from precis.pipelines.report.page import DOCUMENTS_A_BLOCK, pack_documents
from precis.pipelines.report.plots import plots
from precis.pipelines.report.reported_run import ReportedRun
from precis.pipelines.report.training_curves import read_curves


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


def test_written_lines_are_marked_with_the_sentences_behind_them():
    text = "Rain fell on Monday. Three roads closed."
    support = [{"start": 21, "end": 40}, None]
    row = {
        "extractive": [{"method": "lead", "start": 0, "end": 20}],
        "abstractive": [{"rank": 1, "support": support}, {"rank": 2, "support": None}],
    }
    assert document_details.source(row, Article.from_text(text)) == {
        "pieces": [
            ("Rain fell on Monday.", ["m:lead"]),
            (" ", []),
            ("Three roads closed.", ["s:1"]),
        ]
    }
    assert document_details.source(row, "it is gone") == {"note": "it is gone"}


def test_the_end_of_a_very_long_source_is_left_out():
    length = document_details.MOST_CHARACTERS + 7
    row = {"extractive": [], "abstractive": None}
    found = document_details.source(row, Article.from_text("x" * length))
    assert len(found["pieces"][0][0]) == document_details.MOST_CHARACTERS
    assert found["note"] == "the first 60,000 of 60,007 characters are shown"


def test_histograms_hold_every_row_whatever_the_tables():
    numbers = np.random.default_rng(3).integers(5, 60, 500)
    rows = [(f"d{place}", [], int(words), -1.0) for place, words in enumerate(numbers)]
    distributions = Distributions()
    distributions.add(report_table(rows[:100]))
    distributions.add(report_table([]))
    distributions.add(report_table(rows[100:]))
    shown = {each.measure.field: each for each in distributions.shown()}
    words = shown["words"]
    assert words.systems["abstractive"].mean == pytest.approx(numbers.mean())
    assert words.systems["abstractive"].quantile(0.5) == np.median(numbers)
    counts = np.histogram(numbers, words.edges)[0]
    inner = slice(1, -1)  # The outer bins also hold what lies beyond them.
    assert words.shares["abstractive"][inner].tolist() == pytest.approx(
        (100 * counts / 500)[inner].tolist()
    )
    for histogram in shown.values():
        for shares in histogram.shares.values():
            assert shares.sum() == pytest.approx(100)
    assert set(words.systems) == {"extractive", "abstractive"}
    assert set(shown["mean_log_prob"].systems) == {"abstractive"}
    assert shown["repetition_rate"].systems["extractive"].mean == 25.0


def test_the_worst_rows_come_first_and_others_are_drawn():
    rows = [(f"d{number}", [], 20, -1.0) for number in range(40)]
    rows[7] = ("d7", ["repeated", "unsupported_name"], 20, -0.5)
    rows[30] = ("d30", ["low_confidence"], 20, -4.0)
    rows[31] = ("d31", ["too_short"], 20, -0.5)
    rows[32] = ("d32", ["short_source"], 20, -0.1)
    assert concern(report_table(rows))[[7, 30, 31, 32]].tolist() == pytest.approx(
        [2.05, 1.4, 1.05, 0.01]
    )
    assert count_flags(report_table(rows))[[7, 30, 32, 33]].tolist() == [2, 1, 1, 0]
    chosen = []
    for cuts in ([0, 40], [0, 3, 25, 40]):
        choice = RowChoice(6)
        for start, end in zip(cuts, cuts[1:], strict=False):
            choice.add(report_table(rows[start:end]))
        choice.add(report_table([]))
        chosen.append(choice.rows())
    assert chosen[0] == chosen[1]
    assert [row.number for row in chosen[0][:3]] == [7, 30, 31]
    assert [row.is_drawn for row in chosen[0]] == [False] * 3 + [True] * 3
    assert len({row.number for row in chosen[0]}) == 6
    everything = RowChoice(40)
    everything.add(report_table(rows))
    assert not any(row.is_drawn for row in everything.rows())
    assert everything.rows()[-1].number == 32


def test_the_chosen_rows_are_read_from_the_tables():
    rows = [(f"d{number}", [], number, -1.0) for number in range(9)]
    tables = [report_table(rows[:4]), report_table(rows[4:])]
    chosen = [ChosenRow(7, 0.0, False), ChosenRow(0, 0.0, False)]
    taken = take_rows(tables, chosen)
    assert {number: row["document_id"] for number, row in taken.items()} == {
        7: "d7",
        0: "d0",
    }
    wanted = {("d5", "d5"), ("d0", "d0"), ("d5", "other")}
    assert set(rows_by_key(tables, wanted)) == {("d5", "d5"), ("d0", "d0")}


def test_a_heat_map_adds_up_the_pieces_of_a_word_and_averages_lines():
    weights = np.array(
        [[0.1, 0.2, 0.1, 0.6], [0.3, 0.4, 0.1, 0.2], [0.0, 0.0, 1.0, 0.0]]
    )
    read = HeadWeights(
        weights=weights[None],
        rows=["▁coa", "##st", "[END]"],
        columns=["▁coa", "##st", "▁.", "▁was"],
        block="copy",
        layer=1,
        summary="coast",
    )
    heat_map = of_words("d", read)
    assert (heat_map.rows, heat_map.columns) == (["coast"], ["coast", "was"])
    assert heat_map.percents == [[50.0, 40.0]]
    assert heat_map.share == pytest.approx(0.9)
    assert heat_map.levels[0][0] > heat_map.levels[0][1]


def test_why_there_is_no_heat_map_is_said(tmp_path):
    manifest = {"bundle": None, "model_id": None}
    assert draw_heat_maps(manifest, [], 3)[1].startswith("no network wrote")
    manifest = {"bundle": str(tmp_path / "none"), "model_id": "m"}
    assert draw_heat_maps(manifest, [], 0)[1] == "--attention_documents is 0"
    assert draw_heat_maps(manifest, [], 3)[1].startswith("no document that the")
    row = {"abstractive_method": "whole", "abstractive_summary": "Rain."}
    drawn, reason = draw_heat_maps(manifest, [(row, None)], 3)
    assert drawn == [] and str(tmp_path / "none") in reason


def test_a_heat_map_reads_the_prefix_of_the_run(monkeypatch, tmp_path):
    """It may be empty though the bundle has a prefix."""
    asked = []

    def note(loaded, text, **settings):
        asked.append((text, settings["summary"]))
        return HeadWeights(
            weights=np.ones((1, 1, 1)),
            rows=["▁rain"],
            columns=["▁rain"],
            block="cross",
            layer=0,
            summary="rain",
        )

    config = SimpleNamespace(pointer=False)
    loaded = SimpleNamespace(network=SimpleNamespace(config=config))
    monkeypatch.setattr(heat_maps, "load_tensorflow", lambda: None)
    monkeypatch.setattr(heat_maps, "_check_bundle", lambda *_: None)
    monkeypatch.setattr(network_bundle, "load_bundle", lambda _: loaded)
    monkeypatch.setattr(attention, "read_attention", note)
    row = {
        "document_id": "d",
        "abstractive_method": "whole",
        "abstractive_summary": "Rain.",
    }
    for prefix in ("", "summarize: "):
        manifest = {"bundle": str(tmp_path), "model_id": "m", "task_prefix": prefix}
        pairs = [(row, Article.from_text("Rain fell."))]
        assert draw_heat_maps(manifest, pairs, 1)[1] == ""
    assert [text for text, _ in asked] == ["Rain fell.", "summarize: Rain fell."]


def test_a_training_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    (tmp_path / "training" / "losses.jsonl").mkdir(parents=True)
    manifest = {"bundle": "nowhere://bundle", "extractive_bundle": str(tmp_path)}
    run = ReportedRun(
        folder="run",
        manifest=manifest,
        evaluation=None,
        evaluation_folder="",
        evaluation_note="",
    )
    shown = plots(run, Distributions())
    assert shown["trainings"] == []
    (unknown, unknown_reason), (folder, reason) = shown["unread_trainings"]
    assert (unknown, folder) == ("nowhere://bundle", str(tmp_path))
    assert "name a local path, or one on gs:// or s3://" in unknown_reason
    assert "Is a directory" in reason


def test_a_report_starts_without_beam():
    check = (
        "import sys, precis.pipelines.report.report; "
        "assert not {'apache_beam', 'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_blocks_leave_out_sources_and_then_details():
    count = 3 * DOCUMENTS_A_BLOCK - 5
    noise = np.random.default_rng(1)

    def details(number):
        return {"number": number}

    def source(_):
        return {"text": noise.bytes(500).hex()}

    whole = pack_documents(count, details, source, most_bytes=1 << 30)
    assert (whole.with_source, whole.with_details, len(whole.texts)) == (
        count,
        count,
        3,
    )
    room = len(whole.texts[0]) + 1000
    some = pack_documents(count, details, source, most_bytes=room)
    assert (some.with_source, some.with_details) == (DOCUMENTS_A_BLOCK, count)
    assert sum(map(len, some.texts)) <= room
    none = pack_documents(count, details, source, most_bytes=300)
    assert none.with_source == 0
    assert none.with_details in (DOCUMENTS_A_BLOCK, 2 * DOCUMENTS_A_BLOCK)
    assert pack_documents(count, details, source, most_bytes=0).texts == []


def test_training_curves_are_thinned_and_half_lines_skipped(tmp_path):
    assert read_curves(str(tmp_path)) is None
    reports = [
        {"step": step, "loss": 10 - step / 1000, "learning_rate": 0.1}
        for step in range(1, 1001)
    ]
    reports[499]["validation"] = {"loss": 9.0, "rouge1": 0.25}
    (tmp_path / "training").mkdir()
    lines = "\n".join(map(json.dumps, reports)) + '\n{"step": 1001, "lo'
    (tmp_path / "training" / "losses.jsonl").write_text(lines)
    curves = read_curves(str(tmp_path))
    assert curves.last_step == 1000
    assert len(curves.steps) == len(curves.losses) == 400
    # The first three steps are one point.
    assert (curves.steps[0], curves.losses[0]) == (2.0, pytest.approx(9.998))
    assert {
        name: values.tolist() for name, (_, values) in curves.validation.items()
    } == {
        "loss": [9.0],
        "rouge1": [0.25],
    }
    (tmp_path / "training" / "losses.jsonl").write_text("")
    assert read_curves(str(tmp_path)) is None


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
