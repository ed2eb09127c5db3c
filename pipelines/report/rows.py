"""The rows of a run that are on the page: the worst, and a random sample of the others.

Rows are numbered in the order of the parts, and judged by a value of each: of a run
with a network the log-probability per token of the shown summary, of other runs ROUGE-1
where they have been evaluated. Among about equal values the number of quality flags
decides. While rows are counted, only as many candidates are kept as the page may show,
so that memory does not grow with the run.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precis.model.quality.flags import ABSTRACTIVE, SHORT_SOURCE

# What the page reads of all rows, and not of the documents on it alone.
NUMBER_COLUMNS = (
    "document_id",
    "content_sha256",
    "article_words",
    "summary_method",
    "quality_flags",
    "extractive_quality",
    "abstractive_quality",
    "reference_quality",
)
BEST_ROWS = 3
_CANDIDATE = np.dtype(
    [("number", "i8"), ("value", "f8"), ("flags", "i8"), ("key", "u8")]
)


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column, or a field of a struct as in `abstractive_quality.words`: float64 [N].

    It is all NaN where the table has no such column or field.
    """
    column, _, field = name.partition(".")
    if column not in table.column_names:
        return np.full(table.num_rows, np.nan)
    values = table.column(column).combine_chunks()
    if field:
        if field not in {child.name for child in values.type}:
            return np.full(table.num_rows, np.nan)
        values = pc.struct_field(values, field)
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))


def count_flags(table: pa.Table) -> np.ndarray:
    """The flags of the shown summaries, int64 [N].

    `short_source` is left out: such a summary is the article itself.
    """
    flags = table.column("quality_flags").combine_chunks()
    rows = pc.list_parent_indices(flags).to_numpy(zero_copy_only=False).astype(int)
    is_counted = pc.not_equal(flags.flatten(), SHORT_SOURCE)
    counted = rows[is_counted.to_numpy(zero_copy_only=False)]
    return np.bincount(counted, minlength=table.num_rows)


def log_probabilities(table: pa.Table) -> np.ndarray:
    """Of the tokens of each shown summary, their mean: float64 [N]; NaN where another
    text than that of the network is shown.
    """
    is_written = pc.equal(table.column("summary_method"), ABSTRACTIVE)
    written = is_written.combine_chunks().to_numpy(zero_copy_only=False)
    return np.where(
        written, numbers(table, "abstractive_quality.mean_log_prob"), np.nan
    )


class OuterScores:
    """The lowest and the highest ROUGE-1 of a system, x100, by document_id."""

    def __init__(self, tables: Iterable[pa.Table], system: str, count: int) -> None:
        """Reads the scores of all rows and keeps some.

        Args:
          tables: of the evaluation.
          system: whose scores count.
          count: how many of the lowest are kept, and how many of the highest.
        """
        kept: dict[str, float] = {}
        for table in tables:
            of_system = table.filter(
                pc.and_(pc.equal(table["system"], system), pc.is_valid(table["rouge1"]))
            )
            ids, values = of_system["document_id"], of_system["rouge1"]
            kept.update(zip(ids.to_pylist(), values.to_pylist(), strict=True))
            if len(kept) > 2 * count:
                ordered = sorted(kept.items(), key=lambda item: item[1])
                kept = dict([*ordered[:count], *ordered[-count:]])
        self._kept = kept

    def of(self, table: pa.Table) -> np.ndarray:
        """The scores of the rows of a table, float64 [N]; NaN where none is kept."""
        ids = table.column("document_id").to_pylist()
        return np.array([100 * self._kept.get(name, np.nan) for name in ids])


