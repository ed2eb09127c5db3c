"""Reads the parts of a run as rows of the schema, whatever their layout.

A part of --flat has its nested columns again, and a part in a folder of --partition_by
the columns of the folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.tables.flat_columns import flat_names, is_flat, unflatten
from precis.pipelines.tables.partitions import with_partition
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

_UNPARTITIONED: dict[str, Any] = {}


def read_part(
    path: str,
    columns: Sequence[str] | None = None,
    *,
    partition: Mapping[str, Any] = _UNPARTITIONED,
    types: Mapping[str, str] = _UNPARTITIONED,
) -> Iterator[pa.Table]:
    """The rows of a part, a table for each row group.

    Args:
      path: the file.
      columns: the names of nested and plain columns, in order; those that the part does
          not have are left out. All columns if None, those of the folders last.
      partition: the entry of the manifest's description of the part, if it has one.
      types: `partition_by` of the manifest.
    """
    with files.open_read(path) as opened:
        # Threads of Arrow may outlive the command and abort it at its end.
        parquet = pq.ParquetFile(opened, pre_buffer=False)
        for group in range(parquet.num_row_groups):
            rows = with_partition(
                read_row_groups(parquet, [group], columns), partition, types
            )
            if columns is not None:
                rows = rows.select(
                    [name for name in columns if name in rows.schema.names]
                )
            yield rows


def read_row_groups(
    parquet: pq.ParquetFile,
    groups: Sequence[int],
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Rows of an open part, without the columns of its folders.

    Args:
      parquet: the part.
      groups: the numbers of the row groups.
      columns: as in `read_part`.
    """
    stored = parquet.schema_arrow
    if not is_flat(stored):
        if columns is not None:
            columns = [name for name in columns if name in stored.names]
        return parquet.read_row_groups(groups, columns=columns, use_threads=False)
    flat = {field: flat_names(field) for field in SUMMARY_SCHEMA}
    known = {name for names in flat.values() for name in names}
    nested = [
        field
        for field, names in flat.items()
        if (columns is None or field.name in columns) and set(names) <= {*stored.names}
    ]
    # The types that kept fields had before they were flat are not known.
    others = [
        name
        for name in stored.names
        if name not in known and (columns is None or name in columns)
    ]
    wanted = [name for field in nested for name in flat[field]] + others
    rows = parquet.read_row_groups(groups, columns=wanted, use_threads=False)
    restored = unflatten(rows, pa.schema(nested))
    for name in others:
        restored = restored.append_column(rows.schema.field(name), rows.column(name))
    return restored
