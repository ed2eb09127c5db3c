"""Tests of RunTasks: what runs, what is skipped, and what every record counts as."""

import json
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
from precis.pipelines.corpus.task import Position
from precis.pipelines.engines.tasks import (
    RunTasks,
    Step,
    TaskResult,
    open_dead_letters,
    publish_report,
    read_receipt,
)
from precis.pipelines.run import progress
from precis.pipelines.run.job import open_job
from precis.pipelines.run.result_files import (
    describe_file,
    read_checksummed,
    write_checksummed,
)


class RowsTask(NamedTuple):
    """A task of these tests: some rows, of which the last cannot be read."""

    number: int
    rows: int


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
        self,
        task: RowsTask,
        progress: progress.TaskProgress,
        dead_letters: DeadLetterWriter,
    ) -> TaskResult:
        assert self.is_loaded
        with open(f"{self.folder}/runs", "a") as log:
            log.write(f"{task.number} ")
        name = f"part-{task.number}"
        files.write_bytes(f"{self.folder}/{name}", b"x" * (task.rows - 1))
        progress.advance_to(Position(task.rows, 0.3))
        self.write_dead_letters(dead_letters)
        written = task.rows - 1 - self.lost
        return TaskResult(
            sources={"a": {"read": task.rows, "written": written}},
            counts={"long": 2},
            files=[describe_file(self.folder, name, rows=task.rows - 1)],
            figures={"longest": 7 + task.number},
        )

    def write_dead_letters(self, dead_letters: DeadLetterWriter) -> None:
        dead_letters.write(
            DeadLetter("read", "broken", "the last row", source_file="a")
        )


@pytest.fixture
def job(tmp_path):
    return open_job(str(tmp_path), kind="records", inputs={}, tasks=2)


@pytest.fixture
def step(job):
    return Step(job, "infer")


TASKS = [RowsTask(0, 3), RowsTask(1, 4)]


def run(tmp_path, step, check, **settings):
    with test_pipeline.TestPipeline("FnApiRunner") as pipeline:
        worker = PartWorker(str(tmp_path), **settings)
        reports = pipeline | beam.Create(TASKS) | RunTasks(worker, step)
        assert_that(reports, check)


def runs(tmp_path):
    return sorted((tmp_path / "runs").read_text().split())


def of_both_tasks(reports):
    first, second = sorted(reports, key=lambda report: report.task)
    assert [first.task, second.task] == [0, 1]
    assert first.sources == {"a": {"read": 3, "written": 2, "failed": 1}}
    assert first.counts == {"long": 2}
    assert first.failures == {"read/broken": 1}
    assert first.figures == {"longest": 7} and second.figures == {"longest": 8}
    assert [file["file"] for file in first.files] == ["part-0"]
    (dead_letters,) = second.dead_letters
    assert re.fullmatch(
        r"dead_letters/infer-[0-9a-f]{8}-00001\.jsonl\.gz", dead_letters["file"]
    )
    assert dead_letters["rows"] == 1


def test_every_task_is_run_once_reported_and_moves_the_progress(
    tmp_path, step, monkeypatch
):
    counts = tmp_path / "counts"
    counts.mkdir()
    monkeypatch.setenv(counters.FOLDER_VARIABLE, str(counts))
    run(tmp_path, step, of_both_tasks)
    assert counters.total(str(counts))[:2] == (7, 70)
    assert runs(tmp_path) == ["0", "1"]
    receipt = json.loads((tmp_path / "_tasks" / "infer" / "00001.json").read_bytes())
    assert receipt["longest"] == 8 and receipt["sources"]["a"]["failed"] == 1
    assert set(receipt) == {
        "job_fingerprint",
        "task",
        "sources",
        "counts",
        "files",
        "dead_letters",
        "failures",
        "longest",
        "content_sha256",
    }
    run(tmp_path, step, of_both_tasks)
    assert runs(tmp_path) == ["0", "1"]
    total = counters.total(str(counts))
    assert total[:2] == (7, 70)
    assert (total.earlier_documents, total.earlier_size) == (7, 70)


