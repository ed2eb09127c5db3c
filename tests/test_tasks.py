"""Tests of jobs: whose an output folder is, receipts, and what a result's name depends
on.
"""

import datetime
import hashlib
import importlib.metadata
import json

import pyarrow.parquet as pq
import pytest

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines import tasks
from precis.pipelines.corpus.task import Fields, Task
from precis.pipelines.dead_letters import DeadLetter
from precis.pipelines.schema import DEAD_LETTER_SCHEMA


def begin(folder, *, kind="records", count=2, **inputs):
    return tasks.open_job(
        str(folder), kind=kind, inputs={"seed": 1, **inputs}, tasks=count
    )


def test_a_new_folder_is_taken_and_says_what_runs_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    job = begin(tmp_path / "out")
    assert job.created_at == datetime.datetime(
        2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC
    )
    version = importlib.metadata.version("precis")
    assert (
        job.fingerprint
        == hashlib.sha256(
            f'{{"kind":"records","precis_version":"{version}","seed":1}}'.encode()
        ).hexdigest()
    )
    assert job.run_id == job.fingerprint[:16]
    assert (job.output, job.tasks) == (str(tmp_path / "out"), 2)
    assert json.loads((tmp_path / "out" / "_tasks" / "job.json").read_bytes()) == {
        "created_at": "2023-11-14T22:13:20+00:00",
        "fingerprint": job.fingerprint,
        "inputs": {"precis_version": version, "seed": 1},
        "kind": "records",
    }


