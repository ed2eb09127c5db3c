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
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.counters import enter_step
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import FileFailure, Task
from precis.pipelines.engines.tasks import TaskReport, TaskWorker
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.key_tables import (
    ROWS_AT_ONCE,
    load_keys,
    open_database,
    place_of,
    publish_keys,
    read_keys_of_task,
    task_and_record,
)
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.earlier_runs import check_part
from precis.pipelines.tables.finished_run import RunPart
from precis.pipelines.tables.part_files import read_part

# Of 10**9 digests of 16 bytes two are equal by chance with a probability of 10**-21.
_DIGEST = pa.binary(16)
DOCUMENT_KEYS = pa.schema(
    [
        ("place", pa.int64()),
        ("content", _DIGEST),
        ("text", _DIGEST),  # as it was read: its white space counts
        ("document_id", pa.string()),
        ("source_file", pa.string()),
        ("source_position", pa.string()),
    ]
)
# What a row of an earlier run is found by. Those of one content are told apart by their
# offsets, which differ where their texts differ in white space.
_ROW_COLUMNS = ("content_sha256", "reference_summary", "extractive")
_ROWS = """
CREATE TABLE rows (place BIGINT, content BLOB, offsets UBIGINT)
"""
_ADD_ROWS = """
INSERT INTO rows
SELECT
    place,
    CASE WHEN $uses_references
        THEN unhex(sha256(
            unhex(content_sha256) || encode(coalesce(reference_summary, ''))
        ))
        ELSE unhex(content_sha256)
    END[1:16],
    hash([(sentence.start, sentence.end) FOR sentence IN extractive])
FROM part
"""
# Rows of one content, with other offsets each, that a document is compared with. Texts
# that differ in white space alone seldom have more forms.
_MOST_FORMS = 8
# Documents whose content stands before them or in an earlier run, once for each row
# that it has there.
_LINKS = """
WITH repeated AS (
    SELECT content, min(place) AS place
    FROM documents GROUP BY content HAVING count(*) > 1
), equal AS (
    SELECT content, text, min(place) AS place
    FROM documents SEMI JOIN repeated USING (content) GROUP BY content, text
), forms AS (
    SELECT content, min(place) AS place
    FROM rows SEMI JOIN documents USING (content) GROUP BY content, offsets
)
SELECT
    d.place,
    first.document_id AS duplicate_of,
    copied.place AS copy_place,
    copied.source_file AS copy_file,
    copied.source_position AS copy_position,
    forms.place AS earlier
FROM documents AS d
LEFT JOIN repeated ON d.content = repeated.content AND repeated.place < d.place
LEFT JOIN documents AS first ON first.place = repeated.place
LEFT JOIN equal
    ON d.content = equal.content AND d.text = equal.text AND equal.place < d.place
LEFT JOIN documents AS copied ON copied.place = equal.place
LEFT JOIN forms ON d.content = forms.content
WHERE repeated.place IS NOT NULL OR forms.place IS NOT NULL
ORDER BY d.place, earlier
"""
_REPEATED_IDS = """
SELECT document_id, source_file, source_position, count(*) OVER () AS documents
FROM (
    SELECT *
    FROM documents
    SEMI JOIN (
        SELECT document_id FROM documents GROUP BY document_id HAVING count(*) > 1
    ) USING (document_id)
    QUALIFY row_number() OVER (PARTITION BY document_id ORDER BY place) > 1
)
ORDER BY place LIMIT 3
"""


_LINKS_FILE = files.join(TASKS_FOLDER, "links.parquet")


class Link(NamedTuple):
    """What is known of a document that is not new.

    Attributes:
      duplicate_of: the id of the first document with the same content; None for that.
      copy: the task, the source file and the position of the first document with the
          same text, whose row holds for this one; None for that.
      earlier: rows of earlier runs with the same content as the number of the part and
          the row in it, the preferred one first; their offsets differ.
    """

    duplicate_of: str | None
    copy: tuple[int, str, str] | None
    earlier: tuple[tuple[int, int], ...]


