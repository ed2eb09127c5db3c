"""Which documents of a corpus have equal texts, and which have a row in an earlier run.

    keys   tasks of the corpus -> _tasks/keys/00003.parquet   the keys of its documents
           parts of earlier runs -> _tasks/rows/00001.parquet   the keys of their rows
    join   all keys -> _tasks/links.parquet   what is known of documents, in their order

Only a run with --deduplicate, --reuse or --on_duplicate_id fail has these steps, which
read the corpus once more. Keys are joined by DuckDB, which writes to a temporary folder
what does not fit its memory.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import FileFailure, Task
from precis.pipelines.engines.tasks import TaskResult, TaskWorker
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
from precis.pipelines.summarize.earlier_runs import EarlierPart, read_part_keys

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
ROW_KEYS = pa.schema(
    [("place", pa.int64()), ("content", _DIGEST), ("offsets", _DIGEST)]
)
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


class KeyTask(NamedTuple):
    """A task of the step `keys`: a task of the corpus, or a part of an earlier run.

    Attributes:
      number: first those of the corpus, under their own numbers, then the parts.
      corpus_task: what is read; None for a part.
      part: the number of the part and the part; None for a task of the corpus.
    """

    number: int
    corpus_task: Task | None
    part: tuple[int, EarlierPart] | None = None


class JoinTask(NamedTuple):
    """The one task of the step `join`."""

    number: int = 0


class KeyFigures(NamedTuple):
    """What both steps report: the documents that were read, for the progress."""

    documents: int = 0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "KeyFigures":
        """The figures of a receipt."""
        return cls(content.get("documents", 0))


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


def key_tasks(tasks: Sequence[Task], parts: Sequence[EarlierPart]) -> list[KeyTask]:
    """The tasks of the step `keys`."""
    return [
        *(KeyTask(task.number, task) for task in tasks),
        *(
            KeyTask(len(tasks) + number, None, (number, part))
            for number, part in enumerate(parts)
        ),
    ]


class KeyWorker(TaskWorker):
    """Writes the keys of one task of the corpus, or of one part of an earlier run."""

    def __init__(
        self, corpus: CorpusOptions, job: Job, *, uses_references: bool
    ) -> None:
        """Stores its arguments.

        Args:
          corpus: how the corpus is read.
          job: the job.
          uses_references: whether a summary depends on the highlights.
        """
        self._corpus = corpus
        self._job = job
        self._uses_references = uses_references

    def progress_size(self, task: KeyTask) -> int:
        """Progress is counted in bytes of the corpus."""
        return key_size(task.corpus_task) if task.corpus_task else 0

    def run(
        self, task: KeyTask, progress: TaskProgress, letters: DeadLetterWriter
    ) -> TaskResult[KeyFigures]:
        """Writes the keys; dead letters are written when the documents are used.

        The documents of a task that one of its files fails have no keys, so they are
        new where the file can be read later.
        """
        del letters
        keys: list[tuple[Any, ...]] = []
        if task.part is not None:
            number, part = task.part
            name, schema = _name("rows", number), ROW_KEYS
            keys += self._row_keys(number, part)
        else:
            assert task.corpus_task is not None
            name, schema = _name("keys", task.number), DOCUMENT_KEYS
            try:
                keys += self._document_keys(task.corpus_task, progress)
            except FileFailure:
                progress.give_back()
                keys.clear()
        columns = list(zip(*keys, strict=True)) or [()] * len(schema)
        table = pa.table(list(map(list, columns)), schema=schema)
        described = publish_keys(self._job.output, name, table.to_reader())
        documents = len(keys) if task.corpus_task else 0
        return TaskResult(source_counts(), [described], KeyFigures(documents))

    def _document_keys(
        self, task: Task, progress: TaskProgress
    ) -> Iterator[tuple[Any, ...]]:
        reader = read_task(task, self._corpus)
        for record, article in enumerate(reader):
            if record % 100 == 0:
                progress.advance_to(reader.position)
            if not isinstance(article, Article):
                continue
            document = article.document
            reference = (document.highlights or "") if self._uses_references else None
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

    def _row_keys(self, number: int, part: EarlierPart) -> Iterator[tuple[Any, ...]]:
        for key in read_part_keys(part, uses_references=self._uses_references):
            digest = content_digest(key.content_sha256, key.reference)
            yield place_of(number, key.row), digest, key.offsets


class JoinWorker(TaskWorker):
    """Joins all keys."""

    def __init__(self, job: Job, *, tasks: int, parts: int, unique_ids: bool) -> None:
        """Stores its arguments.

        Args:
          job: the job.
          tasks: the number of tasks of the corpus.
          parts: the number of parts of earlier runs.
          unique_ids: whether two documents with one id fail the job.
        """
        self._job = job
        self._tasks = tasks
        self._parts = parts
        self._unique_ids = unique_ids

    def progress_size(self, task: JoinTask) -> int:
        """The step is not shown."""
        del task
        return 0

    def run(
        self, task: JoinTask, progress: TaskProgress, letters: DeadLetterWriter
    ) -> TaskResult[KeyFigures]:
        """Writes the links.

        Raises:
          DataError: several documents have one id, which the run does not allow.
        """
        del task, progress, letters
        with open_database() as connection:
            for table, folder, count, schema in (
                ("documents", "keys", self._tasks, DOCUMENT_KEYS),
                ("rows", "rows", self._parts, ROW_KEYS),
            ):
                names = (_name(folder, number) for number in range(count))
                paths = (files.join(self._job.output, name) for name in names)
                load_keys(connection, table, schema, paths)
            if self._unique_ids:
                _check_ids(connection.execute(_REPEATED_IDS).fetchall())
            links = connection.sql(_LINKS).to_arrow_reader(ROWS_AT_ONCE)
            described = publish_keys(self._job.output, _LINKS_FILE, links)
        return TaskResult(source_counts(), [described], KeyFigures())


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


def _name(folder: str, number: int) -> str:
    """The name of a file of keys in the output."""
    return files.join(TASKS_FOLDER, folder, f"{number:05d}.parquet")
