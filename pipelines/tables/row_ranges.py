"""Ranges of rows of Parquet files, the tasks of `precis evaluate`.

This file finds the Parquet files, cuts them into ranges, and reads one range.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.result_files import DATA_FOLDER, SUCCESS_FILE, check_parts
from precis.pipelines.tables.part_files import read_row_groups

_ROWS_A_TASK = 1_024
_TASKS_A_ROW_GROUP = 8  # Each of them reads the whole row group.


class RowRange(NamedTuple):
    """One task: `rows` rows of a Parquet file from row `first` on.

    `number` is its position among the tasks.
    """

    number: int
    path: str
    first: int
    rows: int


def is_pattern(source: str) -> bool:
    """Whether an input names Parquet files and not the folder of a run."""
    return source.endswith(".parquet") or any(
        character in source for character in "*?["
    )


def parquet_files(source: str) -> list[str]:
    """The Parquet files of a finished run, which are whole, or of a pattern; sorted.

    Raises:
      UsageError: no such files, no run, or a run that has not finished.
      DataError: a file of the run is missing or damaged.
    """
    if is_pattern(source):
        pattern = source
        paths = files.glob(pattern)
    else:
        pattern = files.join(source, DATA_FOLDER, "**", "*.parquet")
        _check_finished_run(source, pattern)
        paths = check_parts(source)
    if not paths:
        raise UsageError(f"no file matches {pattern}")
    return paths


def _check_finished_run(folder: str, pattern: str) -> None:
    # Only this file is asked for by its name; lists of an object store may be late.
    if files.exists(files.join(folder, SUCCESS_FILE)):
        return
    if not files.exists(folder):
        raise UsageError(
            f"{folder} does not exist; give the --output of `precis summarize`"
        )
    if not any(
        files.exists(files.join(folder, name)) for name in (TASKS_FOLDER, DATA_FOLDER)
    ):
        raise UsageError(
            f"{folder} is no run: it has no folder `{DATA_FOLDER}`; "
            "give the --output of `precis summarize`"
        )
    raise UsageError(
        f"the run {folder} has not finished: it has no _SUCCESS; run the same "
        "`precis summarize` again to finish it, or score what there is with "
        f"--input '{pattern}' --output DIR"
    )


def list_ranges(paths: Iterable[str], *, needed: Sequence[str]) -> list[RowRange]:
    """The tasks, in order: about a thousand rows each, so that one large file is still
    spread over workers.

    Args:
      paths: Parquet files.
      needed: columns that each must have.

    Raises:
      UsageError: a file that is not Parquet, or not Parquet of summaries.
    """
    ranges: list[RowRange] = []
    for path in paths:
        with files.open_read(path) as file:
            parquet = _open_parquet(file, path, needed)
            total = parquet.metadata.num_rows
            largest_group = max(_row_group_sizes(parquet), default=0)
        size = max(_ROWS_A_TASK, -(-largest_group // _TASKS_A_ROW_GROUP))
        for first in range(0, total, size):
            ranges.append(RowRange(len(ranges), path, first, min(size, total - first)))
    return ranges


def _open_parquet(file: IO[bytes], path: str, needed: Sequence[str]) -> pq.ParquetFile:
    try:
        parquet = pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path} is no Parquet file: {error}") from error
    for name in needed:
        if name not in parquet.schema_arrow.names:
            raise UsageError(
                f"{path} has no column {name!r}; "
                "give files written by `precis summarize`"
            )
    return parquet


def read_rows(rows: RowRange, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a task, with those of the columns that the file has."""
    return read_table(rows, columns).to_pylist()


def read_table(rows: RowRange, columns: Sequence[str]) -> pa.Table:
    """The rows of a task as a table."""
    with files.open_read(rows.path) as file:
        parquet = pq.ParquetFile(file)
        ends = np.cumsum(_row_group_sizes(parquet))
        places = [rows.first, rows.first + rows.rows - 1]
        first, last = np.searchsorted(ends, places, side="right").tolist()
        table = read_row_groups(parquet, list(range(first, last + 1)), columns)
    start = rows.first - (int(ends[first - 1]) if first else 0)
    return table.slice(start, rows.rows)


def _row_group_sizes(parquet: pq.ParquetFile) -> list[int]:
    metadata = parquet.metadata
    return [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]


def has_reference(row: Mapping[str, Any]) -> bool:
    """Whether a row can be scored."""
    return bool((row["reference_summary"] or "").strip())
