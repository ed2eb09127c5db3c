"""The rows and the dead letters of a result as tables of DuckDB, and what is wrong with
them: in themselves, beside the counts of a description, and beside the corpus.

The tables spill to a temporary folder, so memory does not grow with the rows.
"""

import contextlib
import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from precis.model import files
from precis.model.progress.stages import stage
from precis.model.quality.flags import ABSTRACTIVE, SOURCE
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import UNCOUNTED, read_dead_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import EMPTY_ARTICLE, FileFailure
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.tables.part_files import read_part
from precis.pipelines.verify.folder import Finding

_COLUMNS = (
    *("document_id", "source_file", "source_position", "duplicate_of", "truncated"),
    *("summary_method", "quality_flags", "abstractive_quality", "run_id"),
)
_COMPARED_COLUMNS = ("content_sha256", "extractive")
_LETTERS = pa.schema(
    {
        **dict.fromkeys(("source_file", "source_position", "run_id"), pa.string()),
        **dict.fromkeys(("stage", "reason"), pa.string()),
        "records": pa.int64(),
    }
)
_LETTERS_AT_ONCE = 1 << 16
# Letters of these reasons stand for a file, or a part of one: it is not known which
# records are lost.
_FILE_REASONS = ", ".join(f"'{reason}'" for reason in sorted(UNCOUNTED))
_CREATE = f"""
    CREATE TABLE rows (
        part VARCHAR, row BIGINT, document_id VARCHAR NOT NULL,
        source_file VARCHAR NOT NULL, source_position VARCHAR NOT NULL,
        run_id VARCHAR NOT NULL, summary_method VARCHAR NOT NULL,
        quality_flags VARCHAR[] NOT NULL, network_flags VARCHAR[],
        duplicate_of VARCHAR, truncated BOOLEAN, content_sha256 VARCHAR,
        extractive STRUCT("start" BIGINT, "end" BIGINT, "text" VARCHAR)[]
    );
    CREATE TABLE dead_letters (
        part VARCHAR, row BIGINT, source_file VARCHAR NOT NULL,
        source_position VARCHAR NOT NULL, reason VARCHAR NOT NULL,
        outcome VARCHAR, records BIGINT NOT NULL, run_id VARCHAR NOT NULL
    );
    CREATE TABLE documents (
        source_file VARCHAR, source_position VARCHAR, is_article BOOLEAN
    );
    CREATE TABLE unread (source_file VARCHAR);
    CREATE VIEW placed AS FROM dead_letters
    WHERE reason NOT IN ({_FILE_REASONS}) AND source_position <> ''
"""
_INSERT = {
    "rows": """
        INSERT INTO rows BY NAME SELECT * EXCLUDE abstractive_quality,
            abstractive_quality.flags AS network_flags, $part AS part
        FROM batch
    """,
    "dead_letters": f"""
        INSERT INTO dead_letters BY NAME SELECT * EXCLUDE (stage, reason),
            stage || '/' || reason AS reason, $part AS part,
            if(reason = '{EMPTY_ARTICLE}', 'empty', 'failed') AS outcome
        FROM batch
    """,
}
# Queries of faults have a file, a problem and a place.
_WRONG_ROWS = """
    SELECT part, 'run_id is not that of the manifest', row
    FROM rows WHERE run_id <> $run_id
    UNION ALL SELECT part, 'run_id is of another run', row
    FROM dead_letters WHERE run_id <> $run_id
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
# Queries of counts have the names of a description.
LETTER_COUNTS = """
    SELECT 'counts.' || outcome, sum(records) FROM dead_letters GROUP BY ALL
    UNION ALL SELECT 'failures.' || reason, sum(records)
    FROM dead_letters WHERE outcome = 'failed' GROUP BY ALL
"""
RUN_COUNTS = f"""
    {LETTER_COUNTS}
    UNION ALL SELECT concat(outcome, ' records of ', source_file), sum(records)
    FROM dead_letters GROUP BY ALL
    UNION ALL SELECT 'counts.truncated', count(*) FILTER (truncated) FROM rows
    UNION ALL SELECT 'rows of ' || source_file, count(*) FROM rows GROUP BY ALL
    UNION ALL SELECT 'duplicates of ' || source_file, count(duplicate_of)
    FROM rows GROUP BY ALL
    UNION ALL SELECT 'summary_methods.' || summary_method, count(*)
    FROM rows GROUP BY ALL
    UNION ALL SELECT 'quality_flags.' || flag, count(*)
    FROM (SELECT unnest(quality_flags) AS flag FROM rows) GROUP BY ALL
    UNION ALL SELECT 'fallbacks.' || flag, count(*) FROM (
        SELECT unnest(network_flags) AS flag FROM rows
        WHERE summary_method NOT IN ('{ABSTRACTIVE}', '{SOURCE}')
    ) GROUP BY ALL
