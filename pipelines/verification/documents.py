"""The rows of a run against the corpus that they were made of.

The corpus is read once, a task at a time. The rows of a task lie in a few row groups,
which the table of `rows` names; that table also says at the end what is left over.
"""

import functools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import UNCOUNTED, read_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import TaskReader, list_tasks, read_task
from precis.pipelines.corpus.task import FileFailure, Task
from precis.pipelines.tables.part_files import read_row_groups
from precis.pipelines.verification.findings import Finding

_OPEN_GROUPS = 4  # row groups that are held in memory
_LETTERS_AT_ONCE = 1 << 16
_COLUMNS = (
    *("document_id", "source_file", "source_position"),
    *("content_sha256", "extractive"),
)
# Reasons of letters that stand for a file, or a part of one: it is not known which
# records are lost.
_FILE_REASONS = {reason.removeprefix("read/") for reason in UNCOUNTED}
_CREATE = """
    CREATE TABLE documents (file VARCHAR, position VARCHAR, is_article BOOLEAN);
    CREATE TABLE letters (name VARCHAR, file VARCHAR, position VARCHAR);
    CREATE TABLE lost (file VARCHAR);
"""
_GROUPS = """
    SELECT DISTINCT number, part, row_group FROM rows
    SEMI JOIN batch ON source_file = file AND source_position = position
    ORDER BY number, row_group
"""
_ROWS_WITHOUT_DOCUMENT = """
    SELECT part, 'row ' || row,
        'source_file and source_position name no document of the corpus'
    FROM rows ANTI JOIN documents
    ON source_file = file AND source_position = position AND is_article
    ORDER BY number, row
"""
_DOCUMENTS = """
    WITH places AS (
        SELECT source_file AS file, source_position AS position, count(*) AS n
        FROM rows GROUP BY ALL
        UNION ALL SELECT DISTINCT file, position, 1 FROM letters
    ), counts AS (SELECT file, position, sum(n) AS n FROM places GROUP BY ALL)
    SELECT file, position, CASE
        WHEN n > 1 AND is_article THEN 'has more than one row or dead letter'
        WHEN n IS NULL AND is_article THEN 'has neither a row nor a dead letter'
        WHEN n IS NULL THEN 'cannot be used and has no dead letter'
    END AS problem
    FROM documents LEFT JOIN counts USING (file, position)
    WHERE problem IS NOT NULL AND (n > 1 OR file NOT IN (FROM lost))
    ORDER BY documents.rowid
"""
_LETTERS = """
    SELECT name, position, CASE
        WHEN NOT EXISTS (
            FROM documents AS d WHERE d.file = l.file AND d.position = l.position
        ) THEN 'a letter is of no record of the corpus'
        WHEN count(*) OVER (PARTITION BY file, position) > 1
        THEN 'a record has more than one letter'
    END AS problem
    FROM letters AS l QUALIFY problem IS NOT NULL ORDER BY name, position
"""


def check_documents(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    manifest: Mapping[str, Any],
    corpus: CorpusOptions,
    whole: Collection[str],
) -> Iterator[Finding]:
    """Compares every row with its document, and looks for every document.

    Args:
      connection: of `open_rows`, with the rows of the parts.
      folder: of the run.
      manifest: of the run.
      corpus: how the run has read it.
      whole: the files of the run that are not damaged. Where others are missing,
          documents are not.

    Raises:
      UsageError: the corpus cannot be listed.
    """
    connection.execute(_CREATE)
    for file in manifest["dead_letters"]:
        if file["file"] in whole:
            _add_letters(connection, folder, file["file"])
    tasks = list_tasks(corpus)
    name_in_run = _moved_files(tasks, manifest["sources"])
    read_group = functools.lru_cache(_OPEN_GROUPS)(
        functools.partial(_read_group, folder)
    )
    with stage("compare", total=manifest["counts"].get("read")) as comparing:
        for task in tasks:
            reader = read_task(task, corpus)
            try:
                articles = _read_documents(connection, reader, name_in_run)
            except FileFailure as error:
                yield Finding(error.path, error.detail)
                connection.execute("INSERT INTO lost VALUES (?)", [error.path])
                continue
            comparing.advance(reader.read.total())
            for _, part, group in connection.execute(_GROUPS).fetchall():
                first, rows = read_group(part, group)
                for number, row in enumerate(rows, start=first):
                    article = articles.get((row["source_file"], row["source_position"]))
                    for problem in _differences(row, article) if article else ():
                        yield Finding(part, problem, f"row {number}")
            connection.execute("INSERT INTO documents FROM batch")
    added = connection.execute("SELECT DISTINCT part FROM rows").fetchall()
    missing = {file["file"] for file in manifest["dead_letters"]} - {*whole}
    missing |= {file["file"] for file in manifest["files"]} - {
        part for (part,) in added
    }
    queries = [_ROWS_WITHOUT_DOCUMENT]
    # A run with this flag has the records alone that another run had lost.
    if not missing and not manifest["provenance"]["flags"].get("retry_failures"):
        queries = [_DOCUMENTS, _ROWS_WITHOUT_DOCUMENT, _LETTERS]
    for query in queries:
        for name, place, problem in connection.execute(query).fetchall():
            yield Finding(name, problem, place)


