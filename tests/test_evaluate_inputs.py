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


def test_inputs_that_are_no_finished_run(tmp_path):
    run = write_run(tmp_path / "run", [[rows_of([1])]])
    with pytest.raises(
        UsageError,
        match="nothing does not exist; give the --output of `precis summarize`",
    ):
        evaluate(input=str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="is no run: it has no folder `data`"):
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


def test_a_damaged_run_is_refused_by_the_name_of_the_file(tmp_path):
    """A pattern of files has no manifest, so it is not checked."""
    run = write_run(tmp_path / "run", [[rows_of([1])], [rows_of([2])]])
    first, second = sorted((tmp_path / "run" / "data").iterdir())
    content = second.read_bytes()
    way_out = "run the same `precis summarize` again, which repairs it"
    for damage, problem in (
        (content[:-1], f"{second.name}: has .* bytes and was written with"),
        (b"x" + content[1:], f"{second.name}: has another content than was written"),
    ):
        second.write_bytes(damage)
        with pytest.raises(DataError, match=f"{problem}.*; {way_out}"):
            evaluate(input=run)
    second.unlink()
    with pytest.raises(DataError, match=f"{second.name}: is missing; {way_out}"):
        evaluate(input=run)
    output = str(tmp_path / "out")
    assert evaluate(input=f"{run}/data/*.parquet", output=output)["rows_scored"] == 1
    second.write_bytes(content)
    foreign = first.with_name("foreign.parquet")
    foreign.write_bytes(content)
    message = "foreign.parquet: the run has not written this file; remove it, or give"
    with pytest.raises(DataError, match=message):
        evaluate(input=run)
    foreign.unlink()
    (tmp_path / "run" / "_SUCCESS").write_text("f\nc\n")
    message = (
        f"manifest.json: was changed: its checksum is not that of _SUCCESS; {way_out}"
    )
    with pytest.raises(DataError, match=message):
        evaluate(input=run)
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(DataError, match=f"manifest.json: is missing; {way_out}"):
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


def test_evaluate_refuses_unknown_flags_before_it_reads_anything():
    with pytest.raises(UsageError, match="unknown option 'inputs'; did you mean input"):
        evaluate(inputs="run")
    with pytest.raises(UsageError, match="did you mean --confidence"):
        evaluate(input="run", beam_args=["--confidenc=0.9"])
