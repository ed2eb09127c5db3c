"""Checks the rows and dead letters of a run as DuckDB tables: their content, the counts
of the manifest, and the documents of the corpus.

The tables spill to a temporary folder, so memory does not grow with the rows.
"""

import itertools
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from precis.model import files
from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.model.text.length_limit import NO_LENGTH_LIMIT, LengthLimit
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import EMPTY_ARTICLE, FileError
from precis.pipelines.run.key_tables import insert_rows, numbered
from precis.pipelines.run.options import option_names
from precis.pipelines.tables.output_files import read_output_file
from precis.pipelines.tables.schema import GROUP_SCHEMA, SUMMARY_SCHEMA
from precis.pipelines.verify.folder import Finding

_COLUMNS = ("document_id", "source_file", "source_position", "duplicate_of", "run_id")
_COMPARED_COLUMNS = ("content_sha256", "extractive")
_GROUP_COLUMNS = ("group_id", "members", "summary", "sentences", "run_id")
# The texts that the length limit applies to.
_TEXTS = ("summary", "extractive_summary", "abstractive_summary")
_LETTERS = pa.schema(
    {
        **dict.fromkeys(("source_file", "source_position", "run_id"), pa.string()),
        **{"reason": pa.string(), "records": pa.int64()},
    }
)
_LETTERS_AT_ONCE = 1 << 16
_UNREADABLE = (
    *(OSError, EOFError, zlib.error, ValueError, KeyError, TypeError),
    *(pa.ArrowException, duckdb.Error),
)
# The content of each table's files, in words; the query that converts a batch.
_KINDS = {
    "rows": "rows of a run",
    "group_rows": "rows of groups",
    "dead_letters": "dead letters",
}
# A key is never null: the null group has an empty key.
KEYED_GROUPS = "SELECT *, coalesce('=' || group_id, '') AS key FROM batch"
_ROWS_OF = {
    "rows": "SELECT * FROM batch",
    "group_rows": KEYED_GROUPS,
    "dead_letters": f"""
        SELECT *, if(reason = '{EMPTY_ARTICLE}', 'empty', 'failed') AS outcome
        FROM batch
    """,
}
# Queries for findings return a file, a problem and a place.
_WRONG_ROWS = """
    SELECT part, 'run_id differs from the manifest', row
    FROM rows WHERE run_id IS DISTINCT FROM $run_id
    UNION ALL SELECT part, 'run_id belongs to another run', row
    FROM dead_letters WHERE run_id IS DISTINCT FROM $run_id
    UNION ALL SELECT part, 'a text is longer than the limit of the run', row
    FROM rows WHERE is_too_long
    UNION ALL SELECT part, 'its document has another row', row FROM (
        FROM rows QUALIFY row_number() OVER (
            PARTITION BY document_id, source_file, source_position ORDER BY part, row
        ) > 1
    )
    ORDER BY ALL
"""
_REPEATED_IDS = """
    SELECT document_id, sum(count(*) - 1) OVER () FROM rows GROUP BY document_id
    HAVING count(*) > 1 ORDER BY document_id LIMIT 3
"""
# The counts of each source file in the manifest, and the counts in the files.
_ACCOUNTS = """
    SELECT concat('rows of ', source_file) AS name, count(*) FROM rows GROUP BY ALL
    UNION ALL SELECT concat('duplicates of ', source_file), count(duplicate_of)
    FROM rows GROUP BY ALL
    UNION ALL SELECT concat(outcome, ' of ', source_file), sum(records)
    FROM dead_letters GROUP BY ALL
"""
# The rows of the records in `batch`; sentences are only read for these.
_ROWS_OF_BATCH = """
    SELECT part, row, source_file, source_position, document_id, content_sha256,
        extractive
    FROM rows WHERE rowid IN (
        SELECT rows.rowid FROM rows SEMI JOIN batch USING (source_file, source_position)
    )
    ORDER BY part, row
"""
_WRONG_DOCUMENTS = """
    WITH placed AS (
        SELECT source_file, source_position, true AS is_row FROM rows
        UNION ALL SELECT source_file, source_position, false FROM dead_letters
        WHERE source_position <> ''
    ), results AS (
        SELECT source_file, source_position, count(*) AS n, bool_or(is_row) AS has_row
        FROM placed GROUP BY ALL
    )
    SELECT source_file, CASE
        WHEN n IS NULL THEN 'the record has no row or dead letter'
        WHEN is_article IS NULL THEN 'the corpus has no record at this place'
        WHEN n > 1 THEN 'the record has more than one row or dead letter'
        WHEN has_row AND NOT is_article THEN 'the record is unusable but has a row'
    END AS problem, source_position
    FROM documents FULL JOIN results USING (source_file, source_position)
    WHERE problem IS NOT NULL AND (
        n IS NOT NULL OR $are_all_expected AND source_file NOT IN (FROM unread)
    )
    ORDER BY ALL
"""


