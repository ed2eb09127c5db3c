"""Tests of runs of `precis summarize`: a killed, full, damaged or repeated one ends as
an undisturbed one, or in one line.
"""

import errno
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import fsspec
import pyarrow.dataset as ds
import pytest
from support.command_line import (
    contents,
    error_lines,
    precis,
    results,
    write_jsonl,
)
from support.summarize_runs import (
    LINES,
    WRITTEN,
    manifest_of,
    place_of,
    rows_of,
    settings_of,
    story,
)
from support.waiting import wait_until

from precis.model.errors import DataError, JobError, UsageError
from precis.model.inference.worker_pool import SearchPool
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.flags.flags import recorded_flags
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.summarize.summarize import run_inputs, summarize
from precis.pipelines.summarize.summarize_task import SummarizeWorker

pytestmark = pytest.mark.usefixtures("one_time")


@pytest.fixture
def extractive_flags(corpus):
    """The flags of the run `extractive`."""
    return {
        "corpus": corpus,
        "task_bytes": 4_000,
        "min_source_words": 0,
        "deduplicate": True,
    }


def test_a_finished_run_is_left_alone_and_says_what_it_made(undisturbed, flags, capsys):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    assert precis("summarize", output=undisturbed, **flags) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")} == before
    printed, manifest = capsys.readouterr(), manifest_of(undisturbed)
    said = printed.out
    line = f"precis summarize: {undisturbed} was finished before; nothing was done"
    assert line in error_lines(printed.err, "summarize")
    assert f"written {len(WRITTEN) - 1}" in said
    for start, name in (
        ("summaries: ", "summary_methods"),
        ("quality flags: ", "quality_flags"),
        ("abstractive summaries held back: ", "fallbacks"),
    ):
        counts = ", ".join(f"{key} {count}" for key, count in manifest[name].items())
        assert start + counts in said.splitlines()
    search = manifest["search"]
    (line,) = [line for line in said.splitlines() if line.startswith("search: ")]
    counts = f"{search['documents']} documents, {search['passages']} passages, "
    assert line.startswith(f"search: {counts}{search['source_tokens']} source tokens (")
    assert line.endswith(" tokens/s")
    with pytest.raises(UsageError, match="holds the finished result of another job"):
        summarize(output=undisturbed, **{**flags, "n_best": 1})


def test_the_manifest_states_the_cost_of_the_search(undisturbed):
    rows = [row for row in rows_of(undisturbed) if row["duplicate_of"] is None]
    search = manifest_of(undisturbed)["search"]
    source_tokens = sum(row["seen_tokens"] for row in rows)
    assert search["documents"] == search["passages"] == len(rows)
    assert search["source_tokens"] == source_tokens
    # Lengths are padded to 16, 32 or 40, so to less than twice the tokens of these
    # documents.
    assert source_tokens < search["padded_tokens"] < 2 * source_tokens
    padding_share = 1 - source_tokens / search["padded_tokens"]
    assert search["padding_share"] == round(padding_share, 4)
    assert len(rows) <= search["summary_tokens"] <= 8 * len(rows)
    assert search["wall_seconds"] > 0
    assert search["process_seconds"] == pytest.approx(search["wall_seconds"], abs=0.01)


def test_every_setting_of_the_rows_makes_another_run(corpus, bundle):
    def inputs(strip_boilerplate=True, clean="standard", **flags):
        read = CorpusOptions(
            corpus=corpus, clean=clean, strip_boilerplate=strip_boilerplate
        )
        settings = settings_of(**flags)
        settings = settings._replace(cleaning={"strip_boilerplate": strip_boilerplate})
        recorded = recorded_flags([read, *settings[:5]])
        found = run_inputs(recorded, settings, list_tasks(read))
        return json.dumps(found, sort_keys=True)

    changes = [
        {"sentences": 2},
        {"extractive": "lead"},
        {"strip_boilerplate": False},
        {"clean": "none"},
        {"redundancy": "mmr"},
        {"min_source_words": 9},
        {"fallback": "extractive"},
        {"fallback_flags": "empty"},
        {"max_repetition_rate": 0.5},
    ]
    others = [inputs(**change) for change in changes]
    assert len({inputs(), *others}) == len(changes) + 1
    # Neither how documents are searched nor where the rows go changes a row.
    assert inputs(search_processes=3) == inputs(window_documents=5) == inputs()
    # What is done with long documents does, where a network reads them.
    network = {"bundle": str(bundle)}
    assert inputs(long_documents="head", merged_length=2.0) == inputs()
    assert inputs(long_documents="head", **network) != inputs(**network)
    assert inputs(merged_length=2.0, **network) != inputs(**network)
    assert "output" not in json.loads(inputs())