class RowChoice:
    """Collects candidates, table by table."""

    def __init__(self, count: int) -> None:
        """Stores its arguments.

        Args:
          count: the rows to choose, at most.
        """
        self._count = count
        self._rows = 0
        self._worst = self._best = self._drawn = np.empty(0, _CANDIDATE)

    def add(self, table: pa.Table, values: np.ndarray) -> None:
        """Adds the rows that follow those of the last call.

        Args:
          table: with `NUMBER_COLUMNS`.
          values: by which the rows are judged, float64 [N]; NaN for none.
        """
        rows = np.empty(table.num_rows, _CANDIDATE)
        rows["number"] = np.arange(self._rows, self._rows + table.num_rows)
        rows["value"], rows["flags"] = values, count_flags(table)
        rows["key"] = _keys(table)
        self._rows += table.num_rows
        self._worst = np.concatenate([self._worst, rows])
        self._worst = self._worst[_worst_first(self._worst)][: self._count]
        with_value = rows[~np.isnan(rows["value"])]
        self._best = np.concatenate([self._best, with_value])
        order = np.lexsort((-self._best["value"], self._best["flags"]))
        self._best = self._best[order][:BEST_ROWS]
        self._drawn = np.concatenate([self._drawn, rows])
        order = np.argsort(self._drawn["key"], kind="stable")
        self._drawn = self._drawn[order][: self._count]

    def best(self) -> list[int]:
        """The numbers of the chosen rows with fewest flags and the highest values."""
        chosen = self.rows()
        return [number for number in self._best["number"].tolist() if number in chosen]

    def rows(self) -> dict[int, bool]:
        """The numbers of the chosen rows, the worst first and the best among them, and
        whether each was drawn at random.
        """
        chosen, drawn = self._worst, self._drawn[:0]
        if self._rows > self._count:
            chosen = chosen[: -(-self._count // 2)]
            is_new = ~np.isin(self._best["number"], chosen["number"])
            chosen = np.concatenate([chosen, self._best[is_new]])[: self._count]
            others = ~np.isin(self._drawn["number"], chosen["number"])
            drawn = self._drawn[others][: self._count - len(chosen)]
        whole = np.concatenate([chosen, drawn])
        order = _worst_first(whole)
        is_drawn = order >= len(chosen)
        return dict(
            zip(whole["number"][order].tolist(), is_drawn.tolist(), strict=True)
        )


def _worst_first(rows: np.ndarray) -> np.ndarray:
    """The order by value in steps of a tenth, flags, and number."""
    steps = np.nan_to_num(np.round(rows["value"], 1), nan=np.inf)
    return np.lexsort((rows["number"], -rows["flags"], steps))


def _keys(table: pa.Table) -> np.ndarray:
    """A key of document_id and content_sha256 for each row, uint64 [N]; keys are
    equally distributed.
    """
    ids = table.column("document_id").to_pylist()
    contents = table.column("content_sha256").to_pylist()
    digests = [
        hashlib.sha256(f"{text} {name}".encode(errors="replace")).digest()
        for text, name in zip(contents, ids, strict=True)
    ]
    return np.array([int.from_bytes(each[:8], "little") for each in digests], "u8")


def take_rows(tables: Iterable[pa.Table], wanted: Iterable[int]) -> dict[int, Any]:
    """Rows of a run by their number.

    Args:
      tables: of all rows, in their order.
      wanted: the numbers of the rows.
    """
    ordered = np.sort(np.fromiter(wanted, int))
    taken: dict[int, Any] = {}
    first = 0
    for table in tables:
        low, high = np.searchsorted(ordered, [first, first + table.num_rows])
        of_table = ordered[low:high]
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
    scores: dict[str, dict[str, float]] = {row["document_id"]: {} for row in rows}
    repeated = set()
    for table in tables:
        columns = table.select(["document_id", "system", "rouge1"]).to_pydict()
        for name, system, value in zip(*columns.values(), strict=True):
            if name in scores and value is not None:
                if system in scores[name]:
                    repeated.add(name)
                scores[name][system] = value
    return [
        scores[row["document_id"]]
        if row["reference_summary"] and row["document_id"] not in repeated
        else {}
        for row in rows
    ]
