"""Tests of runs of `precis prepare`: a repeated, failed or killed one ends as an
undisturbed one.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest
from support.command_line import contents, error_lines, precis, write_jsonl
from support.prepared import (
    FATES,
    LINES,
    SMALL,
    fail_at,
    run_prepare,
    story,
)

from precis.pipelines import prepare as prepare_module
from precis.pipelines.encoding_pass import EncodeWorker

pytestmark = pytest.mark.usefixtures("one_time")


def test_two_runs_are_byte_identical(prepared_records, prepare_flags, tmp_path):
    run_prepare(output=tmp_path / "again", **prepare_flags)
    assert contents(tmp_path / "again") == contents(prepared_records)


def test_threads_change_nothing(prepared_records, prepare_flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_threading"}
    run_prepare(output=tmp_path / "threads", **prepare_flags, **beam)
    assert contents(tmp_path / "threads") == contents(prepared_records)


@pytest.mark.slow
def test_processes_change_nothing(prepared_records, prepare_flags, tmp_path, capsys):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    run_prepare(output=tmp_path / "processes", **prepare_flags, **beam)
    assert (
        f", {len(LINES) - FATES.count('failed')} documents, " in capsys.readouterr().err
    )  # counted in other processes
    assert contents(tmp_path / "processes") == contents(prepared_records)


def test_a_finished_job_is_left_alone(prepared_records, prepare_flags, capsys):
    before = {path: path.stat().st_mtime_ns for path in prepared_records.rglob("*")}
    run_prepare(output=prepared_records, **prepare_flags)
    assert {
        path: path.stat().st_mtime_ns for path in prepared_records.rglob("*")
    } == before
    assert f"written {FATES.count('written')}\n" in capsys.readouterr().out.replace(
        ", without", "\n, without"
    )


def test_records_of_other_settings_are_not_overwritten(
    prepared_records, prepare_flags, capsys
):
    before = contents(prepared_records)
    assert (
        precis(
            "prepare",
            output=prepared_records,
            **{**prepare_flags, "max_source_tokens": 41},
        )
        == 2
    )
    assert (
        "holds the finished result of another job" in capsys.readouterr().err
        and contents(prepared_records) == before
    )


def test_a_changed_corpus_is_another_job(tmp_path, capsys):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(index) for index in range(8)])
    run_prepare(corpus=corpus, output=tmp_path / "out", **SMALL)
    write_jsonl(tmp_path / "c.jsonl", [story(index) for index in range(9)])
    assert precis("prepare", corpus=corpus, output=tmp_path / "out", **SMALL) == 2
    assert "holds the finished result of another job" in capsys.readouterr().err


def test_too_many_failures_stop_the_job_and_more_patience_finishes_it(
    prepared_records, prepare_flags, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    assert precis("prepare", output=out, max_failed_share=0, **prepare_flags) == 1
    (line,) = error_lines(capsys.readouterr().err, "prepare")
    assert (
        f"5 of {len(LINES)} records failed (read/" in line
        and f"see {out}/dead_letters" in line
    )
    assert (
        not (out / "_SUCCESS").exists()
        and pq.read_table(out / "dead_letters").num_rows == 5
    )

    def fail(*_):
        raise AssertionError("this was done before")

    monkeypatch.setattr(EncodeWorker, "run", fail)
    monkeypatch.setattr(prepare_module, "build_scan", fail)
    run_prepare(output=out, max_failed_share=0.5, **prepare_flags)
    assert contents(out) == contents(prepared_records)


def test_a_job_that_broke_off_does_only_what_is_left(
    prepared_records, prepare_flags, tmp_path, monkeypatch, capsys
):
    out, started = tmp_path / "out", []
    fail_at(monkeypatch, 2, started)
    assert precis("prepare", output=out, **prepare_flags) == 1
    assert "the pipeline failed: " in capsys.readouterr().err
    finished = [int(path.stem) for path in (out / "_tasks").glob("0*.json")]
    assert 2 in started and finished and 2 not in finished
    (out / "train-00002.tfrecord.0a1b2c3d.aside").write_bytes(b"half a file")
    started_again = []
    fail_at(monkeypatch, -1, started_again)
    run_prepare(output=out, **prepare_flags)
    assert set(started_again) & set(finished) == set() and 2 in started_again
    assert contents(out) == contents(prepared_records)


def test_a_job_that_broke_off_goes_on_with_the_same_settings_only(
    prepare_flags, tmp_path, monkeypatch, capsys
):
    fail_at(monkeypatch, 2, [])
    assert precis("prepare", output=tmp_path / "out", **prepare_flags) == 1
    assert (
        precis(
            "prepare",
            output=tmp_path / "out",
            **{**prepare_flags, "vocabulary_size": 700},
        )
        == 2
    )
    assert (
        "holds an unfinished job with other settings or another corpus"
        in capsys.readouterr().err
    )


def test_a_full_disk_is_one_line_and_leaves_no_half_shard(
    prepared_records, prepare_flags, tmp_path, monkeypatch, capsys
):
    real = os.replace

    def fail(source, target):
        if target.endswith(".tfrecord"):
            raise OSError(errno.ENOSPC, "No space left on device", target)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        assert precis("prepare", output=tmp_path / "out", **prepare_flags) == 1
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "prepare")
    assert "No space left on device" in line and "Traceback" not in stderr
    assert not [
        name
        for name in contents(tmp_path / "out")
        if name.endswith((".tfrecord", ".aside", "_SUCCESS", "00000.json"))
    ]
    run_prepare(output=tmp_path / "out", **prepare_flags)
    assert contents(tmp_path / "out") == contents(prepared_records)


def wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["scanning", "encoding"])
def test_a_killed_job_ends_as_an_undisturbed_one(tmp_path, moment):
    flags = {
        "corpus": "sample:1500",
        "task_bytes": (16 << 10) * 15,
        **SMALL,
    }  # 100 tasks of 15 documents
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    argv = [
        part
        for name, value in {**flags, "output": killed}.items()
        for part in (f"--{name}", str(value))
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "precis.pipelines.cli", "prepare", *argv],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    awaited = {"scanning": "job.json", "encoding": "00002.json"}[moment]
    try:
        wait_for((killed / "_tasks" / awaited).exists, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    receipts = list((killed / "_tasks").glob("0*.json"))
    assert (killed / "_tasks" / "scan.json").exists() is (moment == "encoding")
    assert len(receipts) < 100 and bool(receipts) is (moment == "encoding")
    run_prepare(output=killed, **flags)
    run_prepare(output=whole, **flags)
    assert contents(killed) == contents(whole)


def test_an_object_store_gets_the_same_files(prepared_records, prepare_flags):
    fs = fsspec.filesystem("memory")
    path = prepare_flags["corpus"].removeprefix("jsonl:")
    fs.pipe_file("/news/news.jsonl", Path(path).read_bytes())
    try:
        run_prepare(
            output="memory://run/records",
            **{**prepare_flags, "corpus": "jsonl:memory://news/*.jsonl"},
        )
        written = {
            path.removeprefix("/run/records/"): fs.cat_file(path)
            for path in fs.find("/run/records")
        }
    finally:
        fs.rm("/", recursive=True)
    expected = contents(prepared_records)
    assert set(written) == set(expected)
    differing = {name for name in written if written[name] != expected[name]}
    # The paths of the corpus are part of what the job depends on.
    assert {name.partition("/")[0] for name in differing} == {
        "dataset.json",
        "_SUCCESS",
        "dead_letters",
    }
