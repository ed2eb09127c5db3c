"""Tests of `precis evaluate`: its result, what it prints, and what it refuses."""

import json
import os

import numpy as np
import pytest
from support.summary_rows import direct, lines_of, make_row, rows_of, write_run

from precis.model.errors import UsageError
from precis.pipelines.evaluate.evaluate import evaluate, output_folder
from precis.pipelines.evaluate.evaluation_table import as_text, baseline_system
from precis.pipelines.evaluate.options import EvaluateOptions


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    skipped = rows_of(range(20, 25), reference=False)
    return write_run(
        tmp_path_factory.mktemp("evaluated") / "run",
        [
            [rows_of(range(0, 5)), rows_of(range(5, 7))],
            [skipped + rows_of(range(7, 16))],
        ],
    )


FLAGS = {"resamples": 200, "confidence": 0.9}


@pytest.fixture(scope="module")
def result(run):
    return evaluate(input=run, **FLAGS)


SUMMARIES = {
    "lead-3": lambda row: lines_of(row, "lead"),
    "frequency": lambda row: lines_of(row, "frequency"),
    "abstractive": lambda row: row["abstractive_summary"],
}


def test_figures_agree_with_a_direct_use_of_rouge_score(result):
    rows = rows_of(range(16))
    assert [system["system"] for system in result["systems"]] == list(SUMMARIES)
    for system in result["systems"]:
        assert system["rows"] == 16
        summaries = [SUMMARIES[system["system"]](row) for row in rows]
        for measure in ("rouge1", "rouge2", "rougeL", "rougeLsum"):
            expected = np.mean(
                [
                    direct(measure, row["reference_summary"], summary)
                    for row, summary in zip(rows, summaries, strict=True)
                ]
            )
            figure = system[measure]
            assert figure["mean"] == pytest.approx(expected, abs=1e-12)
            assert figure["low"] < figure["mean"] < figure["high"]
    counts = ("rows", "rows_scored", "rows_without_reference")
    assert [result[name] for name in counts] == [21, 16, 5]
    assert result["truncated_share"] == 4 / 16


def test_output_and_printed_table(run, result, tmp_path, capsys):
    """And the number of workers changes nothing."""
    beam = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    output = str(tmp_path / "out")
    assert evaluate(input=run, output=output, beam_args=beam, **FLAGS) == result
    assert json.loads((tmp_path / "out" / "rouge.json").read_text()) == result
    assert sorted(os.listdir(output)) == ["rouge.json", "rouge.md", "scores"]
    captured = capsys.readouterr()
    assert as_text(result) in captured.out
    printed = captured.out.splitlines()
    lead = result["systems"][0]["rouge1"]
    cell = (
        f"{100 * lead['mean']:.1f} [{100 * lead['low']:.1f}, {100 * lead['high']:.1f}]"
    )
    heads = "system rows ROUGE-1 ROUGE-2 unsplit ROUGE-L ROUGE-Lsum"
    assert " ".join(printed[0].split()) == heads
    assert printed[1].startswith("lead-3       16    " + cell)
    assert [line.index("[") for line in printed[1:4]] == [printed[1].index("[")] * 3
    assert printed[4] == ""
    assert " ".join(printed[5].split()) == (
        "minus lead-3 rows ROUGE-1 ROUGE-2 ROUGE-Lsum"
    )
    gain = result["differences"][0]["rouge1"]
    difference = (
        f"{100 * gain['mean']:+.1f} [{100 * gain['low']:+.1f}, "
        f"{100 * gain['high']:+.1f}]"
    )
    assert printed[6].startswith(f"frequency     16    {difference}")
    notes = "\n".join(printed[8:])
    for note in (
        "ROUGE-Lsum split at line breaks; x100, "
        "90 % intervals from 200 bootstrap samples",
        "unsplit ROUGE-L: each text as one sequence of words",
        "rows scored: 16; without a reference: 5",
        "truncated: 25.0 % of the documents",
    ):
        assert note in notes
    assert "warning" not in notes
    markdown = (tmp_path / "out" / "rouge.md").read_text()
    assert f"| lead-3 | 16 | {cell} |" in markdown
    assert f"| frequency | 16 | {difference}" in markdown
    assert (
        "| minus lead-3 | rows | ROUGE-1 | ROUGE-2 | ROUGE-Lsum "
        "|\n|---|---:|---|---|---|\n" in markdown
    )


def test_the_result_goes_beside_the_run_unless_told_otherwise():
    assert output_folder(EvaluateOptions(input="run")) == "run-evaluation"
    assert output_folder(EvaluateOptions(input="run", output="out")) == "out"
    with pytest.raises(
        UsageError, match="--output is needed where --input is a pattern"
    ):
        output_folder(EvaluateOptions(input="run/*.parquet"))


def test_another_confidence_and_baseline_and_a_pattern_of_files(run, result, tmp_path):
    flags = {"confidence": 0.5, "baseline": "frequency", "resamples": 200}
    pattern = f"{run}/data/part-*.parquet"
    other = evaluate(input=pattern, output=str(tmp_path / "out"), **flags)
    narrow, wide = (each["systems"][0]["rouge1"] for each in (other, result))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert (result["baseline"], other["baseline"]) == ("lead-3", "frequency")
    names = [system["system"] for system in other["differences"]]
    assert names == ["lead-3", "abstractive"]
    forth, back = (each["differences"][0]["rouge1"]["mean"] for each in (result, other))
    assert forth == pytest.approx(-back)
    names = ("lead-3", "random-12", "lead", "frequency")
    assert [*map(baseline_system, names)] == ["lead", "random", "lead", "frequency"]


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
    assert warning in capsys.readouterr().out.splitlines()
    assert warning in (tmp_path / "run-evaluation" / "rouge.md").read_text()
    assert (plain["unsplit"], plain["unsplit_rows"]) == (
        {"reference": 2, "abstractive": 2, "summary": 0},
        3,
    )
    split = evaluate(input=run, resamples=10, split_sentences=True)
    captured = capsys.readouterr()
    assert (
        "warning" not in captured.out
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


def test_run_without_a_network_has_no_abstractive_system(tmp_path, capsys):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 4), network=False)]])
    result = evaluate(input=run, resamples=10)
    assert [system["system"] for system in result["systems"]] == ["lead-3", "frequency"]
    assert result["truncated_share"] is None
    printed = capsys.readouterr().out
    assert "truncated: no network ran" in printed


@pytest.mark.slow
def test_rows_are_scored_in_processes_and_the_result_is_the_same(tmp_path):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 2500))]])
    alone, together = (
        evaluate(input=run, output=str(tmp_path / name), resamples=20, workers=workers)
        for name, workers in (("alone", 1), ("together", 2))
    )
    assert together == alone
    parts = [
        sorted(path.name for path in (tmp_path / name / "scores").iterdir())
        for name in ("alone", "together")
    ]
    assert (
        parts[0]
        == parts[1]
        == [f"part-{number:05d}-of-00003.parquet" for number in range(3)]
    )
