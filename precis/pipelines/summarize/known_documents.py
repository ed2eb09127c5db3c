"""Documents that are not new: their rows are taken over.

    reused       an earlier run has the row
    duplicates   an equal text stands before it in the corpus, and has the row

A duplicate waits in `_tasks/duplicates` until all tasks are done, and then gets the row
of the first document with the same text. If that one has failed, it fails too.
"""

import dataclasses
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
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
from precis.pipelines.summarize.earlier_runs import EarlierRows
from precis.pipelines.summarize.equal_texts import Link, read_links
from precis.pipelines.summarize.options import GROUPS
from precis.pipelines.summarize.run_parts import RowWriter, SummaryRun, data_files
from precis.pipelines.summarize.summary_rows import (
    document_columns,
    quality_of_own_reference,
)
from precis.pipelines.tables.part_files import read_part
from precis.pipelines.tables.schema import summary_table

COPY = "copy"
_TABLE_ROWS = 512  # rows that are taken over and written together
_PLACE = ("source_file", "source_position")
_place = operator.itemgetter(*_PLACE)
# Where the row stands that a duplicate waits for.
_COPY = pa.field(
    COPY, pa.struct({"task": pa.int64(), **dict.fromkeys(_PLACE, pa.string())})
)


class KnownDocuments:
    """Takes the documents of a task that are not new out of what is summarized."""

    def __init__(self, run: SummaryRun, task: int, part: RowWriter) -> None:
        """Reads what is known of the documents of a task.

        Args:
          run: the run.
          task: the number of the task.
          part: takes rows of earlier runs.
        """
        self._run = run
        self._part = part
        self._links = read_links(run.job.output, task) if run.has_keys else {}
        self._earlier = EarlierRows(run.earlier) if run.earlier else None
        self._reused: list[dict[str, Any]] = []
        self._duplicates: list[dict[str, Any]] = []
        self._duplicates_name = _duplicates_name(task)
        # The first document with the same content, by the place of a new document.
        self._firsts: dict[tuple[str, ...], str | None] = {}

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
        document, run = article.document, self._run
        columns = {
            **document_columns(document, run.layout.kept),
            **run.columns,
            "content_sha256": article.content_sha256,
            "duplicate_of": link.duplicate_of if run.deduplicates else None,
        }
        if run.deduplicates and link.copy is not None:
            measures = quality_of_own_reference(article, {})
            self._duplicates.append(
                {**columns, "reference_quality": measures, COPY: link.copy}
            )
            return True
        row = None
        if self._earlier and link.earlier:
            row = self._earlier.read(**link.earlier)
        if row is None or not holds_for(row, article):
            self._firsts[_place(columns)] = columns["duplicate_of"]
            return False
        computed_by = row["reused_from"] or row["run_id"]
        is_own = computed_by == run.job.run_id
        self._reused.append(
            {
                **row,
                **columns,
                "reference_quality": quality_of_own_reference(article, row),
                "reused_from": None if is_own else computed_by,
            }
        )
        if len(self._reused) == _TABLE_ROWS:
            self._part.add_rows(self._reused)
            self._reused.clear()
        return True

    def further_columns(self, article: Article) -> dict[str, Any]:
        """The columns of a new document that its summarizer does not make."""
        columns = document_columns(article.document, self._run.layout.kept)
        first = self._firsts.pop(_place(columns), None)
        return {**columns, "duplicate_of": first}

    def finish(self) -> list[PublishedFile]:
        """Writes what still waits; returns the file of duplicates if there are any."""
        self._part.add_rows(self._reused)
        output = self._run.job.output
        files.remove(files.join(output, self._duplicates_name))
        if not self._duplicates:
            return []
        waiting = self._duplicates[0]
        columns = [field for field in self._run.layout.schema if field.name in waiting]
        table = summary_table(self._duplicates, pa.schema([*columns, _COPY]))
        sources = (row["source_file"] for row in self._duplicates)
        self._part.outcomes["duplicates"].update(sources)
        return [publish_keys(output, self._duplicates_name, table.to_reader())]


def holds_for(row: Mapping[str, Any], article: Article) -> bool:
    """Whether a row is of the content of an article, and its offsets hold for the text
    as it was read, which may have other white space.
    """
    text = article.document.article
    return row["content_sha256"] == article.content_sha256 and all(
        text[item["start"] : item["end"]] == item["text"] for item in row["extractive"]
    )


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
        run = self.summary_run
        path = files.join(run.job.output, _duplicates_name(task.number))
        with files.open_read(path) as file:
            duplicates = pq.read_table(file, use_threads=False, pre_buffer=False)
        waiting: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        tasks = set()
        for columns in duplicates.to_pylist():
            first = columns.pop(COPY)
            tasks.add(first["task"])
            waiting.setdefault(_place(first), []).append(columns)
        with RowWriter(run, f"{task.number:05d}-copies", progress) as part:
            for rows in self._rows(sorted(tasks)):
                part.add_rows(_copies(rows, waiting))
            published = part.finish()
        moved: Counter[str] = Counter()
        for columns in itertools.chain(*waiting.values()):
            moved[columns["source_file"]] -= 1
            dead_letters.write(_lost_letter(columns))
        return TaskReport(
            sources=source_counts(duplicates=moved),
            counts={"truncated": part.truncated},
            files=published,
            figures=part.figures(is_copy=True),
        )

    def _rows(self, tasks: Iterable[int]) -> Iterator[pa.Table]:
        """The rows of tasks; none of a task that has failed."""
        run = self.summary_run
        for path in filter(files.exists, (receipt_path(run.step, n) for n in tasks)):
            for file in data_files(files.read_json(path)["files"]):
                yield from read_part(files.join(run.job.output, file["file"]))


def _copies(
    rows: pa.Table, waiting: dict[tuple[str, ...], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """The rows of the documents that wait for some of these; they wait no more.

    Args:
      rows: of first documents, and others.
      waiting: the columns of duplicates, by the place of the first.

    Raises:
      JobError: a row is of another content.
    """
    keys = zip(*(rows[name].to_pylist() for name in _PLACE), strict=True)
    wanted = {
        number: waiting.pop(key) for number, key in enumerate(keys) if key in waiting
    }
    taken = rows.take(pa.array(list(wanted), pa.int64())).to_pylist()
    copies = []
    for row, duplicates in zip(taken, wanted.values(), strict=True):
        content = row["content_sha256"]
        if any(columns["content_sha256"] != content for columns in duplicates):
            raise JobError(
                "a document and the one that it repeats have other contents; this is a "
                "defect of precis, please report it"
            )
        copies += [{**row, **columns} for columns in duplicates]
    return copies


def forget_copies(run: SummaryRun, tasks: Sequence[Task]) -> None:
    """Lets an interrupted job copy rows and summarize groups again where a task that
    has failed is tried again: others may wait for its rows.
    """
    if not all(files.exists(receipt_path(run.step, task.number)) for task in tasks):
        for step in (COPY, GROUPS):
            files.remove(files.join(run.job.output, TASKS_FOLDER, step))


def _lost_letter(row: Mapping[str, Any]) -> DeadLetter:
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