def read_files(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    manifest: Mapping[str, Any],
    damaged: Collection[str],
    *,
    is_compared: bool = False,
) -> list[Finding]:
    """Fills the tables `rows`, `group_rows` and `dead_letters` from the files of a run.

    Args:
      connection: a connection from `open_database`.
      folder: the folder of the run.
      manifest: the manifest, which lists the files.
      damaged: the names of files to leave out.
      is_compared: whether `compare_documents` will be called.

    Returns:
      Findings for files without rows, or with other rows than listed.
    """
    limit = _limit_of(manifest)
    columns = _COLUMNS + _TEXTS * bool(limit) + _COMPARED_COLUMNS * is_compared
    schemas = {
        "rows": pa.schema(list(map(SUMMARY_SCHEMA.field, columns))),
        "dead_letters": _LETTERS,
        "group_rows": pa.schema(list(map(GROUP_SCHEMA.field, _GROUP_COLUMNS))),
    }
    for table, schema in schemas.items():
        for empty in _with_places([schema.empty_table()], "", limit):
            insert_rows(connection, table, empty, _ROWS_OF[table])
    of_groups = manifest.get("groups", {}).get("files", ())
    listed = [
        *(("rows", file) for file in manifest["files"]),
        *(("dead_letters", file) for file in manifest["dead_letters"]),
        *(("group_rows", file) for file in of_groups),
    ]
    findings = []
    with stage("read", total=len(listed), unit="files") as reading:
        for table, file in listed:
            reading.advance()
            name, count = file["file"], 0
            if name in damaged:
                continue
            path = files.join(folder, name)
            tables = read_output_file(path, schemas[table].names)
            if table == "dead_letters":
                tables = _letter_tables(path)
            try:
                for batch in _with_places(tables, name, limit):
                    insert_rows(connection, table, batch, _ROWS_OF[table])
                    count += len(batch)
            except _UNREADABLE as error:
                problem = f"cannot be read as {_KINDS[table]}: {error!r}"
                findings.append(Finding(name, problem))
                continue
            if count != file["rows"]:
                problem = f"has {count} rows, but the manifest lists {file['rows']}"
                findings.append(Finding(name, problem))
    return findings


def _limit_of(manifest: Mapping[str, Any]) -> LengthLimit:
    """The length limit of a run; no limit if its settings were edited."""
    settings = manifest["settings"]
    if manifest["settings_id"] != files.sha256_json(settings)[:16]:
        return NO_LENGTH_LIMIT
    names = option_names([SelectionConfig])
    return SelectionConfig(**{name: settings[name] for name in names}).limit


def _letter_tables(path: str) -> Iterator[pa.Table]:
    dead_letters = read_dead_letters(path)
    while batch := list(itertools.islice(dead_letters, _LETTERS_AT_ONCE)):
        yield pa.Table.from_pylist(batch, _LETTERS)


def _with_places(
    tables: Iterable[pa.Table], part: str, limit: LengthLimit
) -> Iterator[pa.Table]:
    """Adds to the rows of a file its name, their number in it, and whether one of their
    texts exceeds the limit.
    """
    for table in numbered(tables, "row"):
        texts = table.select([name for name in _TEXTS if name in table.column_names])
        is_too_long = [
            any(text and not limit.fits(text) for text in row.values())
            for row in texts.to_pylist() or [{}] * len(table)
        ]
        table = table.append_column("is_too_long", pa.array(is_too_long, pa.bool_()))
        yield table.append_column("part", pa.repeat(part, len(table)))


def wrong_rows(connection: duckdb.DuckDBPyConnection, run_id: str) -> Iterator[Finding]:
    """Finds rows and dead letters of other runs, texts that are too long, and documents
    with two rows; notes how many rows repeat an id.
    """
    yield from ask(connection, _WRONG_ROWS, run_id=run_id)
    repeated = connection.execute(_REPEATED_IDS).fetchall()
    if repeated:
        named = ", ".join(repr(name) for name, _ in repeated)
        problem = (
            f"{repeated[0][1]} rows repeat the id of an earlier row, such as {named}; "
            "document_id is not a unique key of this run"
        )
        yield Finding("document_id", problem, is_note=True)


def ask(
    connection: duckdb.DuckDBPyConnection, query: str, **values: str | bool
) -> Iterator[Finding]:
    """The findings of a query; a place that is a number is a row number."""
    found = connection.execute(query, values).fetchall()
    for name, problem, place in found:
        yield Finding(name, problem, f"row {place}" if type(place) is int else place)


