"""Tests of RunTasks: what runs, what is skipped, and what every record counts as."""

import json
import os
import re
from typing import NamedTuple

import apache_beam as beam
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to

from precis.model import files
from precis.model.errors import JobError
from precis.model.progress import counters
from precis.pipelines.corpus.dead_letters import DeadLetter, DeadLetterWriter
from precis.pipelines.corpus.task import FileError, Position, unread_file
from precis.pipelines.engines import tasks
from precis.pipelines.engines.tasks import Step, TaskReport, TaskWorker, read_receipt
from precis.pipelines.run import result_files
from precis.pipelines.run.job import open_job


class RowsTask(NamedTuple):
    """A task of these tests: some rows, of which the last cannot be read."""

    number: int
    rows: int


class PartWorker(TaskWorker):
    """Writes one row of each task but the last, and names the tasks that it runs."""

    def __init__(self, folder: str, *, fails: bool = False) -> None:
        self.folder = folder
        self.fails = fails

    def progress_size(self, task):
        return 10 * task.rows

    def load(self):
        self.is_loaded = True

    def close(self):
        files.write_bytes(f"{self.folder}/closed", b"")

    def run(self, task, progress, dead_letters):
        assert self.is_loaded
        with open(f"{self.folder}/runs", "a") as log:
            log.write(f"{task.number} ")
        files.write_bytes(f"{self.folder}/pid", str(os.getpid()).encode())
        name = f"part-{task.number}"
        files.write_bytes(f"{self.folder}/{name}", b"x" * (task.rows - 1))
        progress.advance_to(Position(task.rows, 0.3))
        dead_letters.write(DeadLetter("read", "broken", "the last", source_file="a"))
        if self.fails:
            progress.add("tokens", 70)
            progress.add("flagged", 3)
            raise FileError(unread_file("a", "file_unreadable", "it broke off"))
        return TaskReport(
            file_counts={"a": {"read": task.rows, "written": task.rows - 1}},
            counts={"long": 2},
            files=[result_files.describe_file(self.folder, name, rows=task.rows - 1)],
            figures={"longest": 7 + task.number},
        )


@pytest.fixture
def step(tmp_path):
    return Step(open_job(str(tmp_path), kind="records", inputs={}, tasks=2), "infer")


TASKS = [RowsTask(0, 3), RowsTask(1, 4)]


def run(tmp_path, step, check, *, processes=1, **settings):
    """Runs the tasks, checks their reports and returns what the engine has counted."""
    pipeline = test_pipeline.TestPipeline("FnApiRunner")
    worker = PartWorker(str(tmp_path), **settings)
    transform = tasks.RunTasks(worker, step, processes=processes)
    assert_that(pipeline | beam.Create(TASKS) | transform, check)
    result = pipeline.run()
    result.wait_until_finish()
    metrics = result.metrics().query(MetricsFilter().with_namespace("precis"))
    return {each.key.metric.name: each.committed for each in metrics["counters"]}


def runs(tmp_path):
    return sorted((tmp_path / "runs").read_text().split())


def of_both_tasks(reports):
    first, second = sorted(reports, key=lambda report: report.task)
    assert [first.task, second.task] == [0, 1]
    assert first.file_counts == {"a": {"read": 3, "written": 2, "failed": 1}}
    assert first.counts == {"long": 2}
    assert first.failures == {"read/broken": 1}
    assert first.figures == {"longest": 7} and second.figures == {"longest": 8}
    assert [file["file"] for file in first.files] == ["part-0"]
    (published,) = second.dead_letters
    name = r"dead_letters/infer-[0-9a-f]{8}-00001\.jsonl\.gz"
    assert re.fullmatch(name, published["file"]) and published["rows"] == 1


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """What the tasks have counted."""
    folder = tmp_path / "counts"
    folder.mkdir()
    monkeypatch.setenv(counters.FOLDER_VARIABLE, str(folder))

    def counted() -> tuple[int, ...]:
        """Without what depends on the clock."""
        return counters.sum_counts(counters.totals(str(folder)).values())[:6]

    return counted


@pytest.mark.parametrize("elements", [[], [1], [1, 1, 2]])
def test_all_elements_are_gathered_in_one_list(elements):
    with test_pipeline.TestPipeline() as pipeline:
        gathered = pipeline | beam.Create(elements) | tasks.Gather()
        assert_that(gathered | beam.Map(sorted), equal_to([elements]))