def test_a_task_whose_file_is_gone_or_changed_is_run_again(tmp_path, step):
    run(tmp_path, step, of_both_tasks)
    (dead_letters_file,) = tmp_path.glob("dead_letters/*-00001.jsonl.gz")
    receipt = tmp_path / "_tasks" / "infer" / "00001.json"
    for path in (tmp_path / "part-1", dead_letters_file, receipt):
        whole = path.read_bytes()
        assert read_receipt(step, 1) is not None
        path.unlink()
        assert read_receipt(step, 1) is None
        path.write_bytes(whole)
    for damage in (lambda whole: whole[:-1], lambda whole: whole[:-1] + b"?"):
        whole = dead_letters_file.read_bytes()
        dead_letters_file.write_bytes(damage(whole))
        assert read_receipt(step, 1) is None
        dead_letters_file.write_bytes(whole)
    dead_letters_file.write_bytes(whole[:-1])
    run(tmp_path, step, of_both_tasks)
    assert runs(tmp_path) == ["0", "1", "1"]
    assert dead_letters_file.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [
        b"[1]",
        b"{}",
        b"\xff",
        b'{"sources": {}, "counts": {}, "files": [3], "failures": {}}',
        b'{"task": 1, "sources": {}, "counts": {}, "dead_letters": [], "failures": {}, '
        b'"files": [{"file": "../x", "bytes": 1, "sha256": ""}], "longest": 1}',
    ],
)
def test_a_task_with_a_damaged_receipt_is_done_again(content, tmp_path, step):
    run(tmp_path, step, of_both_tasks)
    (tmp_path / "_tasks" / "infer" / "00001.json").write_bytes(content)
    assert read_receipt(step, 1) is None
    run(tmp_path, step, of_both_tasks)
    assert runs(tmp_path) == ["0", "1", "1"]


def test_a_receipt_that_names_a_file_outside_of_the_output_does_not_stand(
    tmp_path, step
):
    run(tmp_path, step, of_both_tasks)
    path = str(tmp_path / "_tasks" / "infer" / "00001.json")
    receipt = read_checksummed(path, way_out="")
    (described,) = receipt["files"]
    assert described["file"] == "part-1"
    described["file"] = f"../{tmp_path.name}/part-1"
    write_checksummed(path, receipt)
    assert read_receipt(step, 1) is None


def test_without_a_step_every_task_is_run_and_leaves_no_receipt(tmp_path):
    class SilentWorker(PartWorker):
        def write_dead_letters(self, dead_letters):
            dead_letters.write(DeadLetter("read", "broken", "counted", source_file="a"))

    with test_pipeline.TestPipeline("FnApiRunner") as pipeline:
        worker = SilentWorker(str(tmp_path))
        reports = pipeline | beam.Create(TASKS) | RunTasks(worker)
        failed = reports | beam.Map(
            lambda report: (report.task, report.sources["a"]["failed"])
        )
        assert_that(failed, equal_to([(0, 1), (1, 1)]))
    assert runs(tmp_path) == ["0", "1"]
    assert not (tmp_path / "_tasks").exists()
    assert not (tmp_path / "dead_letters").exists()
    assert (tmp_path / "closed").exists()


def test_a_record_that_is_not_accounted_for_is_a_defect(tmp_path, step):
    result = TaskResult(
        sources={
            "a": {"read": 1, "written": 1},
            "b": {"read": 9, "written": 2, "duplicates": 3, "skipped": 1},
        },
        files=[],
        figures={"longest": 0},
    )
    dead_letters = DeadLetterWriter("", task=1, run_id="")
    dead_letters.write(DeadLetter("read", "a", "b", source_file="b", records=2))
    with pytest.raises(
        JobError,
        match="task 1 read 9 records of b, which are not those it accounts for: "
        "written 2, duplicates 3, failed 2, skipped 1; this is a defect of precis",
    ):
        publish_report(1, result, dead_letters, step)
    assert not (tmp_path / "_tasks" / "infer").exists()


def test_a_receipt_of_another_job_does_not_stand(tmp_path, step):
    """A late list of an object store may have kept it from being removed."""
    dead_letters = open_dead_letters(step, 1)
    result = TaskResult({"a": {"read": 0}}, [], {"longest": 5})
    with dead_letters:
        publish_report(1, result, dead_letters, step)
    assert read_receipt(step, 1) is not None
    other = step._replace(job=step.job._replace(fingerprint="f" * 64))
    assert read_receipt(other, 1) is None


def test_an_engine_gets_the_same_counts_as_metrics(tmp_path, step):
    pipeline = beam.Pipeline("FnApiRunner")
    _ = pipeline | beam.Create(TASKS) | RunTasks(PartWorker(str(tmp_path)), step)
    result = pipeline.run()
    result.wait_until_finish()
    counted = result.metrics().query(MetricsFilter().with_namespace("precis"))
    assert {
        counter.key.metric.name: counter.committed for counter in counted["counters"]
    } == {"documents": 7, "dead_letters": 2}
