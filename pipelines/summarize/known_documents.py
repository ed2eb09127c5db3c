"""Documents that are not new: their rows are taken over.

    reused       an earlier run has the row
    duplicates   an equal text stands before it in the corpus, and has the row

A duplicate waits in `_tasks/duplicates` until all tasks are done, and then gets the row
of the first document with the same text. If that one has failed, it fails too.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import JobError
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import DeadLetter, Task
from precis.pipelines.engines.tasks import TaskReport, TaskWorker, receipt_path
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.key_tables import publish_keys
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import PublishedFile
from precis.pipelines.summarize.earlier_runs import EarlierRows, holds_for
from precis.pipelines.summarize.equal_texts import Link, read_links
from precis.pipelines.summarize.run_parts import (
    RowWriter,
    SummaryRun,
    data_files,
)
from precis.pipelines.summarize.summary_rows import (
    document_columns,
    quality_of_own_reference,
)
from precis.pipelines.tables.part_files import read_part
from precis.pipelines.tables.schema import summary_table

COPY = "copy"
_TABLE_ROWS = 512  # rows that are taken over and written together
# Where the row stands that a duplicate waits for.
_COPY_COLUMNS = [
    pa.field("_task", pa.int32()),
    pa.field("_source_file", pa.string()),
    pa.field("_source_position", pa.string()),
]


class KnownDocuments:
    """Takes the documents of a task that are not new out of what is summarized."""

    def __init__(
        self, run: SummaryRun, task: int, part: RowWriter, progress: TaskProgress
    ) -> None:
        """Reads what is known of the documents of a task.

        Args:
          run: the run.
          task: the number of the task.
          part: takes rows of earlier runs.
          progress: of the task.
        """
        self._run = run
        self._task = task
        self._part = part
        self._progress = progress
        self._links = read_links(run.job.output, task) if run.has_keys else {}
        self._earlier = EarlierRows(run.earlier) if run.earlier else None
        self._reused: list[dict[str, Any]] = []
        self._duplicates: list[dict[str, Any]] = []
        # The first document with the same content, by the place of a new document.
        self._firsts: dict[tuple[str, str], str | None] = {}

    def new_articles(
        self, records: Iterable[Article | DeadLetter], dead_letters: DeadLetterWriter
    ) -> Iterator[Article]:
        """The articles that are left to be summarized; writes the other records."""
        for number, record in enumerate(records):
            if isinstance(record, DeadLetter):
                dead_letters.write(record)
            else:
                link = self._links.get(number)
                if link is None or not self._take(record, link):
                    yield record

    def _take(self, article: Article, link: Link) -> bool:
        """Takes over the row of a document; False where it must be summarized."""
        first = link.duplicate_of if self._run.deduplicates else None
        if self._run.deduplicates and link.copy is not None:
            names = [field.name for field in _COPY_COLUMNS]
            place = dict(zip(names, link.copy, strict=True))
            self._duplicates.append({**self._columns(article, {}, first), **place})
            return True
        row = None
        if self._earlier is not None:
            rows = (self._earlier.read(*place) for place in link.earlier)
            row = next((row for row in rows if holds_for(row, article)), None)
        if row is None:
            self._firsts[_place(article)] = first
            return False
        computed_by = row["reused_from"] or row["run_id"]
        is_own = computed_by == self._run.job.run_id
        self._reused.append(
            {
                **row,
                **self._columns(article, row, first),
                "reused_from": None if is_own else computed_by,
            }
        )
        if len(self._reused) == _TABLE_ROWS:
            self._flush()
        return True

    def _columns(
        self, article: Article, row: Mapping[str, Any], first: str | None
    ) -> dict[str, Any]:
        """The columns of a document that takes over a row, and those of its run."""
        return {
            **document_columns(article.document, self._run.layout.kept),
            **self._run.columns,
            "content_sha256": article.content_sha256,
            "reference_quality": quality_of_own_reference(article, row),
            "duplicate_of": first,
        }

    def further_columns(self, article: Article) -> dict[str, Any]:
        """The columns of a new document that its summarizer does not make."""
        metadata = article.document.metadata
        return {
            **{name: metadata.get(name) for name in self._run.layout.kept},
            "duplicate_of": self._firsts.pop(_place(article), None),
        }

    def _flush(self) -> None:
        schema = self._run.layout.schema
        rows = [{name: row[name] for name in schema.names} for row in self._reused]
        self._progress.add_flagged(self._part.add(summary_table(rows, schema)))
        self._reused = []

    def finish(self) -> list[PublishedFile]:
        """Writes what still waits; returns the file of duplicates if there are any."""
        if self._reused:
            self._flush()
        files.remove(files.join(self._run.job.output, _duplicates_name(self._task)))
        if not self._duplicates:
            return []
        columns = [
            field
            for field in self._run.layout.schema
            if field.name in self._duplicates[0]
        ]
        schema = pa.schema([*columns, *_COPY_COLUMNS])
        rows = [{name: row[name] for name in schema.names} for row in self._duplicates]
        self._part.outcomes["duplicates"].update(row["source_file"] for row in rows)
        table = summary_table(rows, schema)
        name = _duplicates_name(self._task)
        return [publish_keys(self._run.job.output, name, table.to_reader())]


def _place(article: Article) -> tuple[str, str]:
    return article.document.source_file, article.document.source_position


def _duplicates_name(task: int) -> str:
    return files.join(TASKS_FOLDER, "duplicates", f"{task:05d}.parquet")


@dataclasses.dataclass
class CopyWorker(TaskWorker):
    """Gives the duplicates of a task the rows of the first documents."""

    summary_run: SummaryRun

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the part with the rows of the duplicates of a task."""
        output = self.summary_run.job.output
        path = files.join(output, _duplicates_name(task.number))
        with files.open_read(path) as file:
            waiting = pq.read_table(file, use_threads=False, pre_buffer=False)
        with RowWriter(self.summary_run, f"{task.number:05d}-copies") as part:
            for number in sorted({*waiting.column("_task").to_pylist()}):
                for rows in self._rows(number):
                    found = pc.index_in(_places(waiting, "_"), _places(rows))
                    copies = waiting.filter(found.is_valid())
                    waiting = waiting.filter(found.is_null())
                    table = _with_columns(
                        rows.take(found.drop_null()),
                        copies,
                        self.summary_run.layout.schema,
                    )
                    progress.add_flagged(part.add(table))
            published = part.finish()
        for row in waiting.to_pylist():
            dead_letters.write(_lost_letter(row))
        moved: Counter[str] = Counter()
        moved.subtract(waiting.column("source_file").to_pylist())
        return TaskReport(
            sources=source_counts(duplicates=moved),
            counts={"truncated": part.truncated},
            files=published,
            figures=part.figures(),
        )

    def _rows(self, task: int) -> Iterator[pa.Table]:
        """The rows of a task; none where it has failed."""
        path = receipt_path(self.summary_run.step, task)
        if files.exists(path):
            for file in data_files(files.read_json(path)["files"]):
                yield from read_part(
                    files.join(self.summary_run.job.output, file["file"]),
                    partition=file.get("partition", {}),
                    types=self.summary_run.layout.partition_types,
                )


