"""Tests of runs of `precis summarize`: a killed, full, damaged or repeated one ends as
an undisturbed one, or in one line.
"""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support.command_line import (
    contents,
    error_lines,
    precis,
    results,
    without_times,
    write_jsonl,
)
from support.summarize_runs import LINES, WRITTEN, manifest_of, rows_of, story

from precis.pipelines.summarize import summarize
from precis.pipelines.summarize_task import SummarizeWorker

pytestmark = pytest.mark.usefixtures("one_time")


def test_two_runs_are_byte_identical(undisturbed, flags, tmp_path):
    assert precis("summarize", output=tmp_path / "again", **flags) == 0
    assert results(tmp_path / "again") == results(undisturbed)


def test_the_function_gives_the_manifest(undisturbed, flags, tmp_path):
    assert without_times(summarize(output=tmp_path / "out", **flags)) == without_times(
        manifest_of(undisturbed)
    )


def test_a_finished_run_is_left_alone(undisturbed, flags, capsys):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    assert precis("summarize", output=undisturbed, **flags) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")} == before
    assert f"written {len(WRITTEN)}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        {"n_best": 1},
        {"sentences": 2},
        {"extractive": "lead"},
        {"strip_boilerplate": False},
        {"redundancy": "mmr"},
        {"min_source_words": 9},
        {"fallback": "extractive"},
        {"fallback_flags": "empty"},
        {"max_repetition_rate": 0.5},
    ],
)
def test_a_run_of_other_settings_is_not_overwritten(undisturbed, flags, change, capsys):
    assert precis("summarize", output=undisturbed, **{**flags, **change}) == 2
    assert "holds the finished result of another job" in capsys.readouterr().err


def test_the_folder_of_another_command_is_refused(undisturbed, bundle, corpus, capsys):
    assert precis("prepare", corpus=corpus, output=undisturbed) == 2
    assert "holds the finished result of another job" in capsys.readouterr().err
    assert precis("summarize", corpus=corpus, output=bundle) == 2
    assert "is not empty and no job of precis began it" in capsys.readouterr().err


def test_too_many_failures_stop_the_run_and_more_patience_finishes_it(
    undisturbed, flags, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    assert precis("summarize", output=out, max_failed_share=0, **flags) == 1
    (line,) = error_lines(capsys.readouterr().err, "summarize")
    assert (
        f"4 of {len(LINES)} records failed (read/empty_article 2, " in line
        and not (out / "_SUCCESS").exists()
    )

    def fail(*_):
        raise AssertionError("this was done before")

    monkeypatch.setattr(SummarizeWorker, "run", fail)
    assert precis("summarize", output=out, **flags) == 0
    assert results(out) == results(undisturbed)


@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer/vocab.txt"])
def test_a_damaged_bundle_is_one_line(bundle, corpus, tmp_path, capsys, name):
    for file, content in contents(bundle).items():
        (tmp_path / "bundle" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bundle" / file).write_bytes(
            content[:-1] if file == name else content
        )
    assert (
        precis(
            "summarize",
            corpus=corpus,
            bundle=tmp_path / "bundle",
            output=tmp_path / "out",
        )
        == 1
    )
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "summarize")
    assert (
        name in line
        and "Traceback" not in stderr
        and not (tmp_path / "out" / "_SUCCESS").exists()
    )


def test_a_full_disk_is_one_line_and_leaves_no_half_part(
    undisturbed, flags, tmp_path, monkeypatch, capsys
):
    out, real = tmp_path / "out", os.fsync
    calls = []

    def fail(number):
        calls.append(number)
        if (
            len(calls) == 5
        ):  # job.json, the first part, its dead letters and its receipt were written
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert precis("summarize", output=out, **flags) == 1
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "summarize")
    assert "No space left on device" in line and "Traceback" not in stderr
    first = [
        manifest_of(undisturbed)[kind][0]["file"] for kind in ("dead_letters", "files")
    ]
    assert [name for name in contents(out) if not name.startswith("_tasks/")] == first
    assert precis("summarize", output=out, **flags) == 0
    assert results(out) == results(undisturbed)


def wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
def test_a_killed_run_ends_as_an_undisturbed_one(bundle, tmp_path):
    flags = {
        "corpus": "sample:600",
        "bundle": bundle,
        "task_bytes": (16 << 10) * 10,
        "beam_width": 2,
    }  # 60 tasks of 10 documents
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    argv = [
        part
        for name, value in {**flags, "output": killed}.items()
        for part in (f"--{name}", str(value))
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "precis.pipelines.cli", "summarize", *argv],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for((killed / "_tasks" / "00002.json").exists, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert (
        3 <= len(list((killed / "_tasks").glob("0*.json"))) < 60
        and not (killed / "manifest.json").exists()
    )
    (killed / "summaries" / "part-00059-of-00060.parquet.0a1b2c3d.aside").write_bytes(
        b"half a file"
    )
    assert precis("summarize", output=killed, **flags) == 0
    assert precis("summarize", output=whole, **flags) == 0
    assert results(killed) == results(whole) and len(rows_of(whole)) == 600


def test_a_corpus_without_documents_fails_the_job(tmp_path, capsys):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(index, part="a") for index in range(3)]
    )
    assert (
        precis(
            "summarize",
            corpus=corpus,
            output=tmp_path / "out",
            split="b",
            split_field="part",
        )
        == 1
    )
    assert (
        "holds no document of the split 'b'; check --split" in capsys.readouterr().err
    )
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_a_file_that_is_gone_is_made_again(flags, undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(
            "precis.pipelines.summarize.finish_job", lambda job: None
        )  # the job ends just before it is done
        assert precis("summarize", output=folder, **flags) == 0
    next((folder / "summaries").iterdir()).unlink()
    assert precis("summarize", output=folder, **flags) == 0
    assert results(folder) == results(undisturbed)


def test_an_object_store_gets_the_same_rows(extractive, corpus):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/news/news.jsonl", Path(corpus.removeprefix("jsonl:")).read_bytes())
    flags = {
        "corpus": "jsonl:memory://news/*.jsonl",
        "output": "memory://run/summaries",
        "task_bytes": 4_000,
        "min_source_words": 0,
    }
    try:
        assert precis("summarize", **flags) == 0
        assert precis("summarize", **flags) == 0  # it is finished
        names = {
            path.removeprefix("/run/summaries/") for path in fs.find("/run/summaries")
        }
        rows = (
            ds.dataset("/run/summaries/summaries", filesystem=fs).to_table().to_pylist()
        )
        manifest = json.loads(fs.cat_file("/run/summaries/manifest.json"))
    finally:
        fs.rm("/", recursive=True)
    assert names == set(contents(extractive))
    of_run = ("run_id", "created_at")
    assert [{**row, **dict.fromkeys(of_run)} for row in rows] == [
        {**row, **dict.fromkeys(of_run)} for row in rows_of(extractive)
    ]
    assert [file["rows"] for file in manifest["files"]] == [
        file["rows"] for file in manifest_of(extractive)["files"]
    ]


@pytest.mark.slow
def test_a_worker_that_only_extracts_needs_no_network(tmp_path):
    program = (
        "import sys\n"
        "for name in ('tensorflow', 'keras', 'safetensors', 'tensorflow_text', "
        "'tensorboard'): sys.modules[name] = None\n"
        "from precis.pipelines.cli import main\n"
        "sys.exit(main(['summarize', '--corpus', 'sample:20', '--output', "
        f"{str(tmp_path / 'out')!r}]))"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=120,
        cwd=Path(__file__).parent.parent,
    )
    assert len(rows_of(tmp_path / "out")) == 20


def test_the_manifest_describes_the_run(undisturbed, corpus, bundle):
    manifest = manifest_of(undisturbed)
    parts = sorted((undisturbed / "summaries").glob("*.parquet"))
    assert [file["file"] for file in manifest["files"]] == [
        f"summaries/{part.name}" for part in parts
    ]
    letters = sorted((undisturbed / "dead_letters").glob("*.parquet"))
    assert [file["file"] for file in manifest["dead_letters"]] == [
        f"dead_letters/{part.name}" for part in letters
    ]
    for file in [*manifest["files"], *manifest["dead_letters"]]:
        content = (undisturbed / file["file"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        assert (
            file["rows"] == pq.ParquetFile(undisturbed / file["file"]).metadata.num_rows
        )
    assert sum(file["rows"] for file in manifest["files"]) == len(WRITTEN)
    assert (
        manifest["model_id"]
        == json.loads((bundle / "manifest.json").read_bytes())["model_id"]
    )
    assert (manifest["corpus"], manifest["bundle"], manifest["kind"]) == (
        corpus,
        str(bundle),
        "summaries",
    )
    assert (
        manifest["created_at"] == "2023-11-14T22:13:20+00:00"
        and manifest["run_id"] == manifest["fingerprint"][:16]
    )
    for row in rows_of(undisturbed):
        assert {name: row[name] for name in ("model_id", "decode_id", "run_id")} == {
            name: manifest[name] for name in ("model_id", "decode_id", "run_id")
        }
        assert row["created_at"].timestamp() == 1700000000
    assert (undisturbed / "_SUCCESS").read_text().strip() == manifest[
        "fingerprint"
    ] and not (undisturbed / "_tasks").exists()