@pytest.mark.parametrize("processes", [1, 2])
def test_every_task_is_run_once_and_counted(tmp_path, step, counted, processes):
    metrics = run(tmp_path, step, of_both_tasks, processes=processes)
    # Other processes are none of the engine's.
    assert metrics == ({"documents": 7, "dead_letters": 2} if processes == 1 else {})
    assert counted() == (7, 70, 0, 2, 0, 0)
    assert runs(tmp_path) == ["0", "1"]
    assert ((tmp_path / "pid").read_text() == str(os.getpid())) == (processes == 1)
    receipt = json.loads((tmp_path / "_tasks" / "infer" / "00001.json").read_bytes())
    assert receipt["longest"] == 8 and receipt["file_counts"]["a"]["failed"] == 1
    assert set(receipt) == {
        *("job_fingerprint", "task", "file_counts", "counts", "files", "dead_letters"),
        *("failures", "longest", "content_sha256"),
    }
    run(tmp_path, step, of_both_tasks, processes=processes)
    assert runs(tmp_path) == ["0", "1"]
    assert counted() == (7, 140, 0, 4, 0, 7)


def test_what_a_failed_task_has_counted_is_given_back(tmp_path, step, counted):
    """The dead letter about the file is the one that is published."""

    def of_failed_tasks(reports):
        for report in reports:
            assert report.failures == {"read/file_unreadable": 1}
            assert report.file_counts == {"a": {"read": 1, "failed": 1}}

    run(tmp_path, step, of_failed_tasks, fails=True)
    assert counted() == (0, 70, 0, 2, 0, 0)
    assert not (tmp_path / "_tasks" / "infer").exists()
    run(tmp_path, step, of_both_tasks)


def test_a_task_whose_file_or_receipt_is_damaged_is_done_again(tmp_path, step):
    run(tmp_path, step, of_both_tasks)
    (letters_file,) = tmp_path.glob("dead_letters/*-00001.jsonl.gz")
    receipt = tmp_path / "_tasks" / "infer" / "00001.json"
    for path in (tmp_path / "part-1", letters_file, receipt):
        whole = path.read_bytes()
        assert read_receipt(step, 1) is not None
        path.unlink()
        assert read_receipt(step, 1) is None
        for damaged in (whole[:-2], whole[:-2] + b"??", b"[1]", b"\xff"):
            path.write_bytes(damaged)
            assert read_receipt(step, 1) is None
        path.write_bytes(whole)
    content = result_files.read_checksummed(str(receipt), way_out="")
    outside = {**content["files"][0], "file": f"../{tmp_path.name}/part-1"}
    for changes in ({"files": [outside]}, {"files": [3]}, {"job_fingerprint": "f"}):
        result_files.write_checksummed(str(receipt), {**content, **changes})
        assert read_receipt(step, 1) is None
    run(tmp_path, step, of_both_tasks)
    assert runs(tmp_path) == ["0", "1", "1"] and letters_file.exists()
    assert read_receipt(step, 1) is not None


def test_without_a_step_every_task_is_run_and_leaves_no_receipt(tmp_path):
    def of_lost_records(reports):
        assert [each.file_counts["a"]["failed"] for each in reports] == [1, 1]

    for _ in range(2):
        run(tmp_path, None, of_lost_records)
    assert runs(tmp_path) == ["0", "0", "1", "1"]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"runs", "pid", "part-0", "part-1", "closed"}
    # There is no folder for the letter about a file, so the job ends.
    with pytest.raises(Exception, match="it broke off"):
        run(tmp_path, None, of_lost_records, fails=True)


def test_a_record_that_is_not_accounted_for_is_a_defect(tmp_path, step):
    counts = {"read": 9, "written": 2, "duplicates": 3, "skipped": 1}
    result = TaskReport({"a": {"read": 1, "written": 1}, "b": counts}, [], {})
    dead_letters = DeadLetterWriter("", task=1, run_id="")
    dead_letters.write(DeadLetter("read", "a", "b", source_file="b", records=2))
    message = "task 1 read 9 records of b but accounts for written 2, duplicates 3, "
    message += "failed 2, skipped 1; this is a bug of precis"
    with pytest.raises(JobError, match=message):
        tasks.publish_report(1, result, dead_letters, step)
    assert not (tmp_path / "_tasks" / "infer").exists()
