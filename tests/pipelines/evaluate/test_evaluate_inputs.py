"""Tests of `precis evaluate`: inputs and flags that are refused."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.summary_rows import rows_of, write_run

from precis.model.errors import DataError, UsageError
from precis.pipelines.evaluate.evaluate import evaluate


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run") / "run", [[rows_of([1, 2])]])


def test_without_a_reference_there_is_no_result(tmp_path):
    bare = write_run(tmp_path / "bare", [[rows_of(range(20, 23), reference=False)]])
    output = tmp_path / "out"
    output.mkdir()
    (output / "rouge.json").write_text("of an earlier evaluation")
    with pytest.raises(
        UsageError, match="--baseline: there is no system 'lead'; there are none"
    ):
        evaluate(input=bare, output=str(output), baseline="lead")
    assert (output / "rouge.json").exists()
    with pytest.raises(
        UsageError,
        match="no row of .*bare has a reference summary; "
        "run `precis summarize` on a corpus with highlights",
    ):
        evaluate(input=bare, output=str(output))
    assert os.listdir(output) == []


def test_a_baseline_that_no_row_has_is_refused(run):
    for baseline, way_out in (
        ("leed", "did you mean lead[?]"),
        ("reference", "there are abstractive, frequency, lead"),
    ):
        with pytest.raises(
            UsageError,
            match=f"--baseline: there is no system '{baseline}'; {way_out}",
        ):
            evaluate(input=run, baseline=baseline)


def test_evaluate_refuses_unknown_flags_before_it_reads_anything():
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
        (unfinished, UsageError, "is not finished: _SUCCESS is not there; "),
        (lambda folder: folder.parent, UsageError, "holds no run: manifest.json is no"),
        (lambda folder: folder / "no", UsageError, "no does not exist; give the --out"),
        (
            lambda folder: folder / "no-*.parquet",
            UsageError,
            r"no file matches .*no-\*",
        ),
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
