"""Running the tasks of a job: count, publish, write a receipt, skip what is done.

    worker.run(task) -> TaskResult      what the worker read, wrote and could not read
    RunTasks         -> TaskReport      the same, checked and published

The receipt `_tasks/00003.json` is a task's report as JSON. It is written when all the
files that it describes are in place, so a task with a receipt need not run again.

    task            3
    counts          read 900, written 897, failed 2, duplicates 1, skipped 0
    files           [{file, rows, bytes, sha256}]
    dead_letters    the same, of the file of dead letters if there is one
    failures        read/invalid_json 2
    (figures)       what only this kind of job reports, such as source_lengths
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import (
    Any,
    Generic,
    NamedTuple,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
)

import apache_beam as beam

from precis.model import files
from precis.model.errors import JobError
from precis.pipelines.dead_letters import DeadLetter, count_reasons
from precis.pipelines.job import DEAD_LETTERS_FOLDER, TASKS_FOLDER, Job, part_name
from precis.pipelines.progress import TaskProgress, count_earlier_task
from precis.pipelines.schema import (
    DEAD_LETTER_SCHEMA,
    dead_letter_table,
    write_parquet,
)

# The keys of a receipt that every kind of job has; the others are its figures.
_COMMON_KEYS = ("task", "counts", "files", "dead_letters", "failures")


class PublishedFile(TypedDict):
    """A file as receipts and manifests describe it.

    `file` is its name in the output folder; only a shard of records has a `split`.
    """

    file: str
    rows: int
    bytes: int
    sha256: str
    split: NotRequired[str]


class TaskFigures(Protocol):
    """What only one kind of job reports of a task: a named tuple."""

    def _asdict(self) -> dict[str, Any]: ...


FiguresT = TypeVar("FiguresT", bound=TaskFigures)


class TaskResult(NamedTuple, Generic[FiguresT]):
    """What a worker returns of one task.

    Attributes:
      counts: `read` counts every record of the task, and `written`, `duplicates` and
          `skipped` count those that did not become dead letters. A job may count more
          under other names.
      files: the files that the worker has published.
      letters: the dead letters, which are published by `RunTasks`.
      figures: what only this kind of job reports.
    """

    counts: Mapping[str, int]
    files: Sequence[PublishedFile]
    letters: Sequence[DeadLetter]
    figures: FiguresT


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskReport(Generic[FiguresT]):
    """What one task read, wrote and could not process.

    Attributes:
      task: its number.
      counts: records by what became of them:
          read = written + failed + duplicates + skipped.
      files: what it published, without the dead letters.
      dead_letters: the file of its dead letters; empty where it has none.
      failures: lost records by `stage/reason`.
      figures: what only this kind of job reports.
    """

    task: int
    counts: Mapping[str, int]
    files: Sequence[PublishedFile]
    dead_letters: Sequence[PublishedFile]
    failures: Mapping[str, int]
    figures: FiguresT

    def to_json(self) -> dict[str, Any]:
        """The content of the task's receipt."""
        common = {name: getattr(self, name) for name in _COMMON_KEYS}
        return {**common, **self.figures._asdict()}

    @classmethod
    def from_json(
        cls,
        content: Mapping[str, Any],
        figures_from_json: Callable[[Mapping[str, Any]], FiguresT],
    ) -> "TaskReport[FiguresT]":
        """The report of a receipt; `figures_from_json` takes what only it holds."""
        common = {name: content[name] for name in _COMMON_KEYS}
        others = {name: content[name] for name in content if name not in _COMMON_KEYS}
        return cls(**common, figures=figures_from_json(others))


class TaskWorker(Protocol):
    """How one kind of job does its tasks. Each thread of a process has its own copy."""

    def progress_size(self, task: Any) -> int:
        """The size of a task for the display, in the job's unit."""

    def load(self) -> None:
        """Loads what is heavy; the threads of a process share it."""

    def run(self, task: Any, progress: TaskProgress) -> TaskResult[Any]:
        """Does one task and publishes its files, except for the dead letters."""

    def close(self) -> None:
        """Gives back what `load` took."""


