"""`parquet:GLOB`: Parquet files, cut by row group.

Only the needed columns are read.
"""

import os
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model.errors import UsageError
from precis.pipelines.corpus import arrow_rows, listing
from precis.pipelines.corpus.compression import is_damage
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    CorpusFile,
    DeadLetter,
    Place,
    ReadRecord,
    Task,
    unread,
)

# Replaces the key of an Arrow schema that pyarrow cannot read.
_IGNORED = b"ARROW:ignore"


def list_tasks(
    corpus_files: Sequence[CorpusFile],
    options: CorpusOptions,
    schema: pa.Schema | None = None,
) -> list[Task]:
    """Groups row groups into tasks of about `task_bytes`, uncompressed; files with an
    unreadable footer get tasks too.

    Args:
      corpus_files: the files.
      options: how to read them.
      schema: the fields of all files, if some need not have all; default: those of
          each file and of its folders.

    Raises:
      UsageError: no file is Parquet, or a file lacks a field that is needed.
    """
    return arrow_rows.list_tasks(corpus_files, options, "parquet", _read_head, schema)


def _read_head(
    opened: IO[bytes], file: CorpusFile, options: CorpusOptions
) -> arrow_rows.Head:
    parquet = _open_parquet(opened)
    _refuse_unknown(file.path, parquet, options)
    return parquet.schema_arrow, _ranges(parquet.metadata, options)


def _open_parquet(opened: IO[bytes]) -> pq.ParquetFile:
    """Opens a file; ignores its Arrow schema if pyarrow does not know a type in it."""
    settings: dict[str, Any] = {
        "page_checksum_verification": True,
        "coerce_int96_timestamp_unit": "us",
        "arrow_extensions_enabled": True,
    }
    try:
        return pq.ParquetFile(opened, **settings)
    except pa.ArrowNotImplementedError:
        # A file ends with its footer, the footer's length in 4 bytes, and PAR1.
        opened.seek(-8, os.SEEK_END)
        opened.seek(-8 - int.from_bytes(opened.read(4), "little"), os.SEEK_END)
        footer = opened.read().replace(b"ARROW:schema", _IGNORED)
        metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + footer))
        return pq.ParquetFile(opened, metadata=metadata, **settings)


def _refuse_unknown(path: str, parquet: pq.ParquetFile, options: CorpusOptions) -> None:
    """Refuses a needed field that may have a type unknown to pyarrow: Int128 of Polars,
    which Parquet stores as 16 bytes.
    """
    if _IGNORED in (parquet.metadata.metadata or {}):
        types = arrow_rows.field_types(parquet.schema_arrow)
        for name in options.fields.names & types.keys():
            if pa.types.is_fixed_size_binary(types[name]):
                raise UsageError(
                    f"{path}: the field {name!r} has a type that pyarrow does not "
                    "read, such as Int128; write it as a string or a decimal"
                )


def _ranges(
    metadata: pq.FileMetaData, options: CorpusOptions
) -> Iterator[tuple[int, int, int]]:
    def size_of(group: int) -> int:
        return int(metadata.row_group(group).total_byte_size)

    groups = range(metadata.num_row_groups)
    for run in listing.groups_of(groups, size_of, options.task_bytes):
        if any(metadata.row_group(group).num_rows for group in run):
            yield run[0], run[-1] + 1, sum(map(size_of, run))


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task.

    If part of a row group cannot be decoded, its rows from there onwards are lost;
    other row groups are read.
    """
    with open_source(task.paths[0]) as opened:
        parquet = _open_parquet(opened)
        groups = range(task.start, task.stop)
        task_rows = sum(parquet.metadata.row_group(group).num_rows for group in groups)
        rows = 0
        for group in groups:
            for content, raw in _read_group(parquet, group, task, options):
                rows += content.records if isinstance(content, DeadLetter) else 1
                yield ReadRecord(content, rows / task_rows, raw)


def _read_group(
    parquet: pq.ParquetFile, group: int, task: Task, options: CorpusOptions
) -> Iterator[arrow_rows.Row]:
    """Reads the records of a row group, with bytes for rows with a blank article."""
    columns = arrow_rows.columns_of(parquet.schema_arrow, task.fields)
    position, row = f"row group {group} row", 0
    try:
        for batch in parquet.iter_batches(
            arrow_rows.BATCH_ROWS, row_groups=[group], columns=[*columns.values()]
        ):
            yield from arrow_rows.read_batch(
                batch, columns, task, options, position, row
            )
            row += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        if not is_damage(error):
            raise
        lost = parquet.metadata.row_group(group).num_rows - row
        message = str(error).splitlines()[0]
        detail = f"rows {row} to {row + lost - 1} of the row group are lost: {message}"
        place = Place(task.paths[0], f"{position} {row}")
        yield unread(place, "broken_parquet", detail, records=lost), b""
