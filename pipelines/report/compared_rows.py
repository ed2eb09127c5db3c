"""Numbers of all rows of a run that is compared with another one, and which of its rows
show another text there.
"""

import numpy as np
import pyarrow as pa

from precis.pipelines.report.columns import (
    NUMBER_COLUMNS,
    concern,
    count_flags,
    keys,
    numbers,
    row_keys,
    shown_numbers,
)

COMPARED_COLUMNS = (*NUMBER_COLUMNS, "summary")
# Measures of the shown summaries, with what the page calls them.
COMPARED_MEASURES = {
    "words": "words",
    "novel_2grams_percent": "novel bigrams %",
    "repetition_rate": "repeated trigrams (share)",
    "mean_log_prob": "mean log-probability",
    "flags": "flags",
}
_WORDS = list(COMPARED_MEASURES).index("words")


class RowNumbers:
    """Numbers of the rows of a run in their order, 40 bytes a row.

    Attributes:
      keys: of the rows, uint64 [N].
      values: the measures of the shown summaries, float32 [N, measures].
      texts: a hash of each shown summary, uint64 [N].
      concerns: as `columns.concern` has it, float32 [N].
    """

    def __init__(self) -> None:
        """Begins without a row."""
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._join(
            np.empty(0, np.uint64),
            np.empty((0, len(COMPARED_MEASURES)), np.float32),
            np.empty(0, np.uint64),
            np.empty(0, np.float32),
        )

    def add(self, table: pa.Table) -> None:
        """Adds the rows of a table with `COMPARED_COLUMNS`."""
        columns = [
            shown_numbers(table, "words"),
            shown_numbers(table, "novel_2grams_percent"),
            shown_numbers(table, "repetition_rate"),
            numbers(table, "abstractive_quality.mean_log_prob"),
            count_flags(table),
        ]
        self._parts.append(
            (
                row_keys(table),
                np.stack(columns, axis=1).astype(np.float32),
                keys(table.column("summary").to_pylist()),
                concern(table).astype(np.float32),
            )
        )

    def finish(self) -> None:
        """Makes arrays of the rows that were added."""
        whole = (self.keys, self.values, self.texts, self.concerns)
        parts = zip(whole, *self._parts, strict=True)
        self._parts = []
        self._join(*map(np.concatenate, parts))

    def _join(
        self,
        row_keys: np.ndarray,
        values: np.ndarray,
        texts: np.ndarray,
        concerns: np.ndarray,
    ) -> None:
        self.keys, self.values = row_keys, values
        self.texts, self.concerns = texts, concerns


def paired_places(this: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the keys stand that stand once in both, [P] for each.

    Args:
      this, other: keys, uint64.
    """
    (my_keys, mine), (other_keys, others) = _once(this), _once(other)
    _, first, second = np.intersect1d(
        my_keys, other_keys, assume_unique=True, return_indices=True
    )
    return mine[first], others[second]


def _once(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The keys that stand once, and their places."""
    kept, places, counts = np.unique(found, return_index=True, return_counts=True)
    return kept[counts == 1], places[counts == 1]


def changed_rows(this: RowNumbers, other: RowNumbers) -> tuple[np.ndarray, int]:
    """The rows of a run that show another text in the other run, and how many rows
    both runs have.

    The rows whose numbers of words differ most come first, by the share of the longer
    text. A row that shows the article itself in one of the runs is among the first.

    Args:
      this, other: the rows of both runs.
    """
    first, second = paired_places(this.keys, other.keys)
    differs = this.texts[first] != other.texts[second]
    mine, others = first[differs], second[differs]
    lengths = this.values[mine, _WORDS], other.values[others, _WORDS]
    with np.errstate(invalid="ignore"):
        change = np.abs(lengths[0] - lengths[1]) / np.maximum(*lengths)
    change = np.nan_to_num(change, nan=1.0)
    return mine[np.lexsort((this.keys[mine], -change))], len(first)
