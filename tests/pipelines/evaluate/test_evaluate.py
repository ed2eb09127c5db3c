"""Tests of `precis evaluate`: its result, what it prints, and what it refuses."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.summary_rows import direct, make_row, rows_of, write_run

from precis.model.errors import DataError, UsageError
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.evaluation_table import as_text
from precis.pipelines.summarize.summarize import summarize

FLAGS = {"resamples": 200, "confidence": 0.9}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    skipped = rows_of(range(20, 25), reference=False)
    return write_run(
        tmp_path_factory.mktemp("evaluated") / "run",
        [[rows_of(range(5)), rows_of(range(5, 7))], [skipped + rows_of(range(7, 16))]],
    )


@pytest.fixture(scope="module")
def result(run):
    return evaluate(input=run, **FLAGS)


def test_output_and_printed_table(run, result, tmp_path, capsys):
    """And the number of workers changes nothing."""
    counts = ("rows", "rows_scored", "rows_without_reference")
    assert [result[name] for name in counts] == [21, 16, 5]
    beam = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    output = tmp_path / "out"
    assert evaluate(input=run, output=str(output), beam_args=beam, **FLAGS) == result
    assert json.loads((output / "rouge.json").read_text()) == result
    assert sorted(os.listdir(output)) == ["rouge.json", "rouge.md", "scores"]
    printed = capsys.readouterr().out
    assert printed.startswith(as_text(result))
    systems, differences, notes = printed.split("\n\n")[:3]
    lead, gain = result["systems"][0]["rouge1"], result["differences"][0]["rouge1"]
    assert lead["low"] < lead["mean"] < lead["high"]
    cell, difference = (
        "{:{s}.1f} [{:{s}.1f}, {:{s}.1f}]".format(
            *(100 * figure[name] for name in ("mean", "low", "high")), s=sign
        )
        for figure, sign in ((lead, ""), (gain, "+"))
    )
    head, first, *_ = systems.splitlines()
    assert " ".join(head.split()) == (
        "system rows ROUGE-1 ROUGE-2 unsplit ROUGE-L ROUGE-Lsum"
    )
    assert first.startswith(f"lead-3       16    {cell}")
    head, first, *_ = differences.splitlines()
    assert " ".join(head.split()) == "minus lead-3 rows ROUGE-1 ROUGE-2 ROUGE-Lsum"
    assert first.startswith(f"frequency     16    {difference}")
    for note in (
        "ROUGE-Lsum split at line breaks; x100, 90 % intervals from 200 bootstrap",
        "unsplit ROUGE-L: each text as one sequence of words",
        "rows scored: 16; without a reference: 5",
        "truncated: 25.0 % of the documents",
    ):
        assert note in notes
    assert "warning" not in notes
    markdown = (output / "rouge.md").read_text()
    assert f"| lead-3 | 16 | {cell} |" in markdown
    head = "| minus lead-3 | rows | ROUGE-1 | ROUGE-2 | ROUGE-Lsum |"
    assert f"{head}\n|---|---:|---|---|---|\n" in markdown


def test_another_confidence_and_baseline_and_a_pattern_of_files(run, result, tmp_path):
    flags = {"confidence": 0.5, "baseline": "frequency", "resamples": 200}
    pattern = f"{run}/data/part-*.parquet"
    with pytest.raises(UsageError, match="--output is needed where --input is a patt"):
        evaluate(input=pattern)
    other = evaluate(input=pattern, output=str(tmp_path / "out"), **flags)
    narrow, wide = (each["systems"][0]["rouge1"] for each in (other, result))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert (result["baseline"], other["baseline"]) == ("lead-3", "frequency")
    names = [system["system"] for system in other["differences"]]
    assert names == ["lead-3", "abstractive"]
    forth, back = (each["differences"][0]["rouge1"]["mean"] for each in (result, other))
    assert forth == pytest.approx(-back)


def test_unsplit_texts_are_warned_of_and_can_be_split(tmp_path, capsys):
    """Of six rows, three have several sentences on one line."""
    line = "Rain fell on the coast. Roads were closed. Nobody was hurt."
    other = "Nobody was hurt. Rain fell on the coast."
    rows = [
        *rows_of(range(1, 4), network=True),
        make_row(4, reference_summary=line),
        make_row(5, abstractive_summary="The roads were closed. Rain fell."),
        make_row(6, reference_summary=line, abstractive_summary=other),
    ]
    run = write_run(tmp_path / "run", [[rows]])
    plain = evaluate(input=run, resamples=10)
    warning = (
        "warning: ROUGE-Lsum of 3 of 6 rows is ROUGE-L of unsplit text and reads low: "
        "several sentences on one line (reference 2, abstractive 2); --split_sentences "
        "cuts them"
    )
    assert warning in capsys.readouterr().out.splitlines()
    assert plain["unsplit"] == {"reference": 2, "abstractive": 2, "summary": 0}
    split = evaluate(input=run, resamples=10, split_sentences=True)
    printed = capsys.readouterr().out
    assert "warning" not in printed
    assert "3 of 6 rows had texts with several sentences on one line, which" in printed
    assert split["variant"] == plain["variant"] + ", unsplit texts cut into sentences"
    means = []
    for result, end in ((plain, ". "), (split, ".\n")):
        texts = [(row["reference_summary"], row["abstractive_summary"]) for row in rows]
        scores = [
            direct("rougeLsum", *(text.replace(". ", end) for text in each))
            for each in texts
        ]
        (figures,) = (
            each for each in result["systems"] if each["system"] == "abstractive"
        )
        means.append(figures["rougeLsum"]["mean"])
        assert means[-1] == pytest.approx(np.mean(scores))
    assert means[0] < means[1]


def test_a_run_without_a_network_has_no_abstractive_system(tmp_path, capsys):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 4), network=False)]])
    result = evaluate(input=run, resamples=10)
    assert [system["system"] for system in result["systems"]] == ["lead-3", "frequency"]
    assert result["truncated_share"] is None
    assert "truncated: no network ran" in capsys.readouterr().out


@pytest.mark.parametrize("is_flat", [False, True])
def test_a_real_run_has_measures_of_every_system_and_of_the_references(
    tmp_path, is_flat
):
    article = "A storm hit Larkspur on Monday. Nobody was hurt there. The harbour was "
    references = ["Nobody was hurt.", "A storm hit Bremen."]
    lines = [
        {
            "article": f"{article} closed for {number + 2} days.",
            "highlights": references[number % 2] if number < 7 else None,
        }
        for number in range(8)
    ]
    flags = {"extractive": "lead,lexrank", "sentences": 1, "min_source_words": 0}
    corpus = write_jsonl(tmp_path / "news.jsonl", lines)
    summarize(corpus=corpus, output=tmp_path / "run", flat=is_flat, **flags)
    result = evaluate(input=tmp_path / "run", resamples=5)
    measured = {each["method"]: each for each in result["measures"]}
    assert list(measured) == ["lead", "lexrank", "summary", "reference"]
    assert {each["rows"] for each in measured.values()} == {7}
    # Three of the seven references say `A storm hit Bremen.`, whose last bigram is new;
    # nothing of `Nobody was hurt.` is.
    reference = measured["reference"]
    assert reference["words"] == pytest.approx((3 * 4 + 4 * 3) / 7)
    assert reference["novel_2grams_percent"] == pytest.approx(100 / 7)
    assert reference["flags_percent"]["unsupported_name"] == pytest.approx(300 / 7)
    assert measured["lead"]["words"] == measured["summary"]["words"] == 6.0
    assert measured["lead"]["novel_2grams_percent"] == 0.0


@pytest.mark.slow
def test_rows_are_scored_in_processes_and_the_result_is_the_same(tmp_path):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 2500))]])
    alone, together = (
        evaluate(input=run, output=str(tmp_path / name), resamples=20, workers=workers)
        for name, workers in (("alone", 1), ("together", 2))
    )
    assert together == alone
    expected = [f"part-{number:05d}-of-00003.parquet" for number in range(3)]
    for name in ("alone", "together"):
        assert sorted(os.listdir(tmp_path / name / "scores")) == expected


# --- What is refused.


def test_without_a_reference_or_the_baseline_there_is_no_result(run, tmp_path):
    bare = write_run(tmp_path / "bare", [[rows_of(range(20, 23), reference=False)]])
    output = tmp_path / "out"
    output.mkdir()
    (output / "rouge.json").write_text("of an earlier evaluation")
    for source, baseline, way_out in (
        (run, "leed", "did you mean lead[?]"),
        (run, "reference", "there are abstractive, frequency, lead"),
        (bare, "lead", "there are none"),
    ):
        message = f"--baseline: there is no system '{baseline}'; {way_out}"
        with pytest.raises(UsageError, match=message):
            evaluate(input=source, output=str(output), baseline=baseline)
    assert os.listdir(output) == ["rouge.json"]
    message = "no row of .*bare has a reference summary; run `precis summarize` on a co"
    with pytest.raises(UsageError, match=message):
        evaluate(input=bare, output=str(output))
    assert os.listdir(output) == []


def test_unknown_flags_are_refused_before_anything_is_read():
    with pytest.raises(UsageError, match="unknown option 'inputs'; did you mean input"):
        evaluate(inputs="run")
    with pytest.raises(UsageError, match="did you mean --resamples"):
        evaluate(input="run", beam_args=["--resample=9"])


def damaged(folder):
    part = next((folder / "data").iterdir())
    part.write_bytes(b"x" + part.read_bytes()[1:])
    return folder


def with_another_file(folder):
    part = next((folder / "data").iterdir())
    part.with_name("foreign.parquet").write_bytes(part.read_bytes())
    return folder


def unfinished(folder):
    (folder / "_SUCCESS").unlink()
    return folder


def no_summaries(folder):
    path = folder / "a.parquet"
    pq.write_table(pa.table({"document_id": ["d"], "run_id": ["r"]}), path)
    return path


def no_parquet(folder):
    (folder / "b.parquet").write_text("text")
    return folder / "b.parquet"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (damaged, DataError, "another content than was written.*; run the `precis s"),
        (with_another_file, DataError, "foreign.parquet: the run has not written this"),
        (
            unfinished,
            UsageError,
            "is not finished: _SUCCESS is not there; ",
        ),
        (lambda folder: folder.parent, UsageError, "holds no run: manifest.json is no"),
        (lambda folder: folder / "no", UsageError, "no does not exist; give the --out"),
        (lambda folder: folder / "n-*.parquet", UsageError, r"no file matches .*n-\*"),
        (no_summaries, UsageError, "a.parquet has no column 'reference_summary'"),
        (no_parquet, UsageError, "b.parquet is no Parquet file"),
    ],
)
def test_inputs_that_cannot_be_scored_are_refused(
    tmp_path, tmp_path_factory, change, error, message
):
    write_run(tmp_path / "run", [[rows_of([1])]])
    source = change(tmp_path / "run")
    with pytest.raises(error, match=message):
        evaluate(input=str(source), output=str(tmp_path_factory.mktemp("out")))