class RunTasks(beam.PTransform, Generic[FiguresT]):
    """Runs the tasks of a job and yields a `TaskReport` of each, in any order.

        reports = pipeline | RunTasks(tasks, worker, job=job, figures_from_json=...)

    With a job, a task whose receipt stands with all its files is not run again. Without
    a job, every task is run and there are no receipts.
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        worker: TaskWorker,
        *,
        job: Job | None = None,
        figures_from_json: Callable[[Mapping[str, Any]], FiguresT] | None = None,
    ) -> None:
        """Stores its arguments.

        Args:
          tasks: named tuples with a `number`.
          worker: does one task.
          job: the job that the tasks belong to.
          figures_from_json: reads the figures of a receipt; needed with a job.
        """
        super().__init__()
        self._tasks = tasks
        self._run_task = _RunTask(worker, job, figures_from_json)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        """Adds the tasks and their runs."""
        return (
            root
            | "ListTasks" >> beam.Create(self._tasks)
            | "RunTask" >> beam.ParDo(self._run_task)
        )


class _RunTask(beam.DoFn):
    """Runs one task, unless its receipt stands, and yields its report."""

    def __init__(
        self,
        worker: TaskWorker,
        job: Job | None,
        figures_from_json: Callable[[Mapping[str, Any]], Any] | None,
    ) -> None:
        self._worker = worker
        self._job = job
        self._figures_from_json = figures_from_json

    def setup(self) -> None:
        self._worker.load()

    def teardown(self) -> None:
        self._worker.close()

    def process(self, task: Any) -> Iterator[Any]:
        size = self._worker.progress_size(task)
        report = self._finished_before(task.number)
        if report is None:
            progress = TaskProgress(size)
            result = self._worker.run(task, progress)
            report = publish_report(task.number, result, self._job)
            progress.finish()
        else:
            count_earlier_task(report.counts["read"], size)
        yield report

    def _finished_before(self, number: int) -> TaskReport[Any] | None:
        if self._job is None or self._figures_from_json is None:
            return None
        return read_receipt(self._job, number, self._figures_from_json)


def publish_report(
    number: int, result: TaskResult[FiguresT], job: Job | None
) -> TaskReport[FiguresT]:
    """Publishes the dead letters of a task and then, with a job, its receipt.

    Raises:
      JobError: a record of the task is not accounted for.
    """
    counts = count_records(number, result)
    report = TaskReport(
        task=number,
        counts=counts,
        files=result.files,
        dead_letters=publish_dead_letters(job, number, result.letters) if job else [],
        failures=count_reasons(result.letters),
        figures=result.figures,
    )
    if job is not None:
        files.write_json(receipt_path(job, number), report.to_json())
    return report


def count_records(number: int, result: TaskResult[Any]) -> dict[str, int]:
    """The counts of a report: those of the worker, and `failed` from its dead letters.

    Raises:
      JobError: read is not written + failed + duplicates + skipped.
    """
    failed = sum(letter.records for letter in result.letters)
    counts = {"duplicates": 0, "skipped": 0, **result.counts, "failed": failed}
    ends = ("written", "failed", "duplicates", "skipped")
    if counts["read"] != sum(counts[name] for name in ends):
        raise JobError(
            f"task {number} read {counts['read']} records, which are not those it "
            f"accounts for: {', '.join(f'{name} {counts[name]}' for name in ends)}; "
            "this is a defect of precis, please report it"
        )
    return counts


def receipt_path(job: Job, number: int) -> str:
    """Where the receipt of a task lies while its job runs."""
    return files.join(job.output, TASKS_FOLDER, f"{number:05d}.json")


def read_receipt(
    job: Job, number: int, figures_from_json: Callable[[Mapping[str, Any]], FiguresT]
) -> TaskReport[FiguresT] | None:
    """The report of a task that is done; None where it is to be done, or done again."""
    path = receipt_path(job, number)
    if not files.exists(path):
        return None
    report = TaskReport.from_json(files.read_json(path), figures_from_json)
    published = (*report.files, *report.dead_letters)
    return report if all(_is_there(job.output, file) for file in published) else None


def _is_there(output: str, file: PublishedFile) -> bool:
    """Whether a file lies where a receipt says, in its full length."""
    fs, path = files.filesystem(files.join(output, file["file"]))
    return bool(fs.exists(path)) and fs.size(path) == file["bytes"]


def publish_dead_letters(
    job: Job, number: int, letters: Sequence[DeadLetter]
) -> list[PublishedFile]:
    """Writes the dead letters of a task; without any there is no file."""
    if not letters:
        return []
    name = files.join(DEAD_LETTERS_FOLDER, part_name(number, job.tasks))
    run = {"task": number, "run_id": job.run_id}
    rows = [{**letter._asdict(), **run} for letter in letters]
    path = files.join(job.output, name)
    write_parquet(path, [dead_letter_table(rows)], DEAD_LETTER_SCHEMA)
    return [describe_file(job.output, name, rows=len(rows))]


def describe_file(output: str, name: str, *, rows: int) -> PublishedFile:
    """The description of a file that was published in an output folder."""
    path = files.join(output, name)
    fs, path_within = files.filesystem(path)
    return {
        "file": name,
        "rows": rows,
        "bytes": int(fs.size(path_within)),
        "sha256": files.sha256_file(path),
    }


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of counts of the same names, sorted by name."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))
