"""The data files of an Iceberg table, read and written in batches.

pyiceberg itself holds all rows of a write, and all rows of a file that it reads, in
memory, and writes a null list of structs as an empty list. Here a file is copied batch
by batch, so the memory does not depend on the size of the table or of the run.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    ArrowScan,
    parquet_file_to_data_file,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.utils.properties import property_as_int

from precis.model.errors import UsageError
from precis.pipelines.warehouse.row_keys import NO_KEYS, RowKeys, digest_keys

_BATCH_ROWS = 1024
_READ_AHEAD_BYTES = 4 << 20
# Rows that wait to become row groups, over all files that are being written.
_BUFFERED_BYTES = 64 << 20
_FILE_BYTES = 256 << 20


class TableFiles(NamedTuple):
    """What is needed to read the data files of a table.

    Attributes:
      metadata: of the table.
      io: how it reads and writes files.
      key: the columns that tell its rows apart.
    """

    metadata: TableMetadata
    io: FileIO
    key: Sequence[str]

    def batches(
        self, task: FileScanTask, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a data file that are not deleted, with the field ids of the file.

        Args:
          task: the file.
          columns: the columns to read, those of the key among them; all if None.

        Raises:
          UsageError: columns were renamed since the file was written.
        """
        present = self._present_keys(task) if task.delete_files else None
        with self.io.new_input(task.file.file_path).open() as file:
            parquet = pq.ParquetFile(file, buffer_size=_READ_AHEAD_BYTES)
            self._check_names(task, parquet)
            for batch in parquet.iter_batches(_BATCH_ROWS, columns=columns):
                if present is not None:
                    batch = batch.filter(pa.array(present.mark(batch)))
                yield batch

    def _present_keys(self, task: FileScanTask) -> RowKeys:
        """The keys of the rows that delete files left in a data file.

        Other programs write such files. pyiceberg applies them when it reads, but it
        reads a null list of structs as an empty list, so only keys are read with it.
        """
        schema = self.metadata.schema().select(*self.key)
        scan = ArrowScan(self.metadata, self.io, schema, AlwaysTrue())
        digests = [
            digest_keys(batch, self.key) for batch in scan.to_record_batches([task])
        ]
        return RowKeys(self.key, np.concatenate([NO_KEYS, *digests]))

    def _check_names(self, task: FileScanTask, parquet: pq.ParquetFile) -> None:
        """Refuses a file whose columns are called otherwise than the table's."""
        schema = self.metadata.schema()
        mapping = self.metadata.name_mapping()
        written: Schema = pyarrow_to_schema(parquet.schema_arrow, mapping)
        for field_id in written.field_ids:
            there, here = (
                each.find_column_name(field_id) for each in (written, schema)
            )
            if there != here:
                now = f"is {here!r} now" if here else "is not in the table any more"
                raise UsageError(
                    f"column {there!r} of {task.file.file_path} {now}; rewrite the "
                    "table's data files, as with rewrite_data_files of Spark, or name "
                    "another --table"
                )


class _Buffer:
    """The rows that wait for a row group of one file, and that file."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.tables: list[pa.Table] = []
        self.writer: pq.ParquetWriter | None = None
        self.stream: Any = None


class DataFileWriter:
    """Writes rows to new data files of a table, one set for each partition.

    Nothing of it belongs to the table until a snapshot names the files.
    """

    def __init__(self, table: TableFiles) -> None:
        properties = table.metadata.properties
        self._table = table
        self._partition_columns = partition_columns(
            table.metadata.spec(), table.metadata.schema()
        )
        self._locations = load_location_provider(table.metadata.location, properties)
        self._file_bytes = property_as_int(
            properties, "write.target-file-size-bytes", _FILE_BYTES
        )
        self._compression = properties.get("write.parquet.compression-codec", "zstd")
        self._buffers: dict[Any, _Buffer] = {}
        self._buffered_bytes = 0
        self._paths: list[str] = []

    def write(self, rows: pa.Table) -> None:
        """Takes rows whose schema holds the field ids of the table."""
        for partition, part in self._by_partition(rows):
            buffer = self._buffers.setdefault(
                (partition, str(rows.schema)), _Buffer(rows.schema)
            )
            buffer.tables.append(part)
            self._buffered_bytes += part.nbytes
        if self._buffered_bytes >= _BUFFERED_BYTES:
            self._flush()

    def close(self) -> list[DataFile]:
        """Writes what waits and closes the files.

        Returns:
          The files with their statistics.
        """
        self._flush()
        for buffer in self._buffers.values():
            _end_file(buffer)
        return [
            parquet_file_to_data_file(self._table.io, self._table.metadata, path)
            for path in self._paths
        ]

    def discard(self) -> None:
        """Removes the files, where they will not become a part of the table."""
        for buffer in self._buffers.values():
            _end_file(buffer)
        for path in self._paths:
            self._table.io.delete(path)

    def _by_partition(self, rows: pa.Table) -> Iterator[tuple[Any, pa.Table]]:
        if not self._partition_columns:
            yield (), rows
            return
        columns = rows.select(self._partition_columns)
        for values in (
            columns.group_by(self._partition_columns).aggregate([]).to_pylist()
        ):
            mask = None
            for name, value in values.items():
                column = columns[name]
                equal = column.is_null() if value is None else pc.equal(column, value)
                mask = equal if mask is None else pc.and_(mask, equal)
            yield tuple(values.values()), rows.filter(mask)

    def _flush(self) -> None:
        """Makes a row group of what waits for each file."""
        for buffer in self._buffers.values():
            if not buffer.tables:
                continue
            rows = pa.concat_tables(buffer.tables)
            buffer.tables = []
            if buffer.writer is None:
                self._begin_file(buffer)
            assert buffer.writer is not None
            buffer.writer.write_table(rows, row_group_size=rows.num_rows)
            if buffer.stream.tell() >= self._file_bytes:
                _end_file(buffer)
        self._buffered_bytes = 0

    def _begin_file(self, buffer: _Buffer) -> None:
        path = self._locations.new_data_location(f"{uuid.uuid4()}.parquet")
        self._paths.append(path)
        buffer.stream = self._table.io.new_output(path).create()
        buffer.writer = pq.ParquetWriter(
            buffer.stream, buffer.schema, compression=self._compression
        )


def _end_file(buffer: _Buffer) -> None:
    if buffer.writer is not None:
        buffer.writer.close()
        buffer.stream.close()
    buffer.writer = None


def partition_columns(spec: PartitionSpec, schema: Schema) -> list[str]:
    """The columns that a table is partitioned by.

    Raises:
      UsageError: it is partitioned by something else than the values of columns.
    """
    names = []
    for field in spec.fields:
        name = schema.find_column_name(field.source_id)
        if not isinstance(field.transform, IdentityTransform) or name is None:
            raise UsageError(
                f"the table is partitioned by {field.transform} of {name!r}, and rows "
                "are only written to tables that are partitioned by the values of "
                "columns; name another --table"
            )
        names.append(name)
    return names