def test_a_job_is_from_now_in_whole_seconds(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    job = begin(tmp_path)
    assert before <= job.created_at <= datetime.datetime.now(datetime.UTC)
    assert (
        job.created_at.microsecond == 0
        and job.created_at.utcoffset() == datetime.timedelta(0)
    )


def test_an_interrupted_job_is_found_again_with_its_time(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = begin(tmp_path)
    for name in (
        "summaries/part.aside",
        "_tasks/00001.json.ab12.aside",
        "deep/er/x.12345678.aside",
    ):
        files.write_bytes(str(tmp_path / name), b"half")
    files.write_bytes(str(tmp_path / "summaries" / "part"), b"whole")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    assert begin(tmp_path) == first
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "job.json",
        "part",
    ]


def test_leftovers_are_removed_in_a_folder_whose_name_reads_as_a_pattern(tmp_path):
    folder = tmp_path / "run[1]*"
    begin(folder)
    (folder / "x.aside").write_bytes(b"half")
    begin(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["_tasks"]


def test_a_job_killed_before_it_had_said_its_name_is_begun_anew(tmp_path):
    files.write_bytes(str(tmp_path / "_tasks" / "job.json.0badcafe.aside"), b"{")
    assert begin(tmp_path) is not None


def test_a_finished_job_has_nothing_to_do(tmp_path):
    job = begin(tmp_path)
    files.write_bytes(str(tmp_path / "dataset.json"), b"{}")
    tasks.finish_job(job)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "_SUCCESS",
        "dataset.json",
    ]
    assert (tmp_path / "_SUCCESS").read_text() == job.fingerprint + "\n"
    files.write_bytes(
        str(tmp_path / "_tasks" / "00000.json"), b"{}"
    )  # killed while it removed its receipts
    assert begin(tmp_path) is None
    assert not (tmp_path / "_tasks").exists()


@pytest.mark.parametrize("other", [{"seed": 2}, {"kind": "summaries"}])
def test_the_folder_of_another_job_is_refused(tmp_path, other):
    job = begin(tmp_path)
    with pytest.raises(
        UsageError,
        match=f"^{tmp_path} holds an unfinished job with other settings or another corpus; finish that one, ",
    ):
        begin(tmp_path, **other)
    tasks.finish_job(job)
    with pytest.raises(
        UsageError,
        match=f"^{tmp_path} holds the finished result of another job; name another --output, or remove",
    ):
        begin(tmp_path, **other)


@pytest.mark.parametrize(
    "name", ["notes.txt", "bundle/weights", ".hidden", "_tasks_of_mine/x"]
)
def test_a_folder_that_no_job_began_is_refused(tmp_path, name):
    files.write_bytes(str(tmp_path / name), b"mine")
    with pytest.raises(
        UsageError,
        match=f"^{tmp_path} is not empty and no job of precis began it; name an empty or new folder",
    ):
        begin(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(
        UsageError,
        match="file/out cannot be written: .*Not a directory.*; name another --output",
    ):
        begin(tmp_path / "file" / "out")


def test_a_task_is_done_once(tmp_path):
    job = begin(tmp_path)
    calls = []

    def work():
        calls.append(1)
        files.write_bytes(str(tmp_path / "part"), b"rows")
        return {
            "task": 1,
            "files": [tasks.describe_file(str(tmp_path), "part", rows=3)],
            "dead_letters": [],
        }

    first = tasks.run_task(job, 1, work)
    assert first["files"][0]["bytes"] == 4
    assert tasks.run_task(job, 1, work) == first
    assert len(calls) == 1
    assert json.loads((tmp_path / "_tasks" / "00001.json").read_bytes()) == first


def test_a_task_whose_file_is_gone_or_cut_is_done_again(tmp_path):
    job = begin(tmp_path)
    calls = []

    def work():
        calls.append(1)
        files.write_bytes(str(tmp_path / "part"), b"rows")
        return {
            "files": [],
            "dead_letters": [tasks.describe_file(str(tmp_path), "part", rows=3)],
        }

    first = tasks.run_task(job, 1, work)
    (tmp_path / "part").unlink()
    assert tasks.run_task(job, 1, work) == first and len(calls) == 2
    (tmp_path / "part").write_bytes(b"ro")
    assert tasks.run_task(job, 1, work) == first and len(calls) == 3
    assert (tmp_path / "part").read_bytes() == b"rows"


def test_a_task_that_fails_leaves_no_receipt(tmp_path):
    job = begin(tmp_path)

    def work():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        tasks.run_task(job, 0, work)
    assert not (tmp_path / "_tasks" / "00000.json").exists()


def test_dead_letters_are_published_with_task_and_run(tmp_path):
    job = begin(tmp_path, count=12)
    letters = [
        DeadLetter("read", "invalid_json", "no", None, "a:byte 3", b"\xff"),
        DeadLetter("read", "empty_article", "none", "d1"),
    ]
    (described,) = tasks.publish_dead_letters(job, 7, letters)
    name = "dead_letters/part-00007-of-00012.parquet"
    content = (tmp_path / name).read_bytes()
    assert described == {
        "file": name,
        "rows": 2,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    table = pq.read_table(tmp_path / name)
    assert table.schema.equals(DEAD_LETTER_SCHEMA, check_metadata=True)
    same = {"stage": "read", "task": 7, "run_id": job.run_id}
    assert table.to_pylist() == [
        {
            **same,
            "reason": "invalid_json",
            "detail": "no",
            "document_id": None,
            "location": "a:byte 3",
            "raw": b"\xff",
            "records": 1,
        },
        {
            **same,
            "reason": "empty_article",
            "detail": "none",
            "document_id": "d1",
            "location": None,
            "raw": None,
            "records": 1,
        },
    ]


def test_without_dead_letters_there_is_no_file(tmp_path):
    assert tasks.publish_dead_letters(begin(tmp_path), 0, []) == []
    assert not (tmp_path / "dead_letters").exists()


def test_counts_are_summed_by_name():
    assert tasks.sum_counts([{"b": 1, "a": 0}, {"b": 2, "c": 3}]) == {
        "a": 0,
        "b": 3,
        "c": 3,
    }
    assert (
        list(tasks.sum_counts([{"b": 1, "a": 0}])) == ["a", "b"]
        and tasks.sum_counts([]) == {}
    )


def test_everything_a_task_says_is_part_of_the_fingerprint():
    task = Task(
        1,
        "jsonl",
        ("a", "b"),
        2,
        30,
        "test",
        Fields("text", "summary", "key", "part"),
        "7:9",
        28,
    )
    (described,) = json.loads(json.dumps(tasks.describe_tasks([task])))
    assert described == [
        1,
        "jsonl",
        ["a", "b"],
        2,
        30,
        "test",
        ["text", "summary", "key", "part"],
        "7:9",
        28,
    ]


def test_source_date_epoch_must_be_a_number(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(
        UsageError,
        match="SOURCE_DATE_EPOCH is 'yesterday' and must be whole seconds since 1970",
    ):
        tasks.open_job(str(tmp_path / "out"), kind="records", inputs={}, tasks=1)
    assert not (tmp_path / "out").exists()