def compare_accounts(
    connection: duckdb.DuckDBPyConnection,
    sources: Mapping[str, Mapping[str, int]],
    *,
    has_rows: bool = True,
) -> Iterator[Finding]:
    """Compares the counts of each source file with its rows and dead letters.

    Args:
      connection: a database with the tables of `read_files`.
      sources: the counts by source file and outcome.
      has_rows: whether the run keeps rows of documents, not only of groups.
    """
    expected = {}
    for source, counts in sources.items():
        kept = (counts.get(each, 0) for each in ("written", "reused", "duplicates"))
        expected[f"rows of {source}"] = sum(kept) * has_rows
        for outcome in ("duplicates",) * has_rows + ("empty", "failed"):
            expected[f"{outcome} of {source}"] = counts.get(outcome, 0)
    counted = dict(connection.execute(_ACCOUNTS).fetchall())
    for name in sorted({*expected, *counted}):
        count, of_files = expected.get(name, 0), int(counted.get(name, 0))
        if count != of_files:
            problem = f"{name}: {count}, but the files have {of_files}"
            yield Finding("manifest.json", problem)


def compare_documents(
    connection: duckdb.DuckDBPyConnection,
    manifest: Mapping[str, Any],
    corpus: CorpusOptions,
    *,
    are_all_expected: bool,
) -> Iterator[Finding]:
    """Compares every row with its document, and looks for every document. Reads the
    corpus once, one task at a time.

    Args:
      connection: a database with the tables of `read_files`.
      manifest: the manifest of the run.
      corpus: the corpus options of the run.
      are_all_expected: whether each document must have a row or a dead letter.

    Raises:
      UsageError: the corpus cannot be listed, or the run read none of its files.
    """
    connection.execute("""
        CREATE TABLE unread (source_file VARCHAR);
        CREATE TABLE documents (
            source_file VARCHAR, source_position VARCHAR, is_article BOOLEAN
        )
    """)
    tasks = list_tasks(corpus)
    paths = {path for task in tasks for path in task.paths}
    sources = manifest["sources"]
    name_in_run = _moved_files(paths, sources)
    if paths and sources and sources.keys().isdisjoint(map(name_in_run, paths)):
        raise UsageError(
            f"--corpus {corpus.corpus} is not the corpus of this run, which read "
            f"{min(sources)}; name the corpus at its present place"
        )
    with stage("compare", total=manifest["counts"].get("read")) as comparing:
        for task in tasks:
            reader = read_task(task, corpus)
            records = {}
            try:
                for record in reader:
                    if isinstance(record, Article):
                        place = record.document
                        # Not the texts that the article has computed.
                        kept = place, record.content_sha256
                    else:
                        place, kept = record, None
                    file = name_in_run(place.source_file)
                    records[file, place.source_position] = kept
            except FileError as error:
                name = error.letter.source_file
                yield Finding(name, error.letter.detail)
                connection.execute("INSERT INTO unread VALUES (?)", [name])
                continue
            comparing.advance(reader.read.total())
            are_articles = list(map(bool, records.values()))
            batch = {
                "source_file": pa.array([file for file, _ in records], pa.string()),
                "source_position": pa.array([at for _, at in records], pa.string()),
                "is_article": pa.array(are_articles, pa.bool_()),
            }
            insert_rows(connection, "documents", pa.table(batch))
            rows = connection.execute(_ROWS_OF_BATCH).fetchall()
            for part, row, file, position, *values in rows:
                if kept := records[file, position]:
                    for problem in _differences(*kept, *values):
                        yield Finding(part, problem, f"row {row}")
    yield from ask(connection, _WRONG_DOCUMENTS, are_all_expected=are_all_expected)


def _moved_files(paths: Iterable[str], sources: Iterable[str]) -> Callable[[str], str]:
    """A function that maps a corpus file's path to its path in the run, if the corpus
    has moved to another folder.
    """
    if {*paths} & {*sources}:
        return str
    common = (os.path.commonprefix(sorted(names)) for names in (paths, sources))
    root, root_in_run = (prefix[: prefix.rfind("/") + 1] for prefix in common)
    return lambda path: root_in_run + path.removeprefix(root)


def _differences(
    document: Document,
    content_sha256: str,
    document_id: str,
    sha256: str,
    extractive: list[dict[str, Any]],
) -> Iterator[str]:
    """Describes the values of a row that differ from its document."""
    if document_id != document.document_id:
        yield "document_id differs from the document"
    if sha256 != content_sha256:
        yield "content_sha256 differs from the article; the document was changed"
    if any(
        document.article[item["start"] : item["end"]] != item["text"]
        for item in extractive
    ):
        yield "a sentence differs from the article at its offsets"
