"""Tests of RunTasks: what runs, what is skipped, and what every record counts as."""

import hashlib
import json
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to

from precis.model import files
from precis.model.errors import JobError
from precis.pipelines import progress
from precis.pipelines.corpus.task import Position
from precis.pipelines.dead_letters import DeadLetter
from precis.pipelines.job import open_job
from precis.pipelines.schema import DEAD_LETTER_SCHEMA
from precis.pipelines.tasks import (
    RunTasks,
    TaskReport,
    TaskResult,
    describe_file,
    publish_dead_letters,
    publish_report,
    read_receipt,
    sum_counts,
)


class RowsTask(NamedTuple):
    """A task of these tests: some rows, of which the last cannot be read."""

    number: int
    rows: int


class LongestFigure(NamedTuple):
    """The figures of these tests."""

    longest: int

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "LongestFigure":
        return cls(**content)


class PartWorker:
    """Writes one row of each task but the last, and names the tasks that it runs."""

    def __init__(self, folder: str, *, lost: int = 0) -> None:
        self.folder = folder
        self.lost = lost

    def progress_size(self, task: RowsTask) -> int:
        return 10 * task.rows

    def load(self) -> None:
        self.is_loaded = True

    def close(self) -> None:
        files.write_bytes(f"{self.folder}/closed", b"")

    def run(
        self, task: RowsTask, progress: progress.TaskProgress
    ) -> TaskResult[LongestFigure]:
        assert self.is_loaded
        with open(f"{self.folder}/runs", "a") as log:
            log.write(f"{task.number} ")
        name = f"part-{task.number}"
        files.write_bytes(f"{self.folder}/{name}", b"x" * (task.rows - 1))
        progress.advance_to(Position(task.rows, 0.3))
        return TaskResult(
            counts={"read": task.rows, "written": task.rows - 1 - self.lost, "long": 2},
            files=[describe_file(self.folder, name, rows=task.rows - 1)],
            letters=[DeadLetter("read", "broken", "the last row")],
            figures=LongestFigure(7 + task.number),
        )


@pytest.fixture
def job(tmp_path):
    return open_job(str(tmp_path), kind="records", inputs={}, tasks=2)


TASKS = [RowsTask(0, 3), RowsTask(1, 4)]


def run(tmp_path, job, check, **settings):
    with test_pipeline.TestPipeline("FnApiRunner") as pipeline:
        reports = pipeline | RunTasks(
            TASKS,
            PartWorker(str(tmp_path), **settings),
            job=job,
            figures_from_json=LongestFigure.from_json,
        )
        assert_that(reports, check)


def runs(tmp_path):
    return sorted((tmp_path / "runs").read_text().split())


def of_both_tasks(reports):
    first, second = sorted(reports, key=lambda report: report.task)
    assert [first.task, second.task] == [0, 1]
    assert first.counts == {
        "read": 3,
        "written": 2,
        "failed": 1,
        "duplicates": 0,
        "skipped": 0,
        "long": 2,
    }
    assert first.failures == {"read/broken": 1}
    assert first.figures == LongestFigure(7) and second.figures == LongestFigure(8)
    assert [file["file"] for file in first.files] == ["part-0"]
    (letters,) = second.dead_letters
    assert letters["file"] == "dead_letters/part-00001-of-00002.parquet"


def test_every_task_is_run_once_reported_and_moves_the_progress(
    tmp_path, job, monkeypatch
):
    counts = tmp_path / "counts"
    counts.mkdir()
    monkeypatch.setenv(progress.FOLDER_VARIABLE, str(counts))
    run(tmp_path, job, of_both_tasks)
    assert progress.total(str(counts))[:4] == (7, 70, 0, 0)
    assert runs(tmp_path) == ["0", "1"]
    receipt = json.loads((tmp_path / "_tasks" / "00001.json").read_bytes())
    assert receipt["longest"] == 8 and receipt["counts"]["failed"] == 1
    assert set(receipt) == {
        "task",
        "counts",
        "files",
        "dead_letters",
        "failures",
        "longest",
    }
    run(tmp_path, job, of_both_tasks)
    assert runs(tmp_path) == ["0", "1"]
    assert progress.total(str(counts))[:4] == (7, 70, 7, 70)


def test_a_task_whose_file_is_gone_or_cut_is_run_again(tmp_path, job):
    run(tmp_path, job, of_both_tasks)
    letters = "dead_letters/part-00001-of-00002.parquet"
    for name in ("part-1", letters, "_tasks/00001.json"):
        path = tmp_path / name
        whole = path.read_bytes()
        assert read_receipt(job, 1, LongestFigure.from_json) is not None
        path.unlink()
        assert read_receipt(job, 1, LongestFigure.from_json) is None
        path.write_bytes(whole)
    letters_file = tmp_path / letters
    whole = letters_file.read_bytes()
    letters_file.write_bytes(whole[:-1])
    run(tmp_path, job, of_both_tasks)
    assert runs(tmp_path) == ["0", "1", "1"]
    assert letters_file.read_bytes() == whole


