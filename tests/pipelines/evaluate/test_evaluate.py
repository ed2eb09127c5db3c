"""Tests of `precis evaluate`: its result, what it prints, and what it refuses."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rouge_score import rouge_scorer
from support.command_line import write_jsonl
from support.summary_rows import rows_of, write_run

from precis.model.errors import UsageError
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.evaluation_table import as_markdown, as_text
from precis.pipelines.summarize.summarize import summarize

FLAGS = {"resamples": 200}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    last = rows_of(range(20, 25), reference=False) + rows_of(range(7, 16))
    groups = [[rows_of(range(5)), rows_of(range(5, 7))], [last]]
    return write_run(tmp_path_factory.mktemp("evaluated") / "run", groups)


@pytest.fixture(scope="module")
def result(run):
    return evaluate(input=run, **FLAGS)


def test_output_and_printed_table(run, result, tmp_path, capsys):
    output = tmp_path / "out"
    assert evaluate(input=run, output=str(output), **FLAGS) == result
    assert json.loads((output / "rouge.json").read_text()) == result
    assert sorted(os.listdir(output)) == ["rouge.json", "rouge.md", "scores"]
    files = "rouge.json, rouge.md, scores/"
    printed = capsys.readouterr().out
    assert printed == f"{as_text(result)}\n\nwrote {output}: {files}\n"
    assert (output / "rouge.md").read_text() == as_markdown(result)
    assert "split at line breaks; x100, 95 % intervals from 200 bootstrap" in printed
    assert "unsplit ROUGE-L: each text as one sequence of words" in printed
    assert "rows scored: 16; without a reference: 5" in printed
    assert "truncated: 25.0 % of the documents" in printed and "warning" not in printed


def test_another_baseline_and_a_pattern_of_files(run, result, tmp_path):
    pattern = f"{run}/data/part-*.parquet"
    with pytest.raises(UsageError, match="--output is required if --input is a patt"):
        evaluate(input=pattern)
    flags = {**FLAGS, "output": str(tmp_path / "out")}
    other = evaluate(input=pattern, baseline="frequency", **flags)
    assert (result["baseline"], other["baseline"]) == ("lead-3", "frequency")
    names = [system["system"] for system in other["differences"]]
    assert names == ["lead-3", "abstractive"]
    forth, back = (each["differences"][0]["rouge1"]["mean"] for each in (result, other))
    assert forth == pytest.approx(-back)
    same = evaluate(input=pattern, baseline="lead-3", **flags)
    assert same["differences"] == result["differences"]


@pytest.mark.parametrize("is_flat", [False, True])
def test_a_run_has_measures_of_its_systems_and_references(tmp_path, capsys, is_flat):
    article = "A storm hit Larkspur on Monday. Nobody was hurt there. The harbour was "
    references = ["Nobody was hurt.", "A storm hit Bremen."]
    lines = [
        {"article": f"{article} closed for {n} days.", "highlights": references[n % 2]}
        for n in range(2, 9)
    ]
    lines.append({"article": f"{article} closed for 9 days.", "highlights": None})
    flags = {"extractive": "lead,lexrank", "sentences": 1, "min_source_words": 0}
    corpus = write_jsonl(tmp_path / "news.jsonl", lines)
    summarize(corpus=corpus, output=tmp_path / "run", flat=is_flat, **flags)
    result = evaluate(input=tmp_path / "run", resamples=5)
    assert result["rows_with_several_references"] == 0
    assert result["truncated_share"] is None
    assert "truncated: no network ran" in capsys.readouterr().out
    systems = [each["method"] for each in result["systems"]]
    assert systems == ["lead", "lexrank", "summary"]
    measured = {each["method"]: each for each in result["measures"]}
    assert list(measured) == ["lead", "lexrank", "summary", "reference"]
    assert {each["rows"] for each in measured.values()} == {7}
    # Three of the seven references say `A storm hit Bremen.`, whose last bigram is new;
    # nothing of `Nobody was hurt.` is.
    reference = measured["reference"]
    assert reference["words"] == pytest.approx((3 * 4 + 4 * 3) / 7)
    assert reference["novel_2grams_percent"] == pytest.approx(100 / 7)
    assert reference["flags_percent"]["unsupported_name"] == pytest.approx(300 / 7)


@pytest.mark.parametrize("is_flat", [False, True])
def test_each_measure_takes_the_best_reference_of_a_document(tmp_path, capsys, is_flat):
    """A later run reuses the rows with the references of its own corpus."""
    article = "A storm hit Larkspur on Monday. Nobody was hurt in the harbour."
    given = [["Nobody spoke.", "A storm on Monday hit it.", "The storm."], ["Rain."]]
    flags = {"extractive": "lead", "sentences": 1, "min_source_words": 0}
    flags |= {"flat": is_flat, "keep_fields": "n"}
    folder = tmp_path / "runs"
    for name, references in (("first", [["Rain."], given[0]]), ("second", given)):
        lines = [
            {"article": f"{article} {n}.", "n": n, "highlights": references[n]}
            for n in range(2)
        ]
        corpus = write_jsonl(tmp_path / "news.jsonl", lines)
        flags |= {"corpus": corpus, "output": folder / name, "reuse": str(folder)}
        manifest = summarize(**flags)
    assert manifest["counts"]["reused"] == 2
    rows = pq.read_table(folder / "second" / "data").sort_by("n").to_pylist()
    assert [row["reference_summary"] for row in rows] == [each[0] for each in given]
    others = [row["other_references"] for row in rows]
    others[0] = json.loads(others[0]) if is_flat else others[0]
    assert others == [given[0][1:], None]
    result = evaluate(input=folder / "second", resamples=5)
    assert result["rows_with_several_references"] == 1
    said = "rows with several references: 1; for each measure of ROUGE the best one"
    assert said in capsys.readouterr().out
    names = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    scorer = rouge_scorer.RougeScorer(names, use_stemmer=True)
    scores = pq.read_table(folder / "second-evaluation" / "scores").to_pylist()
    found = {(row["document_id"], row["system"]): row for row in scores}
    for row, references in zip(rows, given, strict=True):
        expected = scorer.score_multi(references, row["summary"])
        of_row = found[row["document_id"], "summary"]
        assert [of_row[n] for n in names] == [expected[n].fmeasure for n in names]


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


def test_what_cannot_be_scored_is_refused_and_no_earlier_result_stays(run, tmp_path):
    bare = write_run(tmp_path / "bare", [[rows_of(range(20, 23), reference=False)]])
    table = pa.table({"document_id": ["d"], "run_id": ["r"]})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_text("text")
    output = tmp_path / "out"
    for source, baseline, message in (
        (bare, "lead", "--baseline: unknown system 'lead'; the run has none"),
        (run, "leed", "--baseline: unknown system 'leed'; did you mean lead[?]"),
        (run, "reference", "unknown system 'reference'; the run has abstractive, freq"),
        (bare, "", "no row of .*bare has a reference; run `precis summarize`"),
        (tmp_path / "n-*.parquet", "", r"no file matches .*n-\*"),
        (tmp_path / "a.parquet", "", "a.parquet has no column 'reference_summary'"),
        (tmp_path / "b.parquet", "", "b.parquet is not a Parquet file"),
    ):
        files = {"rouge.json", "rouge.md"}
        output.mkdir(exist_ok=True)
        (output / "rouge.json").write_text("of an earlier evaluation")
        with pytest.raises(UsageError, match=message):
            evaluate(input=str(source), output=str(output), baseline=baseline)
        # What is refused before a row is scored leaves the result.
        is_read = source == bare and not baseline
        assert files.isdisjoint(os.listdir(output)) == is_read
