"""Pieces: the rows of one task, until they are published as parts of the run.

    _tasks/pieces/00003-written.parquet      rows that this run has computed
    _tasks/pieces/00003-reused.parquet       rows of an earlier run
    _tasks/pieces/00003-duplicates.parquet   documents whose row stands elsewhere

Beside the columns of the summaries, a piece has those of `LINK_COLUMNS`. A duplicate
has no columns but them and those of the document.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.job import TASKS_FOLDER
from precis.pipelines.tasks import PublishedFile, describe_file

KINDS = ("written", "reused", "duplicates")

LINK_COLUMNS = (
    # The number of the document among the records of its task.
    pa.field("_record", pa.int32(), nullable=False),
    # The first document with the same content; null where it is the first.
    pa.field("_first_task", pa.int32()),
    pa.field("_first_record", pa.int32()),
    # The document whose row holds for this one; null where it has its own.
    pa.field("_copy_task", pa.int32()),
    pa.field("_copy_record", pa.int32()),
)
# The columns of a row that belong to the document and not to its content.
DOCUMENT_COLUMNS = (
    "document_id",
    "document_id_repeat",
    "split",
    "source_file",
    "source_position",
    "content_sha256",
    "reference_summary",
)


def piece_schema(summaries: pa.Schema) -> pa.Schema:
    """The schema of rows with a summary.

    Args:
      summaries: the schema of the run.
    """
    return pa.schema([*summaries, *LINK_COLUMNS])


def duplicate_schema(summaries: pa.Schema, kept: Sequence[str]) -> pa.Schema:
    """The schema of duplicates.

    Args:
      summaries: the schema of the run.
      kept: the names of the columns that travel along from the source.
    """
    names = (*DOCUMENT_COLUMNS, *kept)
    return pa.schema([*(summaries.field(name) for name in names), *LINK_COLUMNS])


def piece_path(output: str, task: int, kind: str) -> str:
    """Where a piece lies while the job runs."""
    return files.join(output, TASKS_FOLDER, "pieces", f"{task:05d}-{kind}.parquet")


class PieceWriter(contextlib.ExitStack):
    """Writes the pieces of one task, which are published when the block ends.

    Attributes:
      rows: how many rows each kind has; a kind without rows has no file.
    """

    def __init__(self, output: str, task: int) -> None:
        super().__init__()
        self.rows = dict.fromkeys(KINDS, 0)
        self._output = output
        self._task = task
        self._writers: dict[str, pq.ParquetWriter] = {}

    def write(self, kind: str, table: pa.Table) -> None:
        """Appends rows to a piece."""
        if not table.num_rows:
            return
        if kind not in self._writers:
            path = piece_path(self._output, self._task, kind)
            file = self.enter_context(files.write_aside(path))
            self._writers[kind] = self.enter_context(
                pq.ParquetWriter(file, table.schema, compression="zstd")
            )
        self._writers[kind].write_table(table, row_group_size=table.num_rows)
        self.rows[kind] += table.num_rows

    def describe(self) -> list[PublishedFile]:
        """The files; they are there only after the block."""
        prefix = files.join(self._output, "")
        return [
            describe_file(
                self._output,
                piece_path(self._output, self._task, kind).removeprefix(prefix),
                rows=self.rows[kind],
            )
            for kind in KINDS
            if self.rows[kind]
        ]


def read_piece(
    output: str, task: int, kind: str, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The row groups of a piece; none where the task has no such piece."""
    path = piece_path(output, task, kind)
    if not files.exists(path):
        return
    with files.open_read(path) as opened:
        parquet = pq.ParquetFile(opened, pre_buffer=False)
        for group in range(parquet.num_row_groups):
            names: Any = None if columns is None else list(columns)
            yield parquet.read_row_group(group, columns=names, use_threads=False)
