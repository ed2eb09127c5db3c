"""Finds documents whose rows exist already, and reuses these rows.

    reused       an earlier run has the row of the same content
    duplicates   a document with equal text comes earlier in the corpus

    keys   tasks of the corpus -> _tasks/keys/00003.parquet   keys of the documents
    join   all keys, output files of earlier runs
                               -> _tasks/links.parquet   links to existing rows
    copy   _tasks/duplicates/00003.parquet -> the rows of duplicates

Only a run with --deduplicate, --reuse or --on_duplicate_id fail has these steps, which
read the corpus once more. DuckDB joins the keys and writes to a temporary folder when
they do not fit its memory. A resumed run joins them again.

A duplicate waits until all tasks are done and then gets the row of the first document
with the same text. If the first document failed, the duplicate fails too.
"""

import dataclasses
import functools
import hashlib
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.counters import enter_step
from precis.model.text.article import Article
from precis.pipelines.corpus.corpus import read_task
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import DeadLetter, FileError, Task
from precis.pipelines.engines.tasks import TaskReport, TaskWorker, receipt_path
from precis.pipelines.run.accounts import count_by_file
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.key_tables import (
    ROWS_AT_ONCE,
    insert_rows,
    load_keys,
    open_database,
    place_of,
    publish_keys,
    read_keys_of_task,
    record_of,
)
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import PublishedFile
from precis.pipelines.summarize.earlier_runs import PLACE, EarlierRows, placed_rows
from precis.pipelines.summarize.options import GROUPS
from precis.pipelines.summarize.run_output import RowWriter, SummaryRun, data_files
from precis.pipelines.summarize.summary_rows import (
    document_columns,
    quality_of_own_reference,
)
from precis.pipelines.tables.output_files import read_output_file
from precis.pipelines.tables.schema import summary_table

COPY = "copy"
_TABLE_ROWS = 512  # number of reused rows that are written together
# Two of 10**9 digests of 16 bytes are equal by chance with a probability of 10**-21.
_DIGEST = pa.binary(16)
DOCUMENT_KEYS = pa.schema(
    {
        "place": pa.int64(),
        "content": _DIGEST,
        "text": _DIGEST,  # hash of the text with its white space
        **dict.fromkeys(("document_id", "source_file", "source_position"), pa.string()),
    }
)
_ROW_KEYS = pa.schema({"content": _DIGEST, "earlier": PLACE})
# A row for each document whose content comes earlier in the corpus or in a run:
#   duplicate_of   the id of the first document with the same content
#   copy           the place of the first document with the same text, whose row is
#                  reused
#   earlier        the first row of earlier runs with the same content, as arguments of
#                  `EarlierRows.read`
_LINKS = """
WITH repeated AS (
    SELECT content, min(place) AS place
    FROM documents WHERE DEDUPLICATES GROUP BY content HAVING count(*) > 1
), equal AS (
    SELECT content, text, min(place) AS place
    FROM documents WHERE DEDUPLICATES GROUP BY content, text HAVING count(*) > 1
), known AS (
    SELECT content, min(earlier) AS earlier
    FROM rows SEMI JOIN documents USING (content) GROUP BY content
)
SELECT
    d.place,
    first.document_id AS duplicate_of,
    CASE WHEN copied.place IS NOT NULL THEN {
        'task': copied.place >> 32,
        'source_file': copied.source_file,
        'source_position': copied.source_position
    } END AS copy,
    known.earlier
FROM documents AS d
LEFT JOIN repeated ON d.content = repeated.content AND repeated.place < d.place
LEFT JOIN documents AS first ON first.place = repeated.place
LEFT JOIN equal
    ON d.content = equal.content AND d.text = equal.text AND equal.place < d.place
LEFT JOIN documents AS copied ON copied.place = equal.place
LEFT JOIN known ON d.content = known.content
WHERE repeated.place IS NOT NULL OR known.earlier IS NOT NULL
ORDER BY d.place
"""
_REPEATED_IDS = """
SELECT document_id, source_file, source_position, count(*) OVER () AS documents
FROM documents
JOIN (
    SELECT document_id, min(place) AS first
    FROM documents GROUP BY document_id HAVING count(*) > 1
) USING (document_id)
WHERE place > first ORDER BY place LIMIT 3
"""
_LINKS_FILE = files.join(TASKS_FOLDER, "links.parquet")
_PLACE = ("source_file", "source_position")
_place = operator.itemgetter(*_PLACE)
# The columns that identify the first document with an equal text.
_FIRST = (*_PLACE, "content_sha256")
_COPY = pa.field(
    COPY, pa.struct({"task": pa.int64(), **dict.fromkeys(_PLACE, pa.string())})
)


