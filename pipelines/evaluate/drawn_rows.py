"""Draws the documents of `--show` at random, in the pass that scores the rows.

Each document has a number by its id and the seed, and the smallest numbers are drawn.
So the draw depends neither on the number of workers nor on how a run is cut into parts,
and the documents of `--show 3` are the first of `--show 20`.
"""

import hashlib
import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.pipelines.tables.row_ranges import RowRange, has_reference

# Beside document_id. Not in files of the first schema.


class DrawnRow(NamedTuple):
    """A row that may be shown; rows are drawn in the order of these tuples.

    Attributes:
      key: the number of its document, in hexadecimal.
      path: its file.
      row: its position in the file.
      document_id: the document.
    """

    key: str
    path: str
    row: int
    document_id: str


def draw_rows(
    rows: Sequence[Mapping[str, Any]], task: RowRange, *, count: int, seed: int
) -> list[DrawnRow]:
    """The rows of a range that may be among those to show.

    Args:
      rows: of the range, with document_id and reference_summary.
      task: the range.
      count: how many rows are drawn of all ranges.
      seed: another seed draws other documents.
    """
    if not count:
        return []
    return heapq.nsmallest(
        count,
        (
            DrawnRow(_key(row, seed), task.path, position, row["document_id"])
            for position, row in enumerate(rows, start=task.first)
            if has_reference(row)
        ),
    )


def _key(row: Mapping[str, Any], seed: int) -> str:
    place = f"{seed} 0 {row['document_id']}"
    return hashlib.sha256(place.encode(errors="replace")).hexdigest()[:16]


def first_drawn(parts: Iterable[Sequence[DrawnRow]], count: int) -> list[DrawnRow]:
    """The rows to show of all ranges, in the order in which they were drawn."""
    return heapq.nsmallest(count, (row for part in parts for row in part))