"""
# The rows of the records in `batch`.
_ROWS_OF_BATCH = """
    SELECT part, row, source_file, source_position, document_id, content_sha256,
        extractive
    FROM rows WHERE rowid IN (
        SELECT rows.rowid FROM rows SEMI JOIN batch USING (source_file, source_position)
    )
    ORDER BY part, row
"""
_ROWS_WITHOUT_DOCUMENT = """
    SELECT part, 'source_file and source_position name no document of the corpus', row
    FROM rows ANTI JOIN (FROM documents WHERE is_article)
    USING (source_file, source_position) ORDER BY ALL
"""
_WRONG_DOCUMENTS = f"""
    WITH places AS (
        SELECT source_file, source_position FROM rows
        UNION ALL SELECT DISTINCT source_file, source_position FROM placed
    ), counts AS (
        SELECT source_file, source_position, count(*) AS n FROM places GROUP BY ALL
    ), lost AS (
        FROM unread UNION ALL
        SELECT source_file FROM dead_letters WHERE reason IN ({_FILE_REASONS})
    )
    SELECT source_file, CASE
        WHEN n > 1 AND is_article THEN 'has more than one row or dead letter'
        WHEN n IS NULL AND is_article THEN 'has neither a row nor a dead letter'
        WHEN n IS NULL THEN 'cannot be used and has no dead letter'
    END AS problem, source_position
    FROM documents LEFT JOIN counts USING (source_file, source_position)
    WHERE problem IS NOT NULL AND (n > 1 OR source_file NOT IN (FROM lost))
    UNION ALL
    SELECT part, 'a letter is of no record of the corpus', source_position
    FROM placed ANTI JOIN documents USING (source_file, source_position)
    UNION ALL
    SELECT part, 'a record has more than one letter', source_position FROM (
        FROM placed
        QUALIFY count(*) OVER (PARTITION BY source_file, source_position) > 1
    )
    ORDER BY ALL
"""


@contextlib.contextmanager
def open_tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the tables, empty, which is removed at the end."""
    with open_database() as connection:
        connection.execute(_CREATE)
        yield connection


def add_parts(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    listed: Sequence[Mapping[str, Any]],
    *,
    is_compared: bool,
) -> Iterator[Finding]:
    """Adds the rows of parts to the table.

    Args:
      connection: of `open_tables`.
      folder: of the run.
      listed: the parts, as the manifest describes them.
      is_compared: whether `compare_documents` comes next.
    """
    columns = _COLUMNS + _COMPARED_COLUMNS * is_compared
    with stage("read", total=sum(file["rows"] for file in listed), unit="rows") as read:
        for file in listed:
            tables = read_part(files.join(folder, file["file"]), columns)
            yield from _add_file(connection, file, "rows", tables)
            read.advance(file["rows"])


def add_dead_letters(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    listed: Iterable[Mapping[str, Any]],
) -> Iterator[Finding]:
    """Adds files of dead letters to the table.

    The arguments are those of `add_parts`.
    """
    for file in listed:
        tables = _letter_tables(files.join(folder, file["file"]))
        yield from _add_file(connection, file, "dead_letters", tables)


def _letter_tables(path: str) -> Iterator[pa.Table]:
    dead_letters = read_dead_letters(path)
    while batch := list(itertools.islice(dead_letters, _LETTERS_AT_ONCE)):
        yield pa.Table.from_pylist(batch, _LETTERS)


def _add_file(
    connection: duckdb.DuckDBPyConnection,
    file: Mapping[str, Any],
    to: str,
    tables: Iterable[pa.Table],
) -> Iterator[Finding]:
    """Adds what a file holds to `rows` or `dead_letters`."""
    name, count = file["file"], 0
    try:
        for table in tables:
            places = pa.array(range(count, count + len(table)), pa.int64())
            connection.register("batch", table.append_column("row", places))
            connection.execute(_INSERT[to], {"part": name})
            count += len(table)
    except (
        *(OSError, EOFError, zlib.error, ValueError, KeyError, TypeError),
        *(pa.ArrowException, duckdb.Error),
    ) as error:
        what = "rows of a run" if to == "rows" else "dead letters"
        yield Finding(name, f"cannot be read as {what}: {error!r}")
        return
    if count != file["rows"]:
        yield Finding(name, f"has {count} rows, and {file['rows']} are listed")