def test_the_folder_of_another_command_is_refused(extractive, bundle, corpus):
    with pytest.raises(UsageError, match="holds the finished result of another job"):
        prepare(corpus=corpus, output=extractive)
    with pytest.raises(UsageError, match="is not empty and no job of precis began it"):
        summarize(corpus=corpus, output=bundle)


@pytest.mark.slow
def test_too_many_failures_stop_the_run_and_more_patience_finishes_it(
    extractive, extractive_flags, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    message = rf"2 of {len(LINES)} records failed \(read/invalid_json 1, "
    with pytest.raises(DataError, match=message):
        summarize(output=out, max_failed_share=0.0, **extractive_flags)
    assert not (out / "_SUCCESS").exists()

    def fail(*_):
        raise AssertionError("this was done before")

    monkeypatch.setattr(SummarizeWorker, "run", fail)
    summarize(output=out, max_failed_share=0.5, **extractive_flags)
    assert contents(out) == contents(extractive)


def test_a_damaged_bundle_fails_the_run(bundle, corpus, tmp_path):
    name = "weights.safetensors"
    for file, content in contents(bundle).items():
        (tmp_path / "bundle" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bundle" / file).write_bytes(
            content[:-1] if file == name else content
        )
    with pytest.raises(DataError, match=name):
        summarize(corpus=corpus, bundle=tmp_path / "bundle", output=tmp_path / "out")
    assert not (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_part(
    extractive, extractive_flags, tmp_path, monkeypatch
):
    """And a file that is gone when the run goes on is made again."""
    out, real = tmp_path / "out", os.fsync
    calls = []

    def fail(number):
        calls.append(number)
        # Keys, links and the first parts were written, with their receipts.
        if len(calls) == 24:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    flags = {**extractive_flags, "max_failed_share": 0.5}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(JobError, match="No space left on device"):
            summarize(output=out, **flags)
    assert len(calls) == 24 and not (out / "manifest.json").exists()
    receipts = sorted((out / "_tasks" / "summarize").iterdir())
    piece = json.loads(receipts[0].read_bytes())["files"][0]["file"]
    (out / piece).unlink()
    summarize(output=out, **flags)
    assert contents(out) == contents(extractive)


@pytest.mark.slow
def test_a_killed_run_ends_as_an_undisturbed_one(bundle, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    # 20 tasks of 10 documents.
    flags = {
        "corpus": "sample:200",
        "bundle": bundle,
        "task_bytes": (16 << 10) * 10,
        "beam_width": 2,
    }
    named = {**flags, "output": killed}.items()
    argv = [word for name, value in named for word in (f"--{name}", str(value))]
    process = subprocess.Popen(
        [sys.executable, "-m", "precis.pipelines.command_line.cli", "summarize", *argv],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_until(
            (killed / "_tasks" / "summarize" / "00002.json").exists, process=process
        )
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    receipts = list((killed / "_tasks" / "summarize").glob("0*.json"))
    assert 3 <= len(receipts) < 20 and not (killed / "manifest.json").exists()
    half = killed / "data" / "part-0a1b2c3d-00019.parquet.0a1b2c3d.aside"
    half.write_bytes(b"half a file")
    summarize(output=killed, **flags)
    summarize(output=whole, **flags)
    assert results(killed) == results(whole) and len(rows_of(whole)) == 200


def without_scores(folder):
    """The rows of a run; scores of other processes may differ in the last digit."""
    ignored = {"abstractive": None, "abstractive_quality": None}
    return [{**row, **ignored} for row in rows_of(folder)]


@pytest.mark.slow
def test_worker_processes_of_beam_change_nothing(undisturbed, flags, tmp_path):
    beam = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    summarize(output=tmp_path / "run", beam_args=beam, **flags)
    assert results(tmp_path / "run") == results(undisturbed)


@pytest.mark.slow
def test_search_processes_change_no_summary_and_are_gone_afterwards(
    undisturbed, flags, tmp_path, monkeypatch
):
    monkeypatch.setattr("precis.model.inference.bulk_summarizer.POOL_BATCHES", 1)
    submitted = []
    submit = SearchPool.submit

    def count_and_submit(pool, sources):
        submitted.append(sources)
        return submit(pool, sources)

    monkeypatch.setattr(SearchPool, "submit", count_and_submit)
    summarize(output=tmp_path / "run", search_processes=2, **flags)
    assert without_scores(tmp_path / "run") == without_scores(undisturbed)
    assert len(submitted) >= 4
    assert multiprocessing.active_children() == []

    def fail(pool, batch, **_):
        raise DataError("the search failed")

    monkeypatch.setattr(SearchPool, "_attempt", fail)
    with pytest.raises(DataError, match="the search failed"):
        summarize(output=tmp_path / "fails", search_processes=2, **flags)
    assert multiprocessing.active_children() == []


def test_a_split_without_documents_fails_the_job(tmp_path):
    lines = [story(index, part="a") for index in range(3)]
    corpus = write_jsonl(tmp_path / "c.jsonl", lines)
    flags = {"corpus": corpus, "output": tmp_path / "out", "split_field": "part"}
    message = "holds no document of the split 'b'; check --split"
    with pytest.raises(DataError, match=message):
        summarize(split="b", **flags)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_an_object_store_gets_the_same_rows(extractive, corpus):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/news/news.jsonl", Path(corpus.removeprefix("jsonl:")).read_bytes())
    flags = {
        "corpus": "jsonl:memory://news/*.jsonl",
        "output": "memory://run/summaries",
        "task_bytes": 4_000,
        "min_source_words": 0,
        "max_failed_share": 0.5,
        "deduplicate": True,
    }
    try:
        manifest = summarize(**flags)
        assert summarize(**flags) == manifest  # it is finished
        names = {
            path.removeprefix("/run/summaries/") for path in fs.find("/run/summaries")
        }
        rows = ds.dataset("/run/summaries/data", filesystem=fs).to_table().to_pylist()
    finally:
        fs.rm("/", recursive=True)
    run_ids = [manifest["run_id"][:8], manifest_of(extractive)["run_id"][:8]]
    assert {name.replace(*run_ids) for name in names} == set(contents(extractive))
    of_run = dict.fromkeys(("run_id", "source_file"))
    expected = [{**row, **of_run} for row in rows_of(extractive)]
    rows = [{**row, **of_run} for row in sorted(rows, key=place_of)]
    assert rows == expected


def test_the_manifest_describes_the_run(undisturbed, corpus, bundle):
    manifest = manifest_of(undisturbed)
    for kind, folder in (("files", "data"), ("dead_letters", "dead_letters")):
        parts = sorted((undisturbed / folder).iterdir())
        names = [f"{folder}/{part.name}" for part in parts]
        assert sorted(file["file"] for file in manifest[kind]) == names
        for file in manifest[kind]:
            content = (undisturbed / file["file"]).read_bytes()
            assert file["bytes"] == len(content)
            assert file["sha256"] == hashlib.sha256(content).hexdigest()
    assert sum(file["rows"] for file in manifest["files"]) == len(WRITTEN)
    model_id = json.loads((bundle / "manifest.json").read_bytes())["model_id"]
    assert manifest["model_id"] == model_id
    assert (manifest["corpus"], manifest["bundle"]) == (corpus, str(bundle))
    assert manifest["kind"] == "summaries"
    assert manifest["created_at"] == "2023-11-14T22:13:20+00:00"
    assert manifest["run_id"] == manifest["fingerprint"][:16]
    for row in rows_of(undisturbed):
        for name in ("model_id", "decode_id", "settings_id", "run_id"):
            assert row[name] == manifest[name]
    described = (undisturbed / "manifest.json").read_bytes()
    assert (undisturbed / "_SUCCESS").read_text().split() == [
        manifest["fingerprint"],
        hashlib.sha256(described).hexdigest(),
    ]
    assert not (undisturbed / "_tasks").exists()