@dataclasses.dataclass
class KeyWorker(TaskWorker):
    """Writes the keys of the documents of one task."""

    summary_run: SummaryRun

    def progress_size(self, task: Task) -> int:
        """The size of the task in bytes of the corpus."""
        return task.size_bytes

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the keys; the step that uses the documents writes the dead letters.

        If a file of the task cannot be read, no document of the task has a key: all
        count as new if a later step can read the file.
        """
        del dead_letters
        try:
            keys = list(self._keys(task, progress))
        except FileError:
            progress.give_back()
            keys = []
        table = pa.Table.from_pylist(keys, DOCUMENT_KEYS)
        name = _task_file("keys", task.number)
        described = publish_keys(self.summary_run.job.output, name, table.to_reader())
        return TaskReport(count_by_file(), [described], {"documents": len(keys)})

    def _keys(self, task: Task, progress: TaskProgress) -> Iterator[dict[str, Any]]:
        reader = read_task(task, self.summary_run.corpus)
        for record, article in enumerate(reader):
            if record % 100 == 0:
                progress.advance_to(reader.position)
            if isinstance(article, Article):
                document = article.document
                text = document.article.encode(errors="surrogatepass")
                # Ids that are not valid UTF-8 are compared in the form that is shown.
                shown_id = document.document_id.encode(errors="replace").decode()
                yield {
                    "place": place_of(task.number, record),
                    "content": content_digest(
                        self.summary_run.settings.uses_references,
                        article.content_sha256,
                        document.highlights,
                    ),
                    "text": hashlib.blake2b(text, digest_size=16).digest(),
                    "document_id": shown_id,
                    "source_file": document.source_file,
                    "source_position": document.source_position,
                }
        progress.advance_to(reader.position)


def join_keys(run: SummaryRun) -> None:
    """Finds the documents with existing rows, and writes their links.

    Raises:
      DataError: an id occurs more than once and the run forbids it, or an output file
          of an earlier run was changed.
    """
    enter_step("join")
    job, uses_references = run.job, run.settings.uses_references
    with open_database() as connection:
        names = (_task_file("keys", number) for number in range(job.tasks))
        paths = (files.join(job.output, name) for name in names)
        load_keys(connection, "documents", DOCUMENT_KEYS, paths)
        repeated = run.unique_ids and connection.execute(_REPEATED_IDS).fetchall()
        if repeated:
            named = ", ".join(
                f"{name!r} at {file}:{at}" for name, file, at, _ in repeated
            )
            raise DataError(
                f"{repeated[0][-1]} documents have the id of an earlier document, such "
                f"as {named}; fix the ids, or name another --output and add "
                "--on_duplicate_id keep"
            )
        insert_rows(connection, "rows", _ROW_KEYS.empty_table())
        contents = ("content_sha256", "reference_summary")
        for rows in placed_rows(run.earlier, contents):
            of_rows = zip(*(rows[name].to_pylist() for name in contents), strict=True)
            digests = [content_digest(uses_references, *row) for row in of_rows]
            keys = pa.table([digests, rows["earlier"]], _ROW_KEYS)
            insert_rows(connection, "rows", keys)
        query = _LINKS.replace("DEDUPLICATES", str(run.deduplicates).upper())
        links = connection.sql(query).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(job.output, _LINKS_FILE, links)


def read_links(output: str, task: int) -> dict[int, dict[str, Any]]:
    """The links of a task's documents, by record; new documents have none."""
    rows = read_keys_of_task(files.join(output, _LINKS_FILE), task).to_pylist()
    return {record_of(link.pop("place")): link for link in rows}


def content_digest(
    uses_references: bool, content_sha256: str, reference: str | None
) -> bytes:
    """A digest of everything in a document that its summaries depend on.

    Args:
      uses_references: whether summaries depend on the reference, as with the oracle.
      content_sha256: the hash of the article.
      reference: the reference of the document, if it has one.
    """
    digest = bytes.fromhex(content_sha256)
    if uses_references:
        text = (reference or "").encode(errors="replace")
        digest = hashlib.sha256(digest + text).digest()
    return digest[:16]


def _task_file(step: str, task: int) -> str:
    """The path, in the output, of the file that a step writes for a task."""
    return files.join(TASKS_FOLDER, step, f"{task:05d}.parquet")