def wrong_rows(connection: duckdb.DuckDBPyConnection, run_id: str) -> Iterator[Finding]:
    """Rows and dead letters of other runs, and documents with two rows; as a note, how
    many rows repeat an id.
    """
    yield from _ask(connection, _WRONG_ROWS, run_id=run_id)
    repeated = connection.execute(_REPEATED_IDS).fetchall()
    if repeated:
        named = ", ".join(repr(name) for name, _ in repeated)
        problem = (
            f"{repeated[0][1]} rows have that of a row before them, such as {named}; "
            "it alone is no key of these rows"
        )
        yield Finding("document_id", problem, is_note=True)


def _ask(
    connection: duckdb.DuckDBPyConnection, query: str, **values: str
) -> Iterator[Finding]:
    """The findings of a query; a place that is a number is that of a row."""
    found = connection.execute(query, values or None).fetchall()
    for name, problem, place in found:
        yield Finding(name, problem, f"row {place}" if type(place) is int else place)


def compare_counts(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    expected: Mapping[str, int],
    described_in: str,
) -> Iterator[Finding]:
    """Compares counts of a description with those of rows and dead letters.

    Args:
      connection: of `open_tables`.
      query: RUN_COUNTS or LETTER_COUNTS.
      expected: the counts of the description by the names of the query.
      described_in: the name of the description.
    """
    counts = dict(connection.execute(query).fetchall())
    for name in sorted({*expected, *counts}):
        # Rows are held back for some of their flags alone, which the manifest names.
        if name.startswith("fallbacks.") and name not in expected:
            continue
        count, of_files = expected.get(name, 0), int(counts.get(name, 0))
        if count != of_files:
            problem = f"{name}: {count}, and the files have {of_files}"
            yield Finding(described_in, problem)


def compare_documents(
    connection: duckdb.DuckDBPyConnection,
    manifest: Mapping[str, Any],
    corpus: CorpusOptions,
    *,
    are_all_expected: bool,
) -> Iterator[Finding]:
    """Compares every row with its document, and looks for every document. The corpus is
    read once, a task at a time.

    Args:
      connection: of `open_tables`, with the rows and dead letters of the run.
      manifest: of the run.
      corpus: how the run has read it.
      are_all_expected: whether each document must have a row or a dead letter.

    Raises:
      UsageError: the corpus cannot be listed.
    """
    tasks = list_tasks(corpus)
    paths = {path for task in tasks for path in task.paths}
    name_in_run = _moved_files(paths, manifest["sources"])
    with stage("compare", total=manifest["counts"].get("read")) as comparing:
        for task in tasks:
            reader = read_task(task, corpus)
            records = {}
            try:
                for record in reader:
                    place = record.document if isinstance(record, Article) else record
                    file = name_in_run(place.source_file)
                    records[file, place.source_position] = record
            except FileFailure as error:
                yield Finding(error.path, error.detail)
                connection.execute("INSERT INTO unread VALUES (?)", [error.path])
                continue
            comparing.advance(reader.read.total())
            batch = {
                "source_file": pa.array([file for file, _ in records], pa.string()),
                "source_position": pa.array([at for _, at in records], pa.string()),
                "is_article": pa.array(
                    [isinstance(r, Article) for r in records.values()], pa.bool_()
                ),
            }
            connection.register("batch", pa.table(batch))
            connection.execute("INSERT INTO documents FROM batch")
            rows = connection.execute(_ROWS_OF_BATCH).fetchall()
            for part, row, file, position, *values in rows:
                record = records[file, position]
                if isinstance(record, Article):
                    for problem in _differences(record, *values):
                        yield Finding(part, problem, f"row {row}")
    yield from _ask(connection, _ROWS_WITHOUT_DOCUMENT)
    if are_all_expected:
        yield from _ask(connection, _WRONG_DOCUMENTS)


def _moved_files(paths: Iterable[str], sources: Iterable[str]) -> Callable[[str], str]:
    """A function that gives the path of a file of the corpus as the run has it, where
    the corpus lies in another folder than the run has read it from.
    """
    if {*paths} & {*sources}:
        return str
    common = (os.path.commonprefix(sorted(names)) for names in (paths, sources))
    root, root_in_run = (prefix[: prefix.rfind("/") + 1] for prefix in common)
    return lambda path: root_in_run + path.removeprefix(root)


def _differences(
    article: Article, document_id: str, sha256: str, extractive: list[dict[str, Any]]
) -> Iterator[str]:
    """What is in a row and not in its document."""
    document = article.document
    if document_id != document.document_id:
        yield "document_id is not that of the document"
    if sha256 != article.content_sha256:
        yield "content_sha256 is not that of the article; the document was changed"
    if any(
        document.article[item["start"] : item["end"]] != item["text"]
        for item in extractive
    ):
        yield "a sentence is not what the article has at its offsets"