def test_without_a_job_every_task_is_run_and_leaves_no_receipt(tmp_path):
    class SilentWorker(PartWorker):
        def run(self, task, progress):
            result = super().run(task, progress)
            return result._replace(letters=[], counts={"read": 4, "written": 4})

    with test_pipeline.TestPipeline("FnApiRunner") as pipeline:
        reports = pipeline | RunTasks(TASKS, SilentWorker(str(tmp_path)))
        numbers = reports | beam.Map(lambda report: report.task)
        assert_that(numbers, equal_to([0, 1]))
    assert runs(tmp_path) == ["0", "1"]
    assert not (tmp_path / "_tasks").exists()
    assert not (tmp_path / "dead_letters").exists()
    assert (tmp_path / "closed").exists()


def test_a_record_that_is_not_accounted_for_is_a_defect(tmp_path, job):
    result = TaskResult(
        counts={"read": 9, "written": 2, "duplicates": 3, "skipped": 1},
        files=[],
        letters=[DeadLetter("read", "a", "b", records=2)],
        figures=LongestFigure(0),
    )
    with pytest.raises(
        JobError,
        match="task 1 read 9 records, which are not those it accounts for: written 2, "
        "failed 2, duplicates 3, skipped 1; this is a defect of precis",
    ):
        publish_report(1, result, job)
    assert not (tmp_path / "_tasks" / "00001.json").exists()
    assert not (tmp_path / "dead_letters").exists()
    counts = {**result.counts, "read": 8}
    assert publish_report(1, result._replace(counts=counts), job).counts["failed"] == 2


def test_a_task_that_fails_leaves_no_receipt(tmp_path, job):
    with pytest.raises(Exception, match="which are not those it accounts for"):
        run(tmp_path, job, of_both_tasks, lost=1)
    assert not list((tmp_path / "_tasks").glob("0*.json"))
    assert not (tmp_path / "dead_letters").exists()


def test_a_receipt_of_an_interrupted_run_is_read(tmp_path, job):
    """As every version of precis has written it."""
    files.write_bytes(str(tmp_path / "part"), b"rows")
    described = describe_file(str(tmp_path), "part", rows=3)
    receipt = {
        "task": 1,
        "counts": {"read": 3, "written": 3},
        "files": [described],
        "dead_letters": [],
        "failures": {},
        "longest": 5,
    }
    files.write_json(str(tmp_path / "_tasks" / "00001.json"), receipt)
    report = read_receipt(job, 1, LongestFigure.from_json)
    assert report == TaskReport(
        task=1,
        counts={"read": 3, "written": 3},
        files=[described],
        dead_letters=[],
        failures={},
        figures=LongestFigure(5),
    )
    assert report.to_json() == receipt
    assert read_receipt(job, 0, LongestFigure.from_json) is None


def test_dead_letters_are_published_with_task_and_run(tmp_path):
    job = open_job(str(tmp_path), kind="records", inputs={}, tasks=12)
    letters = [
        DeadLetter("read", "invalid_json", "no", None, "a", "byte 3", b"\xff"),
        DeadLetter("read", "empty_article", "none", "d1"),
    ]
    (described,) = publish_dead_letters(job, 7, letters)
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
    same = {
        "stage": "read",
        "task": 7,
        "run_id": job.run_id,
        "records": 1,
        "error_class": None,
        "retryable": False,
        "content_sha256": None,
    }
    assert table.to_pylist() == [
        {
            **same,
            "reason": "invalid_json",
            "detail": "no",
            "document_id": None,
            "source_file": "a",
            "source_position": "byte 3",
            "raw": b"\xff",
        },
        {
            **same,
            "reason": "empty_article",
            "detail": "none",
            "document_id": "d1",
            "source_file": "",
            "source_position": "",
            "raw": None,
        },
    ]


def test_without_dead_letters_there_is_no_file(tmp_path, job):
    assert publish_dead_letters(job, 0, []) == []
    assert not (tmp_path / "dead_letters").exists()


def test_counts_are_summed_by_name():
    assert sum_counts([{"b": 1, "a": 0}, {"b": 2, "c": 3}]) == {
        "a": 0,
        "b": 3,
        "c": 3,
    }
    assert list(sum_counts([{"b": 1, "a": 0}])) == ["a", "b"] and sum_counts([]) == {}
