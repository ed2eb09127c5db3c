"""The references of groups: files of them -> rows of groups as they are scored.

    {"group_id": "storm", "highlights": "Rain fell.\\nThree roads closed."}

They are read as a corpus is, and joined with the rows by DuckDB, so that neither the
references nor the groups need fit the memory. Lines with one `group_id` are several
references of that group.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from precis.model.errors import DataError, UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.schemes import SCHEMES, scheme_of
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import EMPTY_ARTICLE, MISSING_FIELD, FileFailure
from precis.pipelines.run.key_tables import ROWS_AT_ONCE, open_database, publish_keys
from precis.pipelines.tables.part_files import list_ranges, read_part

if TYPE_CHECKING:
    import duckdb

_COLUMNS = ("group_id", "run_id", "method", "summary")
# In the folder of an evaluation while it runs, and its columns.
JOINED_FILE = "groups.parquet"
JOINED_COLUMNS = (
    *("document_id", "run_id", "group_method", "summary", "reference_summary"),
    *("other_references", "extractive", "abstractive_summary", "truncated"),
)
_SHOWN_GROUPS = 5
_JOIN = """
SELECT groups.group_id AS document_id, run_id, method AS group_method, summary,
    texts[1] AS reference_summary, texts[2:] AS other_references,
    NULL AS extractive, NULL AS abstractive_summary, NULL AS truncated
FROM groups LEFT JOIN (
    SELECT group_id, list(reference ORDER BY reference) AS texts
    FROM given GROUP BY group_id
) AS given ON groups.group_id IS NOT DISTINCT FROM given.group_id
ORDER BY groups.group_id, run_id
"""
_MISSING = """
SELECT group_id FROM (SELECT DISTINCT group_id FROM {}) AS rows ANTI JOIN {} AS others
    ON rows.group_id IS NOT DISTINCT FROM others.group_id
ORDER BY group_id NULLS FIRST
"""


def join_references(source: str, parts: Sequence[str], folder: str) -> dict[str, Any]:
    """Writes the rows of groups with their references to `JOINED_FILE`, with the
    columns that `score_rows` reads.

    Args:
      source: of the references, a path or as in `--corpus`.
      parts: the Parquet files with the rows.
      folder: of the evaluation.

    Returns:
      For `without_reference`, the groups that have none, and `without_row`, those that
      only the references have: their `count`, and the `first` of their ids.

    Raises:
      UsageError: the source cannot be read, or lacks a field.
      DataError: a reference is damaged.
    """
    list_ranges(parts, needed=_COLUMNS)  # It names what has no rows of groups.
    with open_database() as connection:
        columns = ", ".join(f"{name} VARCHAR" for name in _COLUMNS)
        connection.execute(f"CREATE TABLE groups ({columns})")
        connection.execute("CREATE TABLE given (group_id VARCHAR, reference VARCHAR)")
        for path in parts:
            for rows in read_part(path, _COLUMNS):
                connection.register("batch", rows)
                connection.execute("INSERT INTO groups FROM batch")
        for references in _read_references(source):
            connection.register("batch", references)
            connection.execute("INSERT INTO given FROM batch")
        joined = connection.sql(_JOIN).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(folder, JOINED_FILE, joined)
        return {
            "without_reference": _missing(connection, "groups", "given"),
            "without_row": _missing(connection, "given", "groups"),
        }


def _missing(
    connection: "duckdb.DuckDBPyConnection", table: str, other: str
) -> dict[str, Any]:
    query = _MISSING.format(table, other)
    first = connection.sql(f"{query} LIMIT {_SHOWN_GROUPS}").fetchall()
    return {
        "count": len(connection.sql(query)),
        "first": [group for (group,) in first],
    }


def _read_references(source: str) -> Iterator[pa.Table]:
    """The groups and texts of the references, a table for each task of their files."""
    scheme = "" if source.split(":")[0] in SCHEMES else scheme_of(source)
    try:
        options = CorpusOptions(
            corpus=f"{scheme}:{source}" if scheme else source,
            article_field="highlights",
            keep_fields="group_id:string",
        )
        for task in list_tasks(options):
            rows = []
            for record in read_task(task, options):
                if isinstance(record, Article):
                    document = record.document
                    rows.append([document.metadata["group_id"], document.article])
                elif record.reason not in (EMPTY_ARTICLE, MISSING_FIELD):
                    place = f"{record.source_file}, {record.source_position}"
                    raise DataError(
                        f"{place}: {record.detail}; mend it or leave it out"
                    )
            columns = [pa.array([row[n] for row in rows], pa.string()) for n in (0, 1)]
            yield pa.table(columns, ["group_id", "reference"])
    except UsageError as error:
        reason, *_ = str(error).split(" (--article_field")
        way_out = "a reference has the fields group_id and highlights"
        raise UsageError(f"--group_references: {reason}; {way_out}") from error
    except (DataError, FileFailure) as error:
        raise DataError(f"--group_references: {error}") from error