class KnownDocuments:
    """Separates the documents of a task whose rows exist from those to summarize."""

    def __init__(self, run: SummaryRun, task: int, writer: RowWriter) -> None:
        """Reads the links of the documents of a task.

        Args:
          run: the run that the task belongs to.
          task: the number of the task.
          writer: takes the reused rows.
        """
        self._run = run
        self._writer = writer
        self._links = read_links(run.job.output, task) if run.has_keys else {}
        self._reused: list[dict[str, Any]] = []
        self._duplicates: list[dict[str, Any]] = []
        self._duplicates_file = _task_file("duplicates", task)
        # The id of the first document with the same content, by place of a new one.
        self._firsts: dict[tuple[str, ...], str | None] = {}

    @functools.cached_property
    def _earlier(self) -> EarlierRows:
        return EarlierRows(self._run.earlier)

    def new_articles(
        self, records: Iterable[Article | DeadLetter], dead_letters: DeadLetterWriter
    ) -> Iterator[Article]:
        """The articles to summarize; writes dead letters and reused rows."""
        for number, record in enumerate(records):
            if isinstance(record, DeadLetter):
                dead_letters.write(record)
            elif number not in self._links or not self._take(record, number):
                yield record

    def _take(self, article: Article, number: int) -> bool:
        """Reuses the row of a document; returns False if it must be summarized."""
        run, link, row = self._run, self._links[number], None
        columns = {
            **document_columns(article.document, run.layout.kept),
            **run.columns,
            "content_sha256": article.content_sha256,
            "duplicate_of": link["duplicate_of"],
        }
        if link[COPY]:
            measures = quality_of_own_reference(article, {})
            columns |= {"reference_quality": measures, COPY: link[COPY]}
            self._duplicates.append(columns)
            return True
        if link["earlier"]:
            row = self._earlier.read(**link["earlier"])
        if row is None or not holds_for(row, article):
            self._firsts[_place(columns)] = link["duplicate_of"]
            return False
        computed_by = row["reused_from"] or row["run_id"]
        columns["reference_quality"] = quality_of_own_reference(article, row)
        is_own = computed_by == run.job.run_id
        columns["reused_from"] = None if is_own else computed_by
        self._reused.append({**row, **columns})
        if len(self._reused) == _TABLE_ROWS:
            self._writer.add_rows(self._reused)
            self._reused.clear()
        return True

    def further_columns(self, article: Article) -> dict[str, Any]:
        """The columns of a new document that its summarizer does not fill."""
        columns = document_columns(article.document, self._run.layout.kept)
        first = self._firsts.pop(_place(columns), None)
        return {**columns, "duplicate_of": first}

    def finish(self) -> list[PublishedFile]:
        """Writes the remaining rows; returns the file of duplicates, if any."""
        self._writer.add_rows(self._reused)
        output = self._run.job.output
        files.remove(files.join(output, self._duplicates_file))
        if not self._duplicates:
            return []
        waiting = self._duplicates[0]
        columns = [field for field in self._run.layout.schema if field.name in waiting]
        table = summary_table(self._duplicates, pa.schema([*columns, _COPY]))
        sources = (row["source_file"] for row in self._duplicates)
        self._writer.outcomes["duplicates"].update(sources)
        return [publish_keys(output, self._duplicates_file, table.to_reader())]


def holds_for(row: Mapping[str, Any], article: Article) -> bool:
    """Whether a row fits an article: the content is the same, and its offsets hold for
    the text as read, whose white space may differ.
    """
    text = article.document.article
    return row["content_sha256"] == article.content_sha256 and all(
        text[item["start"] : item["end"]] == item["text"] for item in row["extractive"]
    )


@dataclasses.dataclass
class CopyWorker(TaskWorker):
    """Copies to the duplicates of a task the rows of the first documents."""

    summary_run: SummaryRun

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the output file with the rows of the duplicates of a task."""
        run = self.summary_run
        path = files.join(run.job.output, _task_file("duplicates", task.number))
        with files.open_read(path) as file:
            duplicates = pq.read_table(file, use_threads=False, pre_buffer=False)
        waiting: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        tasks = set()
        for columns in duplicates.to_pylist():
            first = columns.pop(COPY)
            tasks.add(first["task"])
            key = (*_place(first), columns["content_sha256"])
            waiting.setdefault(key, []).append(columns)
        with RowWriter(run, f"{task.number:05d}-copies", progress) as writer:
            for rows in self._rows(sorted(tasks)):
                keys = zip(*(rows[name].to_pylist() for name in _FIRST), strict=True)
                wanted = {
                    number: waiting.pop(key)
                    for number, key in enumerate(keys)
                    if key in waiting
                }
                taken = rows.take(pa.array(list(wanted), pa.int64())).to_pylist()
                of_rows = zip(taken, wanted.values(), strict=True)
                writer.add_rows([{**row, **own} for row, new in of_rows for own in new])
            published = writer.finish()
        moved: Counter[str] = Counter()
        for columns in itertools.chain(*waiting.values()):
            moved[columns["source_file"]] -= 1
            dead_letters.write(_lost_letter(columns))
        return TaskReport(
            file_counts=count_by_file(duplicates=moved),
            counts={"truncated": writer.truncated},
            files=published,
            figures=writer.figures(is_copy=True),
        )

    def _rows(self, tasks: Iterable[int]) -> Iterator[pa.Table]:
        """The rows of tasks; a failed task has none."""
        run = self.summary_run
        for path in filter(files.exists, (receipt_path(run.step, n) for n in tasks)):
            for file in data_files(files.read_json(path)["files"]):
                yield from read_output_file(files.join(run.job.output, file["file"]))


def forget_copies(run: SummaryRun, tasks: Sequence[Task]) -> None:
    """Removes the receipts of copies and groups if a failed task is tried again,
    because they may depend on its rows.
    """
    if not all(files.exists(receipt_path(run.step, task.number)) for task in tasks):
        for step in (COPY, GROUPS):
            files.remove(files.join(run.job.output, TASKS_FOLDER, step))


def _lost_letter(row: Mapping[str, Any]) -> DeadLetter:
    return DeadLetter(
        COPY,
        "duplicate_of_failed",
        "the first document with this text failed; its dead letter says why",
        row["document_id"],
        row["source_file"],
        row["source_position"],
        retryable=True,
        content_sha256=row["content_sha256"],
    )
