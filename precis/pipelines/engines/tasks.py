"""Runs the tasks of a job: counts, publishes, writes receipts, skips finished tasks.

    worker.run(task, progress, dead_letters) -> TaskReport   counts and files
    RunTasks -> TaskReport                                   checked and published

A job has one or more steps, and each step has tasks. The receipt
`_tasks/summarize/00003.json` is a task's report as JSON. It is written when all the
files that it describes exist, so a task with a receipt is not run again.

    task            3
    file_counts     {"a.jsonl": {read: 900, written: 897, failed: 2, empty: 1}}
    counts          further counts of the task, such as truncated
    files           [{file, rows, bytes, sha256}]
    dead_letters    [{file, rows, bytes, sha256}], empty without dead letters
    failures        {"read/invalid_json": 2}
    (figures)       values that only this kind of job reports, such as source_lengths

If one of its files fails a task, the task has a dead letter for each file, and neither
rows nor receipt: the same command tries it again. A task that raises `Unfinished`
publishes nothing either; its report is empty.
"""

import abc
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.metrics.metric import Metrics
from apache_beam.pvalue import AsList, PCollection

from precis.model import files
from precis.model.errors import DataError, JobError, Unfinished
from precis.model.finished import damage_of
from precis.model.processes import ProcessPool
from precis.model.progress.counters import count_earlier, enter_step
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import DeadLetter, FileError
from precis.pipelines.engines.beam_runner import works_in_this_process
from precis.pipelines.run.accounts import (
    FileCounts,
    check_file_counts,
    count_by_file,
    sum_file_counts,
    total_counts,
)
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.options import TASK_IMPORTS
from precis.pipelines.run.progress import METRICS_NAMESPACE, TaskProgress
from precis.pipelines.run.result_files import (
    DEAD_LETTERS_FOLDER,
    PublishedFile,
    describe_file,
    read_checksummed,
    write_checksummed,
)

# The keys of every receipt; the other keys are figures.
_COMMON_KEYS = ("task", "file_counts", "counts", "files", "dead_letters", "failures")
_JOB_KEY = "job_fingerprint"


@dataclasses.dataclass(frozen=True)
class TaskReport:
    """The records that a task read, the files it wrote and its failures.

    A worker sets the first four attributes; `RunTasks` sets the others.

    Attributes:
      file_counts: records by outcome, for each corpus file. The reader counts `read`,
          the code that writes results counts the outcomes, and `RunTasks` adds the dead
          letters; `accounts` checks that they add up.
      files: the files that it published, except dead letters.
      figures: values that only this kind of job reports, as JSON if the step has
          receipts; empty if a file failed the task. `documents` counts the task's
          progress if file_counts has no records; `flagged` counts rows with a quality
          flag.
      counts: further counts, which need not add up.
      task: the number of the task.
      dead_letters: the file of its dead letters; empty if there are none.
      failures: the number of lost records by `stage/reason`.
    """

    file_counts: FileCounts
    files: Sequence[PublishedFile]
    figures: Any
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    task: int = -1
    dead_letters: Sequence[PublishedFile] = ()
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)


