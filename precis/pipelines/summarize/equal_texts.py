"""Which documents of a corpus have equal texts, and which have a row in an earlier run.

    keys   tasks of the corpus -> _tasks/keys/00003.parquet   the keys of its documents
    join   all keys, parts of earlier runs
                               -> _tasks/links.parquet   what is known of documents

Only a run with --deduplicate, --reuse or --on_duplicate_id fail has these steps, which
read the corpus once more. DuckDB joins the keys, and writes to a temporary folder what
does not fit its memory. An interrupted run joins them again.
"""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.counters import enter_step
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import FileError, Task
from precis.pipelines.engines.tasks import TaskReport, TaskWorker
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.key_tables import (
    ROWS_AT_ONCE,
    load_keys,
    open_database,
    place_of,
    publish_keys,
    read_keys_of_task,
    record_of,
)
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.earlier_runs import check_part
from precis.pipelines.summarize.run_parts import SummaryRun
from precis.pipelines.tables.finished_run import RunPart
from precis.pipelines.tables.part_files import read_part

# Of 10**9 digests of 16 bytes two are equal by chance with a probability of 10**-21.
_DIGEST = pa.binary(16)
DOCUMENT_KEYS = pa.schema(
    {
        "place": pa.int64(),
        "content": _DIGEST,
        "text": _DIGEST,  # as it was read: its white space counts
        **dict.fromkeys(("document_id", "source_file", "source_position"), pa.string()),
    }
)
_ROW_KEYS = pa.schema(
    {"content": _DIGEST, **dict.fromkeys(("part", "row_group", "row"), pa.int32())}
)
# Documents whose content stands before them or in an earlier run.
_LINKS = """
WITH repeated AS (
    SELECT content, min(place) AS place
    FROM documents GROUP BY content HAVING count(*) > 1
), equal AS (
    SELECT content, text, min(place) AS place
    FROM documents GROUP BY content, text HAVING count(*) > 1
), known AS (
    SELECT content, min({'part': part, 'row_group': row_group, 'row': row}) AS earlier
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


class Link(NamedTuple):
    """What is known of a document that is not new.

    Attributes:
      duplicate_of: the id of the first document with the same content; None for that.
      copy: `task`, `source_file` and `source_position` of the first document with the
          same text, whose row holds for this one; None for that.
      earlier: the first row of earlier runs with the same content, as arguments of
          `EarlierRows.read`; None without any.
    """

    duplicate_of: str | None
    copy: dict[str, Any] | None
    earlier: dict[str, int] | None


@dataclasses.dataclass
class KeyWorker(TaskWorker):
    """Writes the keys of the documents of one task."""

    summary_run: SummaryRun

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the keys; dead letters are written when the documents are used.

        The documents of a task that one of its files fails have no keys, so they are
        new where the file can be read later.
        """
        del dead_letters
        try:
            keys = list(self._keys(task, progress))
        except FileError:
            progress.give_back()
            keys = []
        table = pa.Table.from_pylist(keys, DOCUMENT_KEYS)
        name = _keys_name(task.number)
        described = publish_keys(self.summary_run.job.output, name, table.to_reader())
        return TaskReport(source_counts(), [described], {"documents": len(keys)})

    def _keys(self, task: Task, progress: TaskProgress) -> Iterator[dict[str, Any]]:
        reader = read_task(task, self.summary_run.corpus)
        for record, article in enumerate(reader):
            if record % 100 == 0:
                progress.advance_to(reader.position)
            if isinstance(article, Article):
                document = article.document
                text = document.article.encode(errors="surrogatepass")
                # Ids that are no valid UTF-8 are compared by what they are shown as.
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
    """Writes the links of all documents.

    Raises:
      DataError: several documents have one id, which the run does not allow; or a part
          is not what its run has written.
    """
    enter_step("join")
    job, uses_references = run.job, run.settings.uses_references
    with open_database() as connection:
        names = (_keys_name(number) for number in range(job.tasks))
        paths = (files.join(job.output, name) for name in names)
        load_keys(connection, "documents", DOCUMENT_KEYS, paths)
        repeated = run.unique_ids and connection.execute(_REPEATED_IDS).fetchall()
        if repeated:
            named = ", ".join(
                f"{name!r} at {file}:{at}" for name, file, at, _ in repeated
            )
            raise DataError(
                f"{repeated[0][-1]} documents have the id of a document before them, "
                f"such as {named}; mend the ids, or name another --output and "
                "--on_duplicate_id keep"
            )
        load_keys(connection, "rows", _ROW_KEYS, ())
        for number, part in enumerate(run.earlier):
            for keys in _keys_of_rows(number, part, uses_references=uses_references):
                connection.register("keys", keys)
                connection.execute("INSERT INTO rows SELECT * FROM keys")
        links = connection.sql(_LINKS).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(job.output, _LINKS_FILE, links)


def _keys_of_rows(
    number: int, part: RunPart, *, uses_references: bool
) -> Iterator[pa.Table]:
    """The keys of the rows of a part, a table for each row group."""
    check_part(part)
    columns = ["content_sha256", "reference_summary"]
    for group, rows in enumerate(read_part(part.path, columns)):
        texts = (column.to_pylist() for column in rows.columns)
        each = zip(*texts, strict=True)
        digests = [content_digest(uses_references, *of_row) for of_row in each]
        size = len(digests)
        keys = [digests, [number] * size, [group] * size, list(range(size))]
        yield pa.table(keys, _ROW_KEYS)


def read_links(output: str, task: int) -> dict[int, Link]:
    """What is known of the documents of a task, by record; others are new."""
    table = read_keys_of_task(files.join(output, _LINKS_FILE), task)
    places, *known = (column.to_pylist() for column in table.columns)
    return dict(zip(map(record_of, places), map(Link, *known), strict=True))


def content_digest(
    uses_references: bool, content_sha256: str, reference: str | None
) -> bytes:
    """The digest of what the summaries of a document depend on.

    Args:
      uses_references: whether they depend on the highlights, as those of the oracle do.
      content_sha256: of the article.
      reference: the highlights, if the document has any.
    """
    digest = bytes.fromhex(content_sha256)
    if uses_references:
        text = (reference or "").encode(errors="replace")
        digest = hashlib.sha256(digest + text).digest()
    return digest[:16]


def _keys_name(task: int) -> str:
    """The name of a file of keys in the output."""
    return files.join(TASKS_FOLDER, "keys", f"{task:05d}.parquet")