@dataclasses.dataclass
class KeyWorker(TaskWorker):
    """Writes the keys of the documents of one task.

    Attributes:
      corpus: how the corpus is read.
      job: the job.
      uses_references: whether a summary depends on the highlights.
    """

    corpus: CorpusOptions
    job: Job
    uses_references: bool

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return key_size(task)

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the keys; dead letters are written when the documents are used.

        The documents of a task that one of its files fails have no keys, so they are
        new where the file can be read later.
        """
        del dead_letters
        keys: list[tuple[Any, ...]] = []
        try:
            keys += self._keys(task, progress)
        except FileFailure:
            progress.give_back()
            keys.clear()
        columns = list(zip(*keys, strict=True)) or [()] * len(DOCUMENT_KEYS)
        table = pa.table(list(map(list, columns)), schema=DOCUMENT_KEYS)
        name = _keys_name(task.number)
        described = publish_keys(self.job.output, name, table.to_reader())
        return TaskReport(source_counts(), [described], {"documents": len(keys)})

    def _keys(self, task: Task, progress: TaskProgress) -> Iterator[tuple[Any, ...]]:
        reader = read_task(task, self.corpus)
        for record, article in enumerate(reader):
            if record % 100 == 0:
                progress.advance_to(reader.position)
            if not isinstance(article, Article):
                continue
            document = article.document
            reference = (document.highlights or "") if self.uses_references else None
            yield (
                place_of(task.number, record),
                content_digest(article.content_sha256, reference),
                _digest(document.article),
                # Ids that are no valid UTF-8 are compared by what they are shown as.
                document.document_id.encode(errors="replace").decode(),
                document.source_file,
                document.source_position,
            )
        progress.advance_to(reader.position)


def join_keys(
    job: Job, parts: Sequence[RunPart], *, uses_references: bool, unique_ids: bool
) -> None:
    """Writes the links of all documents.

    Args:
      job: the job.
      parts: of earlier runs, the preferred ones first.
      uses_references: as in `KeyWorker`.
      unique_ids: whether two documents with one id fail the job.

    Raises:
      DataError: several documents have one id, which the run does not allow; or a part
          is not what its run has written.
    """
    enter_step("join")
    with open_database() as connection:
        names = (_keys_name(number) for number in range(job.tasks))
        paths = (files.join(job.output, name) for name in names)
        load_keys(connection, "documents", DOCUMENT_KEYS, paths)
        connection.execute(_ROWS)
        for number, part in enumerate(parts):
            check_part(part)
            place = place_of(number, 0)
            for rows in read_part(part.path, _ROW_COLUMNS):
                places = np.arange(place, place + rows.num_rows)
                connection.register("part", rows.append_column("place", [places]))
                connection.execute(_ADD_ROWS, {"uses_references": uses_references})
                place += rows.num_rows
        if unique_ids:
            _check_ids(connection.execute(_REPEATED_IDS).fetchall())
        links = connection.sql(_LINKS).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(job.output, _LINKS_FILE, links)


def _check_ids(repeated: Sequence[tuple[str, str, str, int]]) -> None:
    """Refuses ids that stand twice.

    Args:
      repeated: documents of such ids, with the number of all of them.
    """
    if repeated:
        named = ", ".join(f"{name!r} at {file}:{at}" for name, file, at, _ in repeated)
        raise DataError(
            f"{repeated[0][-1]} documents have the id of a document before them, such "
            f"as {named}; mend the ids, or name another --output and --on_duplicate_id "
            "keep"
        )


def read_links(output: str, task: int) -> dict[int, Link]:
    """What is known of the documents of a task, by record; others are new."""
    table = read_keys_of_task(files.join(output, _LINKS_FILE), task)
    links: dict[int, Link] = {}
    for place, duplicate_of, copied, file, position, row in zip(
        *(column.to_pylist() for column in table.columns), strict=True
    ):
        _, record = task_and_record(place)
        copy = None if copied is None else (task_and_record(copied)[0], file, position)
        before = links.setdefault(record, Link(duplicate_of, copy, ()))
        if row is not None and len(before.earlier) < _MOST_FORMS:
            earlier = (*before.earlier, task_and_record(row))
            links[record] = before._replace(earlier=earlier)
    return links


def key_size(task: Task) -> int:
    """How much of a task's progress the step `keys` is."""
    return task.size_bytes // 20


def content_digest(content_sha256: str, reference: str | None) -> bytes:
    """The digest of what the summaries of a document depend on.

    Args:
      content_sha256: of the article.
      reference: the highlights where a summary depends on them, as those of the oracle
          do; else None.
    """
    digest = bytes.fromhex(content_sha256)
    if reference is not None:
        digest = hashlib.sha256(digest + reference.encode(errors="replace")).digest()
    return digest[:16]


def _digest(text: str) -> bytes:
    content = text.encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()


def _keys_name(task: int) -> str:
    """The name of a file of keys in the output."""
    return files.join(TASKS_FOLDER, "keys", f"{task:05d}.parquet")
