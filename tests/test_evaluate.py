"""Tests of the evaluation and of the flags for Beam."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import (
    DirectOptions,
)
from support.summary_rows import direct, lines_of, make_row, rows_of, write_run

from precis.pipelines import evaluate as evaluation
from precis.pipelines.beam_runner import pipeline_options
from precis.pipelines.evaluate import evaluate


@pytest.fixture
def run(tmp_path):
    skipped = rows_of(range(20, 25), reference=False)
    return write_run(
        tmp_path / "run",
        [
            [rows_of(range(0, 5)), rows_of(range(5, 7))],
            [skipped + rows_of(range(7, 16))],
        ],
    )


SUMMARIES = {
    "lead-3": lambda row: lines_of(row, "lead"),
    "frequency": lambda row: lines_of(row, "frequency"),
    "abstractive": lambda row: row["abstractive_summary"],
}


def test_figures_agree_with_a_direct_use_of_rouge_score(run):
    result = evaluate(input=run, resamples=50)
    rows = rows_of(range(16))
    assert [system["system"] for system in result["systems"]] == list(SUMMARIES)
    for system in result["systems"]:
        assert system["rows"] == 16
        for measure in ("rouge1", "rouge2", "rougeL", "rougeLsum"):
            expected = np.mean(
                [
                    direct(
                        measure,
                        row["reference_summary"],
                        SUMMARIES[system["system"]](row),
                    )
                    for row in rows
                ]
            )
            assert system[measure]["mean"] == pytest.approx(expected, abs=1e-12)
            assert (
                system[measure]["low"]
                < system[measure]["mean"]
                < system[measure]["high"]
            )
    assert (
        result["rows"],
        result["rows_scored"],
        result["rows_without_reference"],
    ) == (21, 16, 5)
    assert result["truncated_share"] == 4 / 16


def test_lead_3_of_a_summarized_corpus_agrees_with_a_direct_use_of_rouge_score(
    tmp_path,
):
    from precis.pipelines.corpus.sample.generator import document
    from precis.pipelines.summarize import summarize

    summarize(
        corpus="sample:60", output=str(tmp_path / "run"), extractive="frequency,lead"
    )
    result = evaluate(input=str(tmp_path / "run"), resamples=10)
    (lead,) = (system for system in result["systems"] if system["system"] == "lead-3")
    rows = pq.read_table(tmp_path / "run" / "summaries").to_pylist()
    assert lead["rows"] == len(rows) == 60
    by_id = {row["document_id"]: row for row in rows}
    articles = {document(index).document_id: document(index) for index in range(60)}
    assert by_id.keys() == articles.keys()
    for measure in ("rouge1", "rouge2", "rougeLsum"):
        scores = [
            direct(measure, articles[name].highlights, lines_of(row, "lead"))
            for name, row in by_id.items()
        ]
        assert 100 * lead[measure]["mean"] == pytest.approx(
            100 * np.mean(scores), abs=0.01
        )


def test_output_and_printed_table(run, tmp_path, capsys):
    result = evaluate(
        input=run, output=str(tmp_path / "out"), resamples=200, confidence=0.9
    )
    assert json.loads((tmp_path / "out" / "rouge.json").read_text()) == result
    captured = capsys.readouterr()
    printed = captured.out.splitlines()
    lead = result["systems"][0]["rouge1"]
    cell = (
        f"{100 * lead['mean']:.1f} [{100 * lead['low']:.1f}, {100 * lead['high']:.1f}]"
    )
    assert printed[0].split() == [
        "system",
        "rows",
        "ROUGE-1",
        "ROUGE-2",
        "unsplit",
        "ROUGE-L",
        "ROUGE-Lsum",
    ]
    assert printed[1].startswith("lead-3       16    " + cell)
    assert [line.index("[") for line in printed[1:4]] == [printed[1].index("[")] * 3
    assert printed[4] == "" and printed[5].split() == [
        "minus",
        "lead-3",
        "rows",
        "ROUGE-1",
        "ROUGE-2",
        "ROUGE-Lsum",
    ]
    gain = result["differences"][0]["rouge1"]
    difference = (
        f"{100 * gain['mean']:+.1f} [{100 * gain['low']:+.1f}, "
        f"{100 * gain['high']:+.1f}]"
    )
    assert printed[6].startswith(f"frequency     16    {difference}")
    notes = "\n".join(printed[8:])
    assert (
        "ROUGE-Lsum split at line breaks; x100, "
        "90 % intervals from 200 bootstrap samples" in notes
    )
    assert "unsplit ROUGE-L: each text as one sequence of words" in notes
    assert "rows scored: 16; without a reference: 5" in notes
    assert "truncated: 25.0 % of the documents" in notes
    assert "warning" not in notes and "precis evaluate:" not in captured.err
    markdown = (tmp_path / "out" / "rouge.md").read_text()
    assert (
        f"| lead-3 | 16 | {cell} |" in markdown
        and f"| frequency | 16 | {difference}" in markdown
        and "ROUGE-Lsum split" in markdown
    )
    assert (
        "| minus lead-3 | rows | ROUGE-1 | ROUGE-2 | ROUGE-Lsum "
        "|\n|---|---:|---|---|---|\n" in markdown
    )


def test_result_goes_into_the_run_unless_told_otherwise(run, tmp_path):
    evaluate(input=run, resamples=1)
    assert (tmp_path / "run" / "evaluation" / "rouge.json").exists()


def test_confidence_widens_the_interval(run):
    narrow, wide = (
        evaluate(input=run, confidence=c)["systems"][0]["rouge1"] for c in (0.5, 0.99)
    )
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_another_baseline_by_either_of_its_names(run):
    by_lead, by_name, by_frequency = (
        evaluate(input=run, resamples=20, baseline=name)
        for name in ("", "lead-3", "frequency")
    )
    assert (
        by_lead["baseline"] == by_name["baseline"] == "lead-3"
        and by_frequency["baseline"] == "frequency"
    )
    assert by_lead["differences"] == by_name["differences"]
    assert [system["system"] for system in by_frequency["differences"]] == [
        "lead-3",
        "abstractive",
    ]
    assert by_frequency["differences"][0]["rouge1"]["mean"] == pytest.approx(
        -by_lead["differences"][0]["rouge1"]["mean"]
    )


def unsplit_rows():
    """Six rows, of which three have several sentences on one line."""
    one_line = "Rain fell on the coast. Roads were closed. Nobody was hurt."
    both = {
        "reference_summary": one_line,
        "abstractive_summary": "Nobody was hurt. Rain fell on the coast.",
    }
    return [
        *rows_of(range(1, 4)),
        make_row(4, reference_summary=one_line),
        make_row(5, abstractive_summary="The roads were closed. Rain fell."),
        make_row(6, **both),
    ]


def mean_lsum(rows, *, cut):
    """ROUGE-Lsum of the abstractive summaries, the texts cut into sentences or not."""
    scores = []
    for row in rows:
        texts = [row["reference_summary"], row["abstractive_summary"]]
        if cut:
            texts = [text.replace(". ", ".\n") for text in texts]
        scores.append(direct("rougeLsum", *texts))
    return np.mean(scores)


def test_unsplit_texts_are_warned_of_and_can_be_split(tmp_path, capsys):
    rows = unsplit_rows()
    run = write_run(tmp_path / "run", [[rows]])
    plain = evaluate(input=run, resamples=10)
    counts = (
        "several sentences on one line (reference 2, abstractive 2); "
        "--split_sentences cuts them"
    )
    warning = (
        "warning: ROUGE-Lsum of 3 of 6 rows is ROUGE-L of unsplit text and "
        f"reads low: {counts}"
    )
    captured = capsys.readouterr()
    assert (
        warning in captured.out.splitlines()
        and f"precis evaluate: {warning}" in captured.err.splitlines()
    )
    assert warning in (tmp_path / "run" / "evaluation" / "rouge.md").read_text()
    assert (plain["unsplit"], plain["unsplit_rows"]) == (
        {"reference": 2, "abstractive": 2, "summary": 0},
        3,
    )
    split = evaluate(input=run, resamples=10, split_sentences=True)
    captured = capsys.readouterr()
    assert (
        "warning" not in captured.out
        and "precis evaluate:" not in captured.err
        and "3 of 6 rows had texts with several sentences on one line, which were cut"
        in captured.out
    )
    assert (
        split["variant"] == plain["variant"] + ", unsplit texts cut into sentences"
        and split["split_sentences"]
    )

    for result, cut in ((plain, False), (split, True)):
        (abstractive,) = (
            system for system in result["systems"] if system["system"] == "abstractive"
        )
        expected = mean_lsum(rows, cut=cut)
        assert abstractive["rougeLsum"]["mean"] == pytest.approx(expected)
    assert mean_lsum(rows, cut=True) > mean_lsum(rows, cut=False)


def test_show_prints_documents_with_a_reference(tmp_path, capsys):
    run = write_run(
        tmp_path / "run",
        [[rows_of([20], reference=False), rows_of([3])], [rows_of([4, 5])]],
    )
    evaluate(input=run, resamples=1, show=2)
    printed = capsys.readouterr().out
    assert (
        printed.index("document d3\n")
        < printed.index("document d5\n")
        < printed.index("system")
    )
    assert "document d20" not in printed and "document d4" not in printed
    row = make_row(3)
    for text in (
        row["reference_summary"],
        row["extractive_summary"],
        row["abstractive_summary"],
    ):
        assert all(f"\n  {line}\n" in printed for line in text.split("\n"))


def test_run_without_a_network_has_no_abstractive_system(tmp_path, capsys):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 4), network=False)]])
    result = evaluate(input=run, resamples=10, show=1)
    assert [system["system"] for system in result["systems"]] == ["lead-3", "frequency"]
    assert result["truncated_share"] is None
    printed = capsys.readouterr().out
    assert "truncated: no network ran" in printed and "abstractive\n  (none)" in printed


def test_result_does_not_depend_on_the_number_of_workers(run):
    alone = evaluate(input=run, resamples=100)
    together = evaluate(
        input=run,
        resamples=100,
        beam_args=["--direct_num_workers=2", "--direct_running_mode=multi_threading"],
    )
    assert together == alone


@pytest.mark.slow
def test_many_rows_are_scored_in_processes_and_the_result_is_the_same(
    tmp_path, monkeypatch
):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 2500))]])
    alone = evaluate(input=run, output=str(tmp_path / "alone"), resamples=20)
    monkeypatch.setattr(evaluation, "_ROWS_FOR_PROCESSES", 2000)
    monkeypatch.setattr(
        evaluation.os, "sched_getaffinity", lambda pid: {0, 1}, raising=False
    )
    assert evaluation._runner(2499, pipeline_options([]), []) is not None
    assert evaluate(input=run, output=str(tmp_path / "together"), resamples=20) == alone
    parts = [
        sorted(path.name for path in (tmp_path / name / "scores").iterdir())
        for name in ("alone", "together")
    ]
    assert (
        parts[0]
        == parts[1]
        == [f"part-{number:05d}-of-00003.parquet" for number in range(3)]
    )


@pytest.mark.parametrize(
    ("rows", "arguments", "cores"),
    [
        (100, [], {0, 1}),
        (10**6, [], {0}),
        (10**6, ["--direct_num_workers", "1"], {0, 1}),
        (10**6, ["--runner=FlinkRunner"], {0, 1}),
    ],
)
def test_no_processes_for_few_rows_one_core_or_where_flags_say_how(
    monkeypatch, rows, arguments, cores
):
    monkeypatch.setattr(
        evaluation.os, "sched_getaffinity", lambda pid: cores, raising=False
    )
    options = pipeline_options(arguments)
    assert evaluation._runner(rows, options, arguments) is None
    assert options.view_as(DirectOptions).direct_running_mode == "in_memory"