def _add_letters(connection: duckdb.DuckDBPyConnection, folder: str, name: str) -> None:
    """Adds the places of a file of dead letters to the tables."""
    waiting: list[tuple[str, str, str]] = []
    for letter in read_letters(files.join(folder, name)):
        place = letter["source_file"], letter["source_position"]
        if letter["reason"] in _FILE_REASONS:
            connection.execute("INSERT INTO lost VALUES (?)", place[:1])
        elif place[1]:
            waiting.append((name, *place))
        if len(waiting) == _LETTERS_AT_ONCE:
            _insert_letters(connection, waiting)
            waiting = []
    _insert_letters(connection, waiting)


def _insert_letters(
    connection: duckdb.DuckDBPyConnection, letters: Sequence[tuple[str, str, str]]
) -> None:
    names = ("name", "file", "position")
    rows = [dict(zip(names, letter, strict=True)) for letter in letters]
    schema = pa.schema([(name, pa.string()) for name in names])
    connection.register("letter_batch", pa.Table.from_pylist(rows, schema))
    connection.execute("INSERT INTO letters FROM letter_batch")


def _moved_files(tasks: Sequence[Task], sources: Collection[str]) -> Any:
    """A function that gives the path of a file of the corpus as the run has it, where
    the corpus lies in another folder than the run has read it from.
    """
    paths = sorted({path for task in tasks for path in task.paths})
    if set(paths) & set(sources):
        return lambda path: path
    root, root_in_run = _folder_of(paths), _folder_of(sorted(sources))
    return lambda path: (
        root_in_run + path[len(root) :] if path.startswith(root) else path
    )


def _folder_of(paths: Sequence[str]) -> str:
    """The folder that holds all files, with a slash at its end."""
    folder, slash, _ = os.path.commonprefix(paths).rpartition("/")
    return folder + slash


def _read_documents(
    connection: duckdb.DuckDBPyConnection, reader: TaskReader, name_in_run: Any
) -> dict[tuple[str, str], Article]:
    """The articles of a task by their places; `batch` has the places of all records."""
    articles = {}
    places = []
    for record in reader:
        content = record.document if isinstance(record, Article) else record
        place = name_in_run(content.source_file), content.source_position
        if isinstance(record, Article):
            articles[place] = record
        places.append((*place, isinstance(record, Article)))
    columns = list(zip(*places, strict=True)) or [(), (), ()]
    kinds = (pa.string(), pa.string(), pa.bool_())
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    names = ["file", "position", "is_article"]
    connection.register("batch", pa.Table.from_arrays(arrays, names))
    return articles


def _read_group(folder: str, part: str, group: int) -> tuple[int, list[dict[str, Any]]]:
    """The rows of a row group, and the number of the first of them in the part."""
    with files.open_read(files.join(folder, part)) as opened:
        parquet = pq.ParquetFile(opened, pre_buffer=False)
        before = [parquet.metadata.row_group(n).num_rows for n in range(group)]
        return sum(before), read_row_groups(parquet, [group], _COLUMNS).to_pylist()


def _differences(row: Mapping[str, Any], article: Article) -> Iterator[str]:
    """What is in a row and not in its document."""
    document = article.document
    if row["document_id"] != document.document_id:
        yield "document_id is not that of the document"
    if row["content_sha256"] != article.content_sha256:
        yield "content_sha256 is not that of the article; the document was changed"
    if any(
        document.article[item["start"] : item["end"]] != item["text"]
        for item in row["extractive"]
    ):
        yield "a sentence is not what the article has at its offsets"
