"""Chooses the rows that are on the page: of two runs some that differ, the worst, and a
random sample of the others.

Rows are numbered in the order of the parts. While they are counted, only as many
candidates are kept as the page may show, so that memory does not grow with the run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.pipelines.report.columns import concern, row_keys


class ChosenRow(NamedTuple):
    """A row that is on the page.

    Attributes:
      number: its position among all rows of the run.
      concern: as `columns.concern` has it.
      is_drawn: whether it was drawn at random and is not among the worst.
      is_changed: whether it is there because another run shows another text.
    """

    number: int
    concern: float
    is_drawn: bool
    is_changed: bool = False


class RowChoice:
    """Collects candidates, table by table."""

    def __init__(self, count: int) -> None:
        """Stores its arguments.

        Args:
          count: the rows to choose, at most.
        """
        self._count = count
        self._rows = 0
        self._worst = _Candidates()
        self._drawn = _Candidates()

    def add(self, table: pa.Table) -> None:
        """Adds the rows that follow those of the last call."""
        if not table.num_rows:
            return
        numbers = np.arange(self._rows, self._rows + table.num_rows)
        added = _Candidates(numbers, concern(table), row_keys(table))
        self._rows += table.num_rows
        worst = self._worst.with_rows(added)
        self._worst = worst.first(
            np.lexsort((worst.keys, -worst.concerns)), self._count
        )
        drawn = self._drawn.with_rows(added)
        self._drawn = drawn.first(np.argsort(drawn.keys, kind="stable"), self._count)

    def rows(self, changed: Sequence[ChosenRow] = ()) -> list[ChosenRow]:
        """The chosen rows, the worst first.

        Args:
          changed: rows that are among them in any case where not all rows are.
        """
        worst = list(self._worst)
        if self._rows <= self._count:
            return [ChosenRow(number, value, False) for number, value in worst]
        taken = {row.number for row in changed}
        count = self._count - len(taken)
        worst = [row for row in worst if row[0] not in taken][: -(-count // 2)]
        taken |= {number for number, _ in worst}
        others = [row for row in self._drawn if row[0] not in taken]
        others = others[: count - len(worst)]
        chosen = [ChosenRow(number, value, False) for number, value in worst]
        drawn = [ChosenRow(number, value, True) for number, value in others]
        whole = [*changed, *chosen, *drawn]
        return sorted(whole, key=lambda row: (-row.concern, row.number))


class _Candidates:
    """Rows by number, concern and key, arrays [N] each."""

    def __init__(
        self,
        numbers: np.ndarray | None = None,
        concerns: np.ndarray | None = None,
        keys: np.ndarray | None = None,
    ) -> None:
        self.numbers = np.empty(0, int) if numbers is None else numbers
        self.concerns = np.empty(0) if concerns is None else concerns
        self.keys = np.empty(0, np.uint64) if keys is None else keys

    def with_rows(self, other: "_Candidates") -> "_Candidates":
        return _Candidates(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.concerns, other.concerns]),
            np.concatenate([self.keys, other.keys]),
        )

    def first(self, order: np.ndarray, count: int) -> "_Candidates":
        kept = order[:count]
        return _Candidates(self.numbers[kept], self.concerns[kept], self.keys[kept])

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.numbers.tolist(), self.concerns.tolist(), strict=True)


def take_rows(
    tables: Iterable[pa.Table], chosen: Iterable[ChosenRow]
) -> dict[int, dict[str, Any]]:
    """The chosen rows of a run by their number.

    Args:
      tables: of all rows, in their order.
      chosen: the rows.
    """
    wanted = np.sort(np.array([row.number for row in chosen], int))
    taken: dict[int, dict[str, Any]] = {}
    first = 0
    for table in tables:
        low, high = np.searchsorted(wanted, [first, first + table.num_rows])
        of_table = wanted[low:high]
        rows = table.take(of_table - first).to_pylist() if len(of_table) else []
        taken.update(zip(of_table.tolist(), rows, strict=True))
        first += table.num_rows
    return taken


def scores_of_rows(
    rows: Sequence[Mapping[str, Any]], tables: Iterable[pa.Table]
) -> list[dict[str, float]]:
    """ROUGE-1 by system of each row.

    Scores have the id of a document alone, so a row has none where its id was scored
    more than once in the run.

    Args:
      rows: of the run.
      tables: the scores of all its rows.
    """
    ids = [row["document_id"] for row in rows]
    scores: dict[str, dict[str, float]] = {name: {} for name in ids}
    repeated = set()
    for table in tables:
        columns = table.select(["document_id", "system", "rouge1"]).to_pydict()
        for name, system, value in zip(*columns.values(), strict=True):
            if name not in scores or value is None:
                continue
            if system in scores[name]:
                repeated.add(name)
            scores[name][system] = value
    return [
        scores[row["document_id"]]
        if row["reference_summary"] and row["document_id"] not in repeated
        else {}
        for row in rows
    ]
