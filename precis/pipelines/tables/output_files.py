"""Reads output files of documents and groups: whole, or by ranges of rows.

Flat columns of `--flat` become nested again, and folders of `--partition_by` become
columns again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.tables.flat_columns import flat_names, is_flat, unflatten
from precis.pipelines.tables.partitions import with_partition
from precis.pipelines.tables.schema import GROUP_SCHEMA, SUMMARY_SCHEMA

_UNPARTITIONED: dict[str, Any] = {}


def read_output_file(
    path: str,
    columns: Sequence[str] | None = None,
    *,
    partition: Mapping[str, Any] = _UNPARTITIONED,
    types: Mapping[str, str] = _UNPARTITIONED,
) -> Iterator[pa.Table]:
    """Reads the rows of an output file, a table for each row group.

    Args:
      path: the path of the file.
      columns: names of nested and plain columns, in order; missing columns are left
          out. If None, all columns are read, the folder's columns last.
      partition: the partition in the file's manifest entry, if any.
      types: the value of `partition_by` in the manifest.
    """
    with files.open_read(path) as opened:
        # Arrow's threads might outlive the command and abort it at its end.
        parquet = pq.ParquetFile(opened, pre_buffer=False)
        for group in range(parquet.num_row_groups):
            rows = read_row_group(parquet, group, columns)
            rows = with_partition(rows, partition, types)
            names = rows.column_names if columns is None else columns
            yield rows.select([name for name in names if name in rows.column_names])


def read_row_group(
    parquet: pq.ParquetFile, group: int, columns: Sequence[str] | None = None
) -> pa.Table:
    """Reads rows of an open output file, without the columns of its folders.

    Args:
      parquet: the open output file.
      group: the number of the row group.
      columns: as for `read_output_file`.
    """
    stored = parquet.schema_arrow
    names = {*(stored.names if columns is None else columns)}
    schema = None
    if is_flat(stored):
        is_of_groups = stored.metadata.get(b"precis.schema") == b"group"
        schema = GROUP_SCHEMA if is_of_groups else SUMMARY_SCHEMA
        wanted = (field for field in schema if field.name in names)
        names.update(*map(flat_names, wanted))
    given = [name for name in stored.names if name in names]
    rows = parquet.read_row_group(group, columns=given, use_threads=False)
    return unflatten(rows, schema) if schema else rows


_ROWS_A_TASK = 1_024
_TASKS_A_ROW_GROUP = 8  # Each task reads the whole row group.


class RowRange(NamedTuple):
    """A task: `rows` rows of a row group of a Parquet file, starting with row `first`.

    `number` is its position among the tasks.
    """

    number: int
    path: str
    group: int
    first: int
    rows: int


def is_pattern(source: str) -> bool:
    """Whether an input is a pattern of Parquet files, not the folder of a run."""
    return source.endswith(".parquet") or bool({*source} & {*"*?["})


def list_ranges(paths: Iterable[str], *, needed: Sequence[str]) -> list[RowRange]:
    """Cuts files into tasks, in order, of about a thousand rows at most, so that one
    large file is still spread over workers.

    Args:
      paths: the paths of Parquet files.
      needed: the columns that each file must have.

    Raises:
      UsageError: a file is not Parquet, or does not have the columns.
    """
    ranges: list[RowRange] = []
    for path in paths:
        with files.open_read(path) as file:
            try:
                parquet = pq.ParquetFile(file)
            except pa.ArrowInvalid as error:
                raise UsageError(f"{path} is not a Parquet file: {error}") from error
            missing = [n for n in needed if n not in parquet.schema_arrow.names]
            if missing:
                raise UsageError(
                    f"{path} has no column {missing[0]!r}; give files written by "
                    "`precis summarize`"
                )
        for group in range(parquet.num_row_groups):
            total = parquet.metadata.row_group(group).num_rows
            size = max(_ROWS_A_TASK, -(-total // _TASKS_A_ROW_GROUP))
            for first in range(0, total, size):
                place = (len(ranges), path, group, first)
                ranges.append(RowRange(*place, min(size, total - first)))
    return ranges


def read_rows(rows: RowRange, columns: Sequence[str] | None) -> list[dict[str, Any]]:
    """Reads the rows of a task, with the given columns or, if None, all."""
    with files.open_read(rows.path) as file:
        table = read_row_group(pq.ParquetFile(file), rows.group, columns)
    return table.slice(rows.first, rows.rows).to_pylist()


def has_reference(row: Mapping[str, Any]) -> bool:
    """Whether a row has a reference to score against."""
    return bool((row["reference_summary"] or "").strip())
