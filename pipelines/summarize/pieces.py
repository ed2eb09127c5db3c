"""Pieces: the rows of one task, until they are published as parts of the run.

    _tasks/pieces/00003-written.parquet      rows that this run has computed
    _tasks/pieces/00003-reused.parquet       rows of an earlier run
    _tasks/pieces/00003-duplicates.parquet   documents whose row stands elsewhere

Beside the columns of the summaries, a piece has those of `LINK_COLUMNS`. A duplicate
has no columns but them and those of the document.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.result_files import PublishedFile, describe_file
from precis.pipelines.tables.partitions import Partitioning, check_partitions

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
    "reference_quality",
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


def remove_pieces(output: str, task: int) -> None:
    """Removes the pieces that an earlier try of a task has left."""
    for kind in KINDS:
        files.remove(piece_path(output, task, kind))


class PieceWriter(contextlib.ExitStack):
    """Writes the pieces of one task, which are published when the block ends.

    Attributes:
      rows: how many rows each kind has; a kind without rows has no file.
      partitions: how many rows each partition has, by its key.
    """

    def __init__(self, output: str, task: int, partitioning: Partitioning) -> None:
        super().__init__()
        self.rows = dict.fromkeys(KINDS, 0)
        self.partitions: Counter[str] = Counter()
        self._partitioning = partitioning
        self._output = output
        self._task = task
        self._writers: dict[str, pq.ParquetWriter] = {}

    def write(self, kind: str, table: pa.Table) -> None:
        """Appends rows to a piece.

        Raises:
          DataError: there are too many partitions, or one that makes no folder.
        """
        if not table.num_rows:
            return
        if kind not in self._writers:
            path = piece_path(self._output, self._task, kind)
            file = self.enter_context(files.write_aside(path))
            self._writers[kind] = self.enter_context(
                pq.ParquetWriter(
                    file, table.schema, compression="zstd", write_statistics=False
                )
            )
        self._writers[kind].write_table(table, row_group_size=table.num_rows)
        self.rows[kind] += table.num_rows
        partitions = self._partitioning.count_rows(table)
        for key in partitions.keys() - self.partitions.keys():
            self._partitioning.folder(key)  # refuses a name that is too long
        self.partitions.update(partitions)
        check_partitions(len(self.partitions), self._partitioning.names)

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


def read_piece(output: str, task: int, kind: str) -> Iterator[pa.Table]:
    """The row groups of a piece; none where the task has no such piece."""
    return read_partition(piece_path(output, task, kind), Partitioning(), "[]", (0, 1))


def read_partition(
    path: str, partitioning: Partitioning, key: str, share: tuple[int, int]
) -> Iterator[pa.Table]:
    """The rows of a piece that belong to a part, a table for each row group.

    Args:
      path: of the piece; without that file there are no rows.
      partitioning: of the run.
      key: the partition.
      share: (1, 3) for the second third of the rows.
    """
    if not files.exists(path):
        return
    names = list(partitioning.row_columns)
    with files.open_read(path) as opened:
        parquet = pq.ParquetFile(opened, pre_buffer=False)
        number, parts = share
        begin, end = (
            parquet.metadata.num_rows * position // parts
            for position in (number, number + 1)
        )
        first = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            start, stop = max(begin - first, 0), min(end - first, rows)
            first += rows
            if start >= stop:
                continue
            if names:  # The other columns are read only where there are such rows.
                table = parquet.read_row_group(group, columns=names, use_threads=False)
                if not partitioning.select_rows(table, key).num_rows:
                    continue
            table = parquet.read_row_group(group, use_threads=False)
            yield partitioning.select_rows(table.slice(start, stop - start), key)
