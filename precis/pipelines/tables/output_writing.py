"""Turns rows into tables, and writes tables as the output files of a task.

A file has statistics of column chunks and pages, a page index, page checksums, and in
its footer metadata about the run. It has no descriptions of columns, which would be a
third of the footer, and no statistics of summaries and lists, which would repeat whole
texts.
"""

import contextlib
import dataclasses
import operator
from collections.abc import Mapping, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.model.isolation import Failure, isolate
from precis.pipelines.run.result_files import DATA_FOLDER, PublishedFile, describe_file
from precis.pipelines.tables.flat_columns import flatten
from precis.pipelines.tables.partitions import OutputLayout
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

WRITE = "write"


def isolated_table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SUMMARY_SCHEMA
) -> tuple[pa.Table, list[Failure | None]]:
    """Converts the rows that fit the schema and contain only finite numbers.

    Returns:
      The table of the rows that can be written, and for each row its failure or None.
    """
    tables: list[pa.Table] = []

    def convert(group: Sequence[Mapping[str, Any]]) -> list[None]:
        table = summary_table(group, schema)
        tables.append(table)  # Called in the order of the rows.
        return [None] * len(group)

    # DataError is not listed: here it means that a row does not fit the schema.
    stops = (UsageError, JobError, OSError)
    failures = isolate(rows, convert, stage=WRITE, stops=stops)
    table = pa.concat_tables(tables or [summary_table([], schema)])
    return table.combine_chunks(), failures


# Text columns that nobody looks up; they and nested columns have no statistics.
_TEXTS = ("summary", "extractive_summary", "abstractive_summary", "reference_summary")
# Rows of a row group are sorted by these columns, so that page statistics are narrow.
SORT_KEY = ("document_id", "source_file", "source_position")


@dataclasses.dataclass
class _OpenFile:
    """An output file that is being written.

    Attributes:
      name: the path in the folder of the run.
      block: a context that publishes the file at its end.
      writer: None before the first row group.
      waiting: the rows for the next row group.
      waiting_bytes: the size of these rows in memory.
      rows: the number of rows already written.
    """

    name: str
    block: contextlib.ExitStack
    writer: pq.ParquetWriter | None = None
    waiting: list[pa.Table] = dataclasses.field(default_factory=list)
    waiting_bytes: int = 0
    rows: int = 0


class OutputWriter(contextlib.ExitStack):
    """Writes the rows of a task: one output file, or one for each partition.

        with OutputWriter(folder, "part-1f2e3d4c-00003.parquet", layout, facts) as out:
            out.write(table)
            out.finish()

    `finish` publishes the output files; none is if the block raises before. Equal rows
    give equal bytes. Without rows there is no file. About one row group is held in
    memory, regardless of the number of partitions.
    """

    def __init__(
        self, output: str, name: str, layout: OutputLayout, facts: Mapping[str, str]
    ) -> None:
        """Stores its arguments.

        Args:
          output: the folder of the run.
          name: the name of the files.
          layout: how rows are stored in files.
          facts: metadata about the run, for the footer.
        """
        super().__init__()
        self._output = output
        self._name = name
        self._layout = layout
        self._facts = facts
        self._open_files: dict[str, _OpenFile] = {}

    def write(self, rows: pa.Table) -> None:
        """Adds rows with all columns."""
        if not rows.num_rows:
            return
        for key, of_partition in self._layout.split(rows):
            output_file = self._open_files.get(key) or self._begin(key)
            output_file.waiting.append(of_partition)
            output_file.waiting_bytes += of_partition.nbytes
        by_size = operator.attrgetter("waiting_bytes")
        while (
            sum(map(by_size, self._open_files.values())) >= self._layout.row_group_bytes
        ):
            self._write_group(max(self._open_files.values(), key=by_size))

    def finish(self) -> list[PublishedFile]:
        """Writes the remaining rows, and publishes the output files."""
        published = []
        for key, output_file in self._open_files.items():
            if output_file.waiting:
                self._write_group(output_file)
            output_file.block.close()
            file = describe_file(self._output, output_file.name, rows=output_file.rows)
            values = self._layout.values(key)
            if values:
                file["partition"] = values
            published.append(file)
        return published

    def _begin(self, key: str) -> _OpenFile:
        # An empty text and a null share a folder.
        values = self._layout.values(key).values()
        empty = "".join(f"-empty{n}" for n, value in enumerate(values) if value == "")
        file = f"{self._name.removesuffix('.parquet')}{empty}.parquet"
        name = files.join(DATA_FOLDER, self._layout.folder(key), file)
        output_file = _OpenFile(name, self.enter_context(contextlib.ExitStack()))
        self._open_files[key] = output_file
        return output_file

    def _write_group(self, output_file: _OpenFile) -> None:
        """Writes the waiting rows of an output file as one sorted row group."""
        table = pa.concat_tables(output_file.waiting).combine_chunks()
        output_file.waiting.clear()
        output_file.waiting_bytes = 0
        table = table.sort_by([(name, "ascending") for name in SORT_KEY])
        schema = self._layout.file_schema
        if output_file.writer is None:
            path = files.join(self._output, output_file.name)
            file = output_file.block.enter_context(files.write_aside(path))
            output_file.writer = output_file.block.enter_context(
                self._open(file, schema)
            )
        stored = table.drop_columns(list(self._layout.partition_types))
        stored = flatten(stored) if self._layout.is_flat else stored
        output_file.writer.write_table(stored, row_group_size=table.num_rows)
        output_file.rows += table.num_rows

    def _open(self, file: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
        plain = [
            field.name
            for field in self._layout.schema
            if field.name in schema.names
            and field.name not in _TEXTS
            and not pa.types.is_nested(field.type)
        ]
        writer = pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_compliant_nested_type=True,
            sorting_columns=[
                pq.SortingColumn(schema.get_field_index(name)) for name in SORT_KEY
            ],
            write_page_index=True,
            write_page_checksum=True,
            # Arrow can read our types without its own schema, 7 KB of a footer, but
            # kept fields may have other types.
            store_schema=bool(self._layout.kept),
            write_statistics=plain,  # pyright: ignore[reportArgumentType]  # Arrow takes names.
        )
        writer.add_key_value_metadata({**schema.metadata, **self._facts})
        return writer
