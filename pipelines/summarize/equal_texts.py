"""Which documents of a corpus have equal texts, and which have a row in an earlier run.

    keys   tasks of the corpus -> _tasks/keys/00003.parquet   the keys of its documents
           parts of earlier runs -> _tasks/rows/00001.parquet   the keys of their rows
    join   all keys -> _tasks/links.parquet   what is known of documents, in their order

Only a run with --deduplicate, --reuse or --on_duplicate_id fail has these steps, which
read the corpus once more. Keys are joined by DuckDB, which writes to a temporary folder
what does not fit its memory.
"""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

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
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.summarize.earlier_runs import EarlierPart, read_part_keys

if TYPE_CHECKING:
    import duckdb

# Of 10**9 digests of 16 bytes two are equal by chance with a probability of 10**-21.
_DIGEST = pa.binary(16)
# A place is a number: the task, or the part, and in the lower 32 bits the record.
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
_LINKS_A_GROUP = 10_000
_MEMORY = "512MB"
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


NEW = Link(None, None, ())


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
            name, schema = f"rows/{number:05d}.parquet", ROW_KEYS
            keys += self._row_keys(number, part)
        else:
            assert task.corpus_task is not None
            name, schema = f"keys/{task.number:05d}.parquet", DOCUMENT_KEYS
            try:
                keys += self._document_keys(task.corpus_task, progress)
            except FileFailure:
                progress.give_back()
                keys.clear()
        columns = list(zip(*keys, strict=True)) or [()] * len(schema)
        table = pa.table(list(map(list, columns)), schema=schema)
        described = _write_tables(self._job, name, schema, [table])
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
                _place(task.number, record),
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
            yield _place(number, key.row), digest, key.offsets


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
        with _connection() as connection:
            self._load(connection, "documents", "keys", self._tasks, DOCUMENT_KEYS)
            self._load(connection, "rows", "rows", self._parts, ROW_KEYS)
            if self._unique_ids:
                _check_ids(connection)
            links = connection.sql(_LINKS).to_arrow_reader(_LINKS_A_GROUP)
            tables = (pa.Table.from_batches([batch]) for batch in links)
            described = _write_tables(self._job, "links.parquet", links.schema, tables)
        return TaskResult(source_counts(), [described], KeyFigures())

    def _load(
        self,
        connection: "duckdb.DuckDBPyConnection",
        table: str,
        folder: str,
        count: int,
        schema: pa.Schema,
    ) -> None:
        connection.register("keys", schema.empty_table())
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM keys")
        for number in range(count):
            path = _path(self._job.output, f"{folder}/{number:05d}.parquet")
            with files.open_read(path) as file:
                keys = pq.read_table(file, use_threads=False, pre_buffer=False)
            connection.register("keys", keys)
            connection.execute(f"INSERT INTO {table} SELECT * FROM keys")


@contextlib.contextmanager
def _connection() -> Iterator["duckdb.DuckDBPyConnection"]:
    import duckdb  # Workers do without its 40 MB.

    with tempfile.TemporaryDirectory() as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "temp_directory": folder,
            "preserve_insertion_order": False,
        }
        connection = duckdb.connect(f"{folder}/keys.duckdb", config=config)
        try:
            yield connection
        finally:
            connection.close()


def _check_ids(connection: "duckdb.DuckDBPyConnection") -> None:
    repeated = connection.execute(_REPEATED_IDS).fetchall()
    if repeated:
        named = ", ".join(f"{name!r} at {file}:{at}" for name, file, at, _ in repeated)
        raise DataError(
            f"{repeated[0][-1]} documents have the id of a document before them, such "
            f"as {named}; mend the ids, or name another --output and --on_duplicate_id "
            "keep"
        )


def read_links(output: str, task: int) -> dict[int, Link]:
    """What is known of the documents of a task, by record; others are new."""
    places = [("place", ">=", _place(task, 0)), ("place", "<", _place(task + 1, 0))]
    with files.open_read(_path(output, "links.parquet")) as file:
        table = pq.read_table(file, filters=places, use_threads=False, pre_buffer=False)
    links: dict[int, Link] = {}
    for place, duplicate_of, copied, file, position, row in zip(
        *(column.to_pylist() for column in table.columns), strict=True
    ):
        _, record = _numbers(place)
        copy = None if copied is None else (_numbers(copied)[0], file, position)
        before = links.setdefault(record, Link(duplicate_of, copy, ()))
        if row is not None and len(before.earlier) < _MOST_FORMS:
            earlier = (*before.earlier, _numbers(row))
            links[record] = before._replace(earlier=earlier)
    return links


def _place(part: int, row: int) -> int:
    return part << 32 | row


def _numbers(place: int) -> tuple[int, int]:
    return place >> 32, place & 0xFFFFFFFF


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


def _path(output: str, name: str) -> str:
    return files.join(output, TASKS_FOLDER, name)


def _write_tables(job: Job, name: str, schema: pa.Schema, tables: Any) -> Any:
    """Publishes a Parquet file of the job, a row group for each table."""
    rows = 0
    with (
        files.write_aside(_path(job.output, name)) as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for table in tables:
            writer.write_table(table, row_group_size=max(1, table.num_rows))
            rows += table.num_rows
    return describe_file(job.output, files.join(TASKS_FOLDER, name), rows=rows)