class TaskWorker(abc.ABC):
    """Does the tasks of one kind of job. Each thread of a process has a copy."""

    def progress_size(self, task: Any) -> int:
        """The size of a task for progress, in the job's unit; 0 to show no progress."""
        return 0

    def load(self) -> None:  # noqa: B027  # Most have nothing to load.
        """Loads models and the like, which the threads of a process share."""

    @abc.abstractmethod
    def run(
        self, task: Any, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Does one task, publishes its files and writes its dead letters."""

    def close(self) -> None:  # noqa: B027
        """Releases everything that `load` acquired."""


class Step(NamedTuple):
    """A step of a job; its finished tasks have receipts.

    Attributes:
      job: the job.
      name: the name of the step, such as `infer`.
    """

    job: Job
    name: str


class RunTasks(beam.PTransform):
    """Runs the tasks of a step and returns their `TaskReport`s, in any order.

        reports = tasks | "ScanTasks" >> RunTasks(worker, step, processes=2)

    The tasks are named tuples with a `number`. A task is skipped if its receipt and all
    its files exist. Without a step, every task is run, there are neither receipts nor
    files of dead letters, and a file that fails its task fails the pipeline.
    """

    def __init__(
        self, worker: TaskWorker, step: Step | None = None, *, processes: int = 1
    ) -> None:
        """Stores its arguments.

        Args:
          worker: does one task.
          step: the step that the tasks belong to.
          processes: how many processes of this machine do the tasks, if the runner uses
              only this machine.
        """
        super().__init__()
        self._worker, self._step, self._processes = worker, step, processes

    def expand(self, tasks: PCollection) -> Any:
        """Spreads the tasks over Beam workers, or over processes of this machine."""
        if works_in_this_process(tasks.pipeline.options):
            given = (self._worker, self._step, self._processes)
            gathered = tasks | "GatherTasks" >> Gather()
            return gathered | "RunTasks" >> beam.FlatMap(run_tasks_here, *given)
        return (
            tasks
            # Otherwise an engine may run all tasks one after another on one worker.
            | "SpreadTasks" >> beam.Reshuffle()
            | "RunTask" >> beam.ParDo(_RunTask(self._worker, self._step))
        )


class Gather(beam.PTransform):
    """All elements as one list, in any order; without elements an empty list.

    Beam's `ToList` does the same in eleven transforms, and takes 0.1 s to start.
    """

    def expand(self, elements: PCollection) -> Any:
        """Reads the elements as a side input of a single element."""
        start = elements.pipeline | beam.Impulse()
        return start | beam.Map(lambda _, all: all, AsList(elements))


class _RunTask(beam.DoFn):
    """Runs a task in the process of an engine that calls it."""

    def __init__(self, worker: TaskWorker, step: Step | None) -> None:
        self._worker, self._step = worker, step

    def setup(self) -> None:
        self._worker.load()

    def teardown(self) -> None:
        self._worker.close()

    def process(self, task: Any) -> Iterator[TaskReport]:
        yield _report(self._worker, self._step, task)


def run_tasks_here(
    tasks: Sequence[Any], worker: TaskWorker, step: Step | None, count: int
) -> Iterator[TaskReport]:
    """Runs tasks in this process or in several of this machine; yields their reports.

    In several processes the largest tasks begin first, and an idle process takes the
    next task, so that all processes end at nearly the same time.

    Args:
      tasks: the tasks; if they read files, in `paths`, an error names them.
      worker: does one task.
      step: the step that the tasks belong to.
      count: the maximum number of processes; 1 is this process.

    Raises:
      PrecisError: a worker raised it; the other processes are ended.
      JobError: a process died twice with the same task.
    """
    if count == 1:
        worker.load()
        with contextlib.closing(worker):
            yield from (_report(worker, step, task) for task in tasks)
        return
    load = functools.partial(_load, worker, step)
    with contextlib.closing(ProcessPool(count, load, imports=TASK_IMPORTS)) as pool:
        largest_first = sorted(tasks, key=worker.progress_size, reverse=True)
        calls = {pool.threads.submit(pool.call, each): each for each in largest_first}
        for call in as_completed(calls):
            try:
                yield call.result()
            except BrokenProcessPool as error:
                task = calls[call]
                paths = ", ".join(getattr(task, "paths", ()))
                raise JobError(
                    "a worker process died twice with the same task "
                    f"({paths or task}), most often because memory ran out; run the "
                    "same command with fewer --workers to continue"
                ) from error


def _load(worker: TaskWorker, step: Step | None) -> Callable[[Any], TaskReport]:
    """Loads a worker in its process; returns a function that runs a task."""
    worker.load()
    return functools.partial(_report, worker, step)


def _report(worker: TaskWorker, step: Step | None, task: Any) -> TaskReport:
    """Runs a task unless it has a receipt; returns its report."""
    enter_step(step.name if step else "")
    size = worker.progress_size(task)
    if step and (report := read_receipt(step, task.number)):
        count_earlier(
            earlier_documents=_shown_documents(report),
            size=size,
            dead_letters=_lost_records(report),
            flagged=report.figures.get("flagged", 0),
        )
        return report
    progress, is_done = TaskProgress(size, _count_metric), True
    try:
        with open_dead_letters(step, task.number) as dead_letters:
            result = worker.run(task, progress, dead_letters)
    except Unfinished:
        progress.finish()
        return TaskReport({}, [], {}, task=task.number)
    except FileError as failure:
        if step is None:
            raise
        progress.give_back()
        is_done = False
        with open_dead_letters(step, task.number) as dead_letters:
            result = _report_failure(task, failure.letter, dead_letters)
    report = publish_report(
        task.number, result, dead_letters, step, has_receipt=is_done
    )
    progress.finish()
    _count_metric("dead_letters", _lost_records(report))
    return report


def open_dead_letters(step: Step | None, number: int) -> DeadLetterWriter:
    """Opens the dead letters of a task; without a step, they are only counted."""
    if step is None:
        return DeadLetterWriter("", task=number, run_id="")
    job = step.job
    name = f"{step.name}-{job.run_id[:8]}-{number:05d}.jsonl.gz"
    path = files.join(job.output, DEAD_LETTERS_FOLDER, name)
    return DeadLetterWriter(path, task=number, run_id=job.run_id)


def _report_failure(
    task: Any, letter: DeadLetter, dead_letters: DeadLetterWriter
) -> TaskReport:
    """The report of a task that a file failed; its other files have no rows either."""
    failed = letter.source_file
    beside = letter._replace(
        detail=f"it was read in one task with {failed}, which failed"
    )
    others = [path for path in getattr(task, "paths", ()) if path != failed]
    for each in [letter, *(beside._replace(source_file=path) for path in others)]:
        dead_letters.write(each)
    return TaskReport(count_by_file(read=dict.fromkeys([failed, *others], 1)), [], {})


def publish_report(
    number: int,
    result: TaskReport,
    dead_letters: DeadLetterWriter,
    step: Step | None,
    *,
    has_receipt: bool = True,
) -> TaskReport:
    """Completes the report of a task, and writes its receipt.

    Args:
      number: the number of the task.
      result: the report that the worker returned.
      dead_letters: the dead letters of the task, already published.
      step: the step that the task belongs to.
      has_receipt: whether to write a receipt if there is a step.

    Raises:
      JobError: the outcomes of the records do not add up.
    """
    lost = count_by_file(failed=dead_letters.failed, empty=dead_letters.empty)
    file_counts = sum_file_counts([result.file_counts, lost])
    check_file_counts(file_counts, what=f"task {number}")
    published: list[PublishedFile] = []
    if step and dead_letters.rows:
        name = dead_letters.path.removeprefix(files.join(step.job.output, ""))
        rows = dead_letters.rows
        published.append(describe_file(step.job.output, name, rows=rows))
    report = dataclasses.replace(
        result,
        task=number,
        file_counts=file_counts,
        dead_letters=published,
        failures=dict(dead_letters.reasons),
    )
    if step and has_receipt:
        if not dead_letters.rows:  # They may be left over from a failed try.
            files.remove(dead_letters.path)
        content = {name: getattr(report, name) for name in _COMMON_KEYS}
        content |= {**report.figures, _JOB_KEY: step.job.fingerprint}
        write_checksummed(receipt_path(step, number), content)
    return report


def receipt_path(step: Step, number: int) -> str:
    """The path of a task's receipt while its job runs."""
    return files.join(step.job.output, TASKS_FOLDER, step.name, f"{number:05d}.json")


def read_receipt(step: Step, number: int) -> TaskReport | None:
    """The report of a finished task; None if it must run: it has no receipt, or the
    receipt or one of its files is missing, changed or damaged.
    """
    try:
        content = read_checksummed(
            receipt_path(step, number),
            way_out="the task is done again",
            fields=dict.fromkeys(("file_counts", "counts", "failures"), dict),
        )
        # The file list of an object store may lag and show receipts of another job.
        if content.pop(_JOB_KEY, "") != step.job.fingerprint:
            return None
        common = {name: content.pop(name) for name in _COMMON_KEYS}
        report = TaskReport(**common, figures=content)
        published = (*report.files, *report.dead_letters)
        is_done = not any(damage_of(step.job.output, file) for file in published)
    except (FileNotFoundError, DataError):
        return None  # The receipt is missing or damaged.
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # Its content has another form.
    return report if is_done else None


def _count_metric(name: str, count: int) -> None:
    """Adds to a Beam counter, which engines show."""
    if count:
        Metrics.counter(METRICS_NAMESPACE, name).inc(count)


def _shown_documents(report: TaskReport) -> int:
    """The number of documents that the worker of a finished task counted."""
    counts = total_counts(report.file_counts)
    return int(report.figures.get("documents", counts["read"] - counts["other_split"]))


def _lost_records(report: TaskReport) -> int:
    """The number of records that became dead letters, including those without text."""
    counts = total_counts(report.file_counts)
    return counts["failed"] + counts["empty"]
