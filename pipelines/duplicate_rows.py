"""Gives each duplicate its row: that of the first document with the same text."""

from collections import Counter, OrderedDict
from typing import Any, NamedTuple

import pyarrow as pa

from precis.pipelines.pieces import read_piece

_OPEN_PIECES = 4  # tasks whose rows are held in memory


class FoundRow(NamedTuple):
    """A table and the position of a row in it."""

    table: pa.Table
    row: int


class RowFinder:
    """Finds rows of pieces by their documents; documents mostly come in order."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._tables: OrderedDict[int, pa.Table | None] = OrderedDict()
        self._rows: dict[int, dict[int, int]] = {}

    def find(self, task: int, record: int) -> FoundRow | None:
        """The row of a document, or None where the document has failed.

        Args:
          task: the document's task.
          record: its number among the records of the task.
        """
        table = self._table(task)
        row = self._rows[task].get(record)
        return None if table is None or row is None else FoundRow(table, row)

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


class NamedRows(NamedTuple):
    """Rows with duplicate_of.

    Attributes:
      rows: the rows.
      without_first: those whose first document has failed, by source file; they are
          duplicates no longer.
    """

    rows: pa.Table
    without_first: Counter[str]


def name_first(rows: pa.Table, finder: RowFinder) -> NamedRows:
    """Fills in duplicate_of: the id of the first document with the same content.

    Args:
      rows: with the link columns of `pieces`.
      finder: finds the rows of the documents that are linked.
    """
    tasks = rows.column("_first_task")
    without_first: Counter[str] = Counter()
    if tasks.null_count == rows.num_rows:
        return NamedRows(rows, without_first)
    sources = rows.column("source_file").to_pylist()
    records = rows.column("_first_record").to_pylist()
    names: list[str | None] = []
    for task, record, source in zip(tasks.to_pylist(), records, sources, strict=True):
        place = None if task is None else finder.find(task, record)
        if place is None:
            names.append(None)
            without_first[source] += task is not None
        else:
            names.append(place.table.column("document_id")[place.row].as_py())
    index = rows.schema.get_field_index("duplicate_of")
    field = rows.schema.field(index)
    filled = rows.set_column(index, field, pa.array(names, field.type))
    return NamedRows(filled, without_first)


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
    """
    tasks = duplicates.column("_copy_task").to_pylist()
    records = duplicates.column("_copy_record").to_pylist()
    places = [finder.find(*link) for link in zip(tasks, records, strict=True)]
    is_found = [place is not None for place in places]
    lost = duplicates.filter(pa.array([not found for found in is_found])).to_pylist()
    duplicates = duplicates.filter(pa.array(is_found))
    copied = [place.table.slice(place.row, 1) for place in places if place is not None]
    if not copied:
        return CopiedRows(schema.empty_table(), lost)
    rows = pa.concat_tables(copied).combine_chunks()
    for name in duplicates.column_names:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), duplicates.column(name))
    return CopiedRows(rows, lost)
