"""Parquet files of document keys, and the database that joins them.

The place of a document is a number: the task in the upper bits, and the record number
in the lower 32.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.run.result_files import PublishedFile, describe_file

if TYPE_CHECKING:
    import duckdb

ROWS_AT_ONCE = 10_000
_MEMORY = "512MB"


def place_of(task: int, record: int) -> int:
    """The place of a record, as a number."""
    return task << 32 | record


def record_of(place: int) -> int:
    """The record number of a place, within its task."""
    return place & 0xFFFFFFFF


@contextlib.contextmanager
def open_database() -> Iterator["duckdb.DuckDBPyConnection"]:
    """Opens an empty database, which is removed at the end of the block.

    Data that does not fit its memory goes to a temporary folder.
    """
    import duckdb  # 40 MB that workers which join nothing do not need.

    with tempfile.TemporaryDirectory(prefix="precis-keys-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "temp_directory": folder,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(f"{folder}/keys.duckdb", config=config) as connection:
            # The database is removed, so nothing is written to it at the end.
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            yield connection


def numbered(tables: Iterable[Any], name: str) -> Iterator[Any]:
    """Adds a column to tables or record batches that numbers all their rows from 0."""
    first = 0
    for table in tables:
        numbers = pa.array(range(first, first := first + len(table)), pa.int64())
        yield table.append_column(name, numbers)


def insert_rows(
    connection: "duckdb.DuckDBPyConnection",
    table: str,
    rows: pa.Table,
    query: str = "SELECT * FROM batch",
) -> None:
    """Adds rows to a table, which is created if it does not exist.

    Args:
      connection: a connection from `open_database`.
      table: the name of the table.
      rows: the rows, which the query calls `batch`.
      query: the query that gives the rows to add.
    """
    connection.register("batch", rows)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} AS {query} LIMIT 0")
    connection.execute(f"INSERT INTO {table} {query}")


def load_keys(
    connection: "duckdb.DuckDBPyConnection",
    table: str,
    schema: pa.Schema,
    paths: Iterable[str],
) -> None:
    """Creates a table from the keys in some files.

    Args:
      connection: a connection from `open_database`.
      table: the name of the table.
      schema: the schema of the files.
      paths: the paths of the files.
    """
    insert_rows(connection, table, schema.empty_table())
    for path in paths:
        with files.open_read(path) as file:
            keys = pq.read_table(file, use_threads=False, pre_buffer=False)
        insert_rows(connection, table, keys)


def publish_keys(
    output: str, name: str, batches: pa.RecordBatchReader
) -> PublishedFile:
    """Publishes a file of keys or of waiting rows, with a row group for each batch.

    Args:
      output: the output folder of the job.
      name: the name of the file in the folder.
      batches: the keys or rows.
    """
    rows = write_parquet(files.join(output, name), batches, batches.schema)
    return describe_file(output, name, rows=rows)


def write_parquet(
    path: str, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> int:
    """Writes a Parquet file with a row group for each batch, and publishes it when it
    is complete.

    Equal batches give equal bytes. Empty batches are left out. All batches must have
    the schema.

    Returns:
      The number of rows.
    """
    rows = 0
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", use_compliant_nested_type=True
        ) as writer,
    ):
        for batch in batches:
            if batch.num_rows:
                writer.write(batch, row_group_size=batch.num_rows)
                rows += batch.num_rows
    return rows


def read_keys_of_task(path: str, task: int) -> pa.Table:
    """Reads the rows of a file that belong to a task, by their column `place`."""
    bounds = [("place", ">=", place_of(task, 0)), ("place", "<", place_of(task + 1, 0))]
    with files.open_read(path) as file:
        return pq.read_table(file, filters=bounds, use_threads=False, pre_buffer=False)
