"""Gives each duplicate its row: that of the first document with the same text."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model.errors import JobError
from precis.pipelines.summarize.pieces import read_piece

_OPEN_PIECES = 4  # tasks whose rows are held in memory


class Taken(NamedTuple):
    """Rows that were found.

    Attributes:
      rows: in the order in which they were asked for; None where there are none.
      positions: which of the places they are; documents that failed have no row.
    """

    rows: pa.Table | None
    positions: list[int]


class RowFinder:
    """Finds rows of pieces by their documents; documents mostly come in order."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._tables: OrderedDict[int, pa.Table | None] = OrderedDict()
        self._rows: dict[int, dict[int, int]] = {}

    def take(
        self, places: Sequence[tuple[int, int] | None], columns: Sequence[str] | None
    ) -> Taken:
        """The rows of documents, read task by task.

        Args:
          places: the task of each document and its number there; None for none.
          columns: of the rows; None for all.
        """
        by_task: dict[int, list[int]] = {}
        for position, place in enumerate(places):
            if place is not None:
                by_task.setdefault(place[0], []).append(position)
        tables: list[pa.Table] = []
        found: list[int] = []
        for task in sorted(by_task):
            table = self._table(task)
            if table is None:
                continue
            rows = self._rows[task]
            here = [n for n in by_task[task] if _record(places[n]) in rows]
            if not here:
                continue
            chosen = table if columns is None else table.select(columns)
            tables.append(chosen.take([rows[_record(places[n])] for n in here]))
            found += here
        if not found:
            return Taken(None, [])
        order = sorted(range(len(found)), key=found.__getitem__)
        rows_of_all = pa.concat_tables(tables).take(order).combine_chunks()
        return Taken(rows_of_all, sorted(found))

    def _table(self, task: int) -> pa.Table | None:
        if task not in self._tables:
            tables = [
                table
                for kind in ("written", "reused")
                for table in read_piece(self._output, task, kind)
            ]
            joined = pa.concat_tables(tables) if tables else None
            self._tables[task] = joined
            records = joined.column("_record").to_pylist() if joined else []
            self._rows[task] = {record: row for row, record in enumerate(records)}
            if len(self._tables) > _OPEN_PIECES:
                oldest, _ = self._tables.popitem(last=False)
                del self._rows[oldest]
        self._tables.move_to_end(task)
        return self._tables[task]


def _record(place: tuple[int, int] | None) -> int:
    assert place is not None
    return place[1]


class NamedRows(NamedTuple):
    """Rows with duplicate_of.

    Attributes:
      rows: the rows.
      without_first: those whose first document has failed, by source file; they are
          duplicates no longer. First those that this run has computed, then those of
          earlier runs.
    """

    rows: pa.Table
    without_first: tuple[Counter[str], Counter[str]]


def name_first(rows: pa.Table, finder: RowFinder) -> NamedRows:
    """Fills in duplicate_of: the id of the first document with the same content.

    Args:
      rows: with the link columns of `pieces`.
      finder: finds the rows of the documents that are linked.
    """
    without_first: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    if rows.column("_first_task").null_count == rows.num_rows:
        return NamedRows(rows, without_first)
    places = _places(rows, "first")
    taken = finder.take(places, ["document_id"])
    names: list[str | None] = [None] * rows.num_rows
    if taken.rows is not None:
        ids = taken.rows.column("document_id").to_pylist()
        for position, name in zip(taken.positions, ids, strict=True):
            names[position] = name
    sources = rows.column("source_file").to_pylist()
    reused = rows.column("reused_from").to_pylist()
    for position, place in enumerate(places):
        if place is not None and names[position] is None:
            without_first[reused[position] is not None][sources[position]] += 1
    index = rows.schema.get_field_index("duplicate_of")
    field = rows.schema.field(index)
    filled = rows.set_column(index, field, pa.array(names, field.type))
    return NamedRows(filled, without_first)


def _places(rows: pa.Table, link: str) -> list[tuple[int, int] | None]:
    tasks = rows.column(f"_{link}_task").to_pylist()
    records = rows.column(f"_{link}_record").to_pylist()
    return [
        None if task is None else (task, record)
        for task, record in zip(tasks, records, strict=True)
    ]


class CopiedRows(NamedTuple):
    """Duplicates with the columns of the documents that they repeat.

    Attributes:
      rows: the rows, with all columns.
      lost: the columns of duplicates for which there is no row: their document failed.
    """

    rows: pa.Table
    lost: list[dict[str, Any]]


def copy_rows(duplicates: pa.Table, finder: RowFinder, schema: pa.Schema) -> CopiedRows:
    """Gives each duplicate the row of the first document with the same text.

    Args:
      duplicates: a piece of duplicates.
      finder: finds the rows.
      schema: of the rows, with the link columns.

    Raises:
      JobError: a row is of another content.
    """
    taken = finder.take(_places(duplicates, "copy"), None)
    is_found = np.zeros(duplicates.num_rows, bool)
    is_found[taken.positions] = True
    lost = duplicates.filter(pa.array(~is_found)).to_pylist()
    if taken.rows is None:
        return CopiedRows(schema.empty_table(), lost)
    rows = taken.rows
    duplicates = duplicates.filter(pa.array(is_found)).combine_chunks()
    if not rows.column("content_sha256").equals(duplicates.column("content_sha256")):
        raise JobError(
            "a document and the one that it repeats have other contents; this is a "
            "defect of precis, please report it"
        )
    for name in duplicates.column_names:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), duplicates.column(name))
    return CopiedRows(rows, lost)
