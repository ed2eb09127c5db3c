"""Histograms of the measures of all rows, counted table by table.

Values are counted in many narrow bins, which are joined into some twenty for the page,
over the range where the values lie.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from precis.pipelines.report.rows import numbers

_SYSTEMS = ("extractive", "abstractive", "reference")
_SHOWN_BINS = 24
_TAIL = 0.005
_PERCENT = np.linspace(0, 100, 401)
_COMPRESSION = "Compression, article words / summary words"


class Measure(NamedTuple):
    """A measure of a summary, or of the article.

    Attributes:
      field: its name in a quality, or the name of a column.
      title: on the page, with the unit of the values.
      edges: of the narrow bins, float64 [bins + 1]; values outside are counted in the
          first and last.
      scale: the values are multiplied by it.
    """

    field: str
    title: str
    edges: np.ndarray
    scale: float = 1.0


_WORDS = np.geomspace(1, 1e6, 1201)
# The first is of the article, the others are of each summary.
MEASURES = (
    Measure("article_words", "Length of the articles, words", _WORDS),
    Measure("words", "Length of the summaries, words", np.linspace(0, 4096, 4097)),
    Measure("compression", _COMPRESSION, np.geomspace(0.5, 5000, 801)),
    Measure("novel_2grams_percent", "Novel bigrams, % of the summary", _PERCENT),
    Measure("density", "Extractive density, words", np.geomspace(0.01, 2000, 1001)),
    Measure("repetition_rate", "Repeated trigrams, %", _PERCENT, 100.0),
    Measure("mean_log_prob", "Log-probability, a token", np.linspace(-10, 0, 1001)),
)


class Histogram:
    """The values of one measure of one system.

    Attributes:
      counts: rows by narrow bin, float64 [bins].
      rows: the number of values.
      total: their sum.
    """

    def __init__(self, measure: Measure) -> None:
        """Makes an empty histogram."""
        self.measure = measure
        self.counts = np.zeros(len(measure.edges) - 1)
        self.rows = 0
        self.total = 0.0

    def add(self, values: np.ndarray) -> None:
        """Counts values, float64 [N]; NaN is left out."""
        values = values[~np.isnan(values)] * self.measure.scale
        edges = self.measure.edges
        self.counts += np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        self.rows += len(values)
        self.total += float(values.sum())

    def place(self, share: float) -> int:
        """The narrow bin that a share of the values, from the lowest on, reaches."""
        shares = np.cumsum(self.counts) / self.rows
        return min(int(np.searchsorted(shares, share)), len(shares) - 1)

    def numbers(self) -> list[str]:
        """The mean, the median, and the values that 5 % and 95 % of the rows do not
        exceed, to a narrow bin.
        """
        places = (self.place(share) for share in (0.5, 0.05, 0.95))
        values = [
            self.total / self.rows,
            *(self.measure.edges[each] for each in places),
        ]
        return [
            f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" for value in values
        ]


class Distributions:
    """The histograms of a run."""

    def __init__(self) -> None:
        """Begins without a row."""
        self._histograms: dict[tuple[str, str], Histogram] = {}
        for place, measure in enumerate(MEASURES):
            for system in _SYSTEMS if place else ("article",):
                self._histograms[measure.field, system] = Histogram(measure)

    def add(self, table: pa.Table) -> None:
        """Counts the rows of a table."""
        for (field, system), histogram in self._histograms.items():
            name = field if system == "article" else f"{system}_quality.{field}"
            histogram.add(numbers(table, name))

    def rows(self) -> Iterator[tuple[str, str, list[str], list[int]]]:
        """The table of the page: the measure, the system, its numbers, and the heights
        of the wider bins from 0 to 100.
        """
        for measure in MEASURES:
            systems = {
                system: histogram
                for (field, system), histogram in self._histograms.items()
                if field == measure.field and histogram.rows
            }
            shares = join_bins(list(systems.values())) if systems else []
            highest = max((heights.max() for heights in shares), default=0)
            for (system, histogram), heights in zip(
                systems.items(), shares, strict=True
            ):
                scaled = np.rint(100 * heights / highest).astype(int).tolist()
                yield measure.title, system, histogram.numbers(), scaled


def join_bins(histograms: list[Histogram]) -> list[np.ndarray]:
    """The narrow bins of a measure joined to wider ones over the range of its values.

    Returns:
      The share of the rows in each bin, float64 [B] for each histogram. The outer bins
      hold the tails too.
    """
    first = min(each.place(_TAIL) for each in histograms)
    last = max(each.place(1 - _TAIL) for each in histograms) + 1
    starts = np.arange(first, last, -(-(last - first) // _SHOWN_BINS))
    shares = []
    for histogram in histograms:
        # The last bin reaches to the end.
        joined = np.add.reduceat(histogram.counts, starts)
        joined[0] += histogram.counts[:first].sum()
        shares.append(joined / histogram.rows)
    return shares