def _places(rows: pa.Table, prefix: str = "") -> pa.Array:
    """Where the documents of rows, or those that they wait for, stand in the corpus."""
    places = pc.binary_join_element_wise(
        rows.column(f"{prefix}source_file"),
        rows.column(f"{prefix}source_position"),
        "\n",  # No position has one.
    )
    return places.combine_chunks()


def _with_columns(rows: pa.Table, copies: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of the documents that take them over.

    Raises:
      JobError: a row is of another content.
    """
    if not rows.column("content_sha256").equals(copies.column("content_sha256")):
        raise JobError(
            "a document and the one that it repeats have other contents; this is a "
            "defect of precis, please report it"
        )
    columns = [
        (copies if field.name in copies.column_names else rows).column(field.name)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def forget_copies(run: SummaryRun, tasks: Sequence[Task]) -> None:
    """Lets an interrupted job copy rows again where a task that has failed is tried
    again: others may wait for its rows.
    """
    if not all(files.exists(receipt_path(run.step, task.number)) for task in tasks):
        files.remove(files.join(run.job.output, TASKS_FOLDER, COPY))


def _lost_letter(row: dict[str, Any]) -> DeadLetter:
    return DeadLetter(
        COPY,
        "duplicate_of_failed",
        "the first document with the same text has failed; its dead letter says why",
        row["document_id"],
        row["source_file"],
        row["source_position"],
        retryable=True,
        content_sha256=row["content_sha256"],
    )
