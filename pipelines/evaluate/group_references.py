"""The references of groups: files of them -> those of each row of groups.

    {"group_id": "storm", "highlights": "Rain fell.\\nThree roads closed."}

They are read as a corpus is, and joined with the rows by DuckDB, so that neither the
references nor the groups need fit the memory. Lines with one `group_id` are several
references of that group.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.schemes import SCHEMES, scheme_of
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import EMPTY_ARTICLE, MISSING_FIELD, FileFailure
from precis.pipelines.run.key_tables import (
    ROWS_AT_ONCE,
    open_database,
    place_of,
    publish_keys,
    read_keys_of_task,
    task_and_record,
)
from precis.pipelines.tables.part_files import RowRange, read_rows

if TYPE_CHECKING:
    import duckdb

GROUP_COLUMNS = ("group_id", "run_id", "method", "summary")
# In the folder of an evaluation while it runs.
REFERENCES_FILE = "references.parquet"
_SHOWN_GROUPS = 5
_TABLES = """
CREATE TABLE groups (place BIGINT, group_id VARCHAR);
CREATE TABLE given (group_id VARCHAR, reference VARCHAR)
"""
_JOIN = """
SELECT place, reference FROM groups JOIN given
    ON groups.group_id IS NOT DISTINCT FROM given.group_id
ORDER BY place, reference
"""
_MISSING = """
SELECT group_id FROM (SELECT DISTINCT group_id FROM {}) AS rows ANTI JOIN {} AS others
    ON rows.group_id IS NOT DISTINCT FROM others.group_id
ORDER BY group_id NULLS FIRST
"""


@contextlib.contextmanager
def joined_references(
    source: str, ranges: Iterable[RowRange], folder: str
) -> Iterator[dict[str, Any]]:
    """Writes the references of all rows of groups to `REFERENCES_FILE`, which is
    removed at the end of the block.

    Args:
      source: of the references, a path or as in `--corpus`; nothing is done if empty.
      ranges: of the rows.
      folder: of the evaluation.

    Yields:
      For `without_reference`, the groups that have none, and `without_row`, those that
      only the references have: their `count`, and the `first` of their ids.

    Raises:
      UsageError: the source cannot be read, or lacks a field.
      DataError: a reference is damaged.
    """
    if not source:
        yield {}
        return
    with open_database() as connection:
        connection.execute(_TABLES)
        for row_range in ranges:
            rows = read_rows(row_range, ["group_id"])
            ids = pa.array([row["group_id"] for row in rows], pa.string())
            first = place_of(row_range.number, 0)
            places = pa.array(range(first, first + len(rows)), pa.int64())
            _insert(connection, "groups", pa.table([places, ids], ["place", "id"]))
        for references in _read_references(source):
            _insert(connection, "given", references)
        joined = connection.sql(_JOIN).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(folder, REFERENCES_FILE, joined)
        missing = {
            "without_reference": _missing(connection, "groups", "given"),
            "without_row": _missing(connection, "given", "groups"),
        }
    try:
        yield missing
    finally:
        files.remove(files.join(folder, REFERENCES_FILE))


def _insert(connection: "duckdb.DuckDBPyConnection", name: str, rows: pa.Table) -> None:
    connection.register("batch", rows)
    connection.execute(f"INSERT INTO {name} FROM batch")


def _missing(
    connection: "duckdb.DuckDBPyConnection", table: str, other: str
) -> dict[str, Any]:
    query = _MISSING.format(table, other)
    ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
    first = connection.execute(f"{query} LIMIT {_SHOWN_GROUPS}").fetchall()
    return {"count": count, "first": [group for (group,) in first]}


def _read_references(source: str) -> Iterator[pa.Table]:
    """The groups and texts of the references, a table for each task of their files."""
    names = ["group_id", "reference"]
    try:
        scheme = "" if source.split(":")[0] in SCHEMES else scheme_of(source)
        options = CorpusOptions(
            corpus=f"{scheme}:{source}" if scheme else source,
            article_field="highlights",
            keep_fields="group_id:string",
        )
        tasks = list_tasks(options)
    except UsageError as error:
        reason, *_ = str(error).split(" (--article_field")
        raise UsageError(
            f"--group_references: {reason}; a reference has the fields group_id and "
            "highlights"
        ) from error
    try:
        for task in tasks:
            rows = []
            for record in read_task(task, options):
                if isinstance(record, Article):
                    document = record.document
                    rows.append((document.metadata["group_id"], document.article))
                elif record.reason not in (EMPTY_ARTICLE, MISSING_FIELD):
                    raise DataError(
                        f"--group_references: {record.source_file}, "
                        f"{record.source_position}: {record.detail}; mend that record "
                        "or leave it out"
                    )
            columns = zip(*rows, strict=True) if rows else ((), ())
            arrays = [pa.array(column, pa.string()) for column in columns]
            yield pa.table(arrays, names)
    except FileFailure as failure:
        raise DataError(f"--group_references: {failure}; start again") from failure


def read_group_rows(rows: RowRange, folder: str) -> list[dict[str, Any]]:
    """The rows of groups of a task, as `score_rows` reads those of documents.

    Args:
      rows: the task.
      folder: of the evaluation, with `REFERENCES_FILE`.
    """
    of_task = read_keys_of_task(files.join(folder, REFERENCES_FILE), rows.number)
    references: dict[int, list[str]] = {}
    for each in of_task.to_pylist():
        _, place = task_and_record(each["place"])
        references.setdefault(place, []).append(each["reference"])
    none = dict.fromkeys(("extractive", "abstractive_summary", "truncated"))
    group_rows = []
    for number, row in enumerate(read_rows(rows, GROUP_COLUMNS)):
        first, *others = references.get(number, [""])
        texts = {"reference_summary": first, "other_references": others}
        of_method = {"summaries": {row["method"]: row["summary"]}}
        group_rows.append({**none, **row, **texts, **of_method})
    return group_rows
