"""Parquet files of a job: keys of documents, and the database that joins them.

A key has the place of its document: the number of the task, or of the output file of an
earlier run, in its upper bits, and the number of the record in the lower 32.
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
    """The place of a record."""
    return task << 32 | record


def record_of(place: int) -> int:
    """The record of a place, within its task."""
    return place & 0xFFFFFFFF


@contextlib.contextmanager
def open_database() -> Iterator["duckdb.DuckDBPyConnection"]:
    """An empty database, which is removed at the end of the block.

    What does not fit its memory lies in a temporary folder.
    """
    import duckdb  # Workers that join nothing do without its 40 MB.

    with tempfile.TemporaryDirectory(prefix="precis-keys-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "temp_directory": folder,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(f"{folder}/keys.duckdb", config=config) as connection:
            yield connection


def numbered(tables: Iterable[Any], name: str) -> Iterator[Any]:
    """Tables or record batches with a column that counts their rows, over all of them,
    from 0.
    """
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
    """Adds rows to a table, which is made if it is not there.

    Args:
      connection: of `open_database`.
      table: its name.
      rows: the table `batch` of the query.
      query: what becomes of them.
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
    """Makes a table of the keys in some files.

    Args:
      connection: of `open_database`.
      table: its name.
      schema: of the files.
      paths: of the files.
    """
    insert_rows(connection, table, schema.empty_table())
    for path in paths:
        with files.open_read(path) as file:
            keys = pq.read_table(file, use_threads=False, pre_buffer=False)
        insert_rows(connection, table, keys)


def publish_keys(
    output: str, name: str, batches: pa.RecordBatchReader
) -> PublishedFile:
    """Publishes a file of keys or of rows that wait, a row group for each batch.

    Args:
      output: the folder of the job.
      name: of the file in it.
      batches: of the keys.
    """
    rows = write_parquet(files.join(output, name), batches, batches.schema)
    return describe_file(output, name, rows=rows)


def write_parquet(
    path: str, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> int:
    """Writes a Parquet file with a row group for each batch, and publishes it when it
    is complete.

    Equal batches give equal bytes. Empty batches are left out. All of them have the
    schema.

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
    """The rows of a file that concern a task, by their column `place`."""
    bounds = [("place", ">=", place_of(task, 0)), ("place", "<", place_of(task + 1, 0))]
    with files.open_read(path) as file:
        return pq.read_table(file, filters=bounds, use_threads=False, pre_buffer=False)
