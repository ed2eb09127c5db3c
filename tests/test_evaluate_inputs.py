"""Tests of `precis evaluate`: inputs, and options that are refused."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.summary_rows import rows_of, write_run

from precis.model.errors import UsageError
from precis.pipelines.evaluate import evaluate
from precis.pipelines.options.evaluate import EvaluateOptions


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


def test_a_pattern_of_files(run, tmp_path):
    pattern = f"{run}/summaries/part-00000-*.parquet"
    result = evaluate(input=pattern, output=str(tmp_path / "out"), resamples=10)
    assert result["rows"] == 7
    with pytest.raises(
        UsageError, match="--output is needed where --input is a pattern"
    ):
        evaluate(input=pattern)


def test_no_reference_at_all(run, tmp_path):
    evaluate(input=run, output=str(tmp_path / "out"), resamples=10)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "rouge.json",
        "rouge.md",
        "scores",
    }
    bare = write_run(tmp_path / "bare", [[rows_of(range(20, 23), reference=False)]])
    with pytest.raises(
        UsageError,
        match="no row of .*bare has a reference summary; "
        "run `precis summarize` on a corpus with highlights",
    ):
        evaluate(input=bare, output=str(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == [], (
        "the result of an earlier evaluation must not stay"
    )
    with pytest.raises(
        UsageError, match="--baseline: there is no system 'lead'; there are none"
    ):
        evaluate(input=bare, output=str(tmp_path / "out"), baseline="lead")


def test_a_run_without_rows(tmp_path):
    with pytest.raises(UsageError, match="no row of .* has a reference summary"):
        evaluate(input=write_run(tmp_path / "run", [[]]))


def test_inputs_that_are_no_finished_run(run, tmp_path):
    with pytest.raises(
        UsageError,
        match="nothing does not exist; give the --output of `precis summarize`",
    ):
        evaluate(input=str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="is no run: it has no folder `summaries`"):
        evaluate(input=str(tmp_path))
    with pytest.raises(UsageError, match=r"no file matches .*no-\*.parquet"):
        evaluate(input=f"{run}/no-*.parquet", output=str(tmp_path / "out"))
    (tmp_path / "run" / "_SUCCESS").unlink()
    with pytest.raises(
        UsageError,
        match="has not finished: it has no _SUCCESS; "
        "run the same `precis summarize` again",
    ):
        evaluate(input=run)


def test_files_that_are_no_summaries(tmp_path):
    pq.write_table(
        pa.table({"document_id": ["d"], "run_id": ["r"], "reference_summary": ["a"]}),
        tmp_path / "a.parquet",
    )
    (tmp_path / "b.parquet").write_text("text")
    with pytest.raises(UsageError, match="a.parquet has no column 'extractive'"):
        evaluate(input=str(tmp_path / "a.parquet"), output=str(tmp_path / "out"))
    with pytest.raises(UsageError, match="b.parquet is no Parquet file"):
        evaluate(input=str(tmp_path / "b.parquet"), output=str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"input": ""}, "--input is empty"),
        ({"show": -1}, "--show must be 0 or more, not -1"),
        ({"resamples": 0}, "--resamples must be 1 or more, not 0"),
        ({"confidence": 1.0}, "--confidence must lie between 0 and 1, not 1.0"),
    ],
)
def test_wrong_options(flags, message):
    with pytest.raises(UsageError, match=message):
        EvaluateOptions(**({"input": "run"} | flags))


def test_evaluate_refuses_unknown_flags_before_it_reads_anything():
    with pytest.raises(
        UsageError, match="unknown option 'inputs'; did you mean 'input'"
    ):
        evaluate(inputs="run")
    with pytest.raises(UsageError, match="did you mean --confidence"):
        evaluate(input="run", beam_args=["--confidenc=0.9"])


def test_a_baseline_that_no_row_has_is_refused_before_anything_is_removed(
    run, tmp_path
):
    evaluate(input=run, output=str(tmp_path / "out"), resamples=1)
    with pytest.raises(
        UsageError,
        match="--baseline: there is no system 'leed'; there are abstractive, "
        "frequency, lead",
    ):
        evaluate(input=run, output=str(tmp_path / "out"), baseline="leed")
    assert (tmp_path / "out" / "rouge.json").exists()
    with pytest.raises(
        UsageError,
        match="there is no system 'reference'; there are abstractive, frequency, lead",
    ):
        evaluate(input=run, baseline="reference")
