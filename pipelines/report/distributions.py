"""Histograms of the measures of all rows, counted table by table.

Values are counted in many narrow bins, which are joined into some twenty when they are
drawn, over the range where the values lie.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from precis.pipelines.report.columns import numbers

_SYSTEMS = ("extractive", "abstractive", "reference")
_SHOWN_BINS = 24
_TAIL = 0.005


class Measure(NamedTuple):
    """A measure of a summary.

    Attributes:
      field: its name in a quality, or the name of a column.
      title: what the page calls it.
      unit: of the axis.
      low, high: the range that is counted; values outside are counted at its ends.
      bins: how many narrow bins it has.
      is_log: whether the bins are equally wide by the logarithm.
      scale: the values are multiplied by it.
    """

    field: str
    title: str
    unit: str
    low: float
    high: float
    bins: int
    is_log: bool = False
    scale: float = 1.0

    @property
    def edges(self) -> np.ndarray:
        """The edges of the narrow bins, float64 [bins + 1]."""
        if self.is_log:
            return np.geomspace(self.low, self.high, self.bins + 1)
        return np.linspace(self.low, self.high, self.bins + 1)


ARTICLE = "article"
MEASURES = (
    Measure("article_words", "Length of the articles", "words", 1, 1e6, 1200, True),
    Measure("words", "Length of the summaries", "words", 0, 4096, 4096),
    Measure(
        "compression",
        "Compression",
        "article words / summary words",
        0.5,
        5000,
        800,
        True,
    ),
    Measure("novel_2grams_percent", "Novel bigrams", "% of the summary", 0, 100, 400),
    Measure("density", "Extractive density", "words", 0.01, 2000, 1000, True),
    Measure("repetition_rate", "Repeated trigrams", "%", 0, 100, 400, False, 100.0),
    Measure("mean_log_prob", "Confidence", "mean log-probability", -10, 0, 1000),
)


class Histogram:
    """The values of one measure of one system.

    Attributes:
      counts: rows by narrow bin, float64 [bins].
      rows, total: the number of values and their sum.
    """

    def __init__(self, measure: Measure) -> None:
        """Makes an empty histogram."""
        self.measure = measure
        self.counts = np.zeros(measure.bins)
        self.rows = 0
        self.total = 0.0

    def add(self, values: np.ndarray) -> None:
        """Counts values, float64 [N]; NaN is left out."""
        values = values[~np.isnan(values)] * self.measure.scale
        clipped = np.clip(values, self.measure.low, self.measure.high)
        self.counts += np.histogram(clipped, self.measure.edges)[0]
        self.rows += len(values)
        self.total += float(values.sum())

    @property
    def mean(self) -> float:
        """The mean of the values; there must be one."""
        return self.total / self.rows

    def quantile(self, share: float) -> float:
        """The value below which a share of the values lies, to a narrow bin."""
        place = np.searchsorted(np.cumsum(self.counts), share * self.rows)
        return float(self.measure.edges[min(int(place), self.measure.bins)])


class ShownHistogram(NamedTuple):
    """A histogram as it is drawn.

    Attributes:
      measure: what is counted.
      edges: of the bins, float64 [B + 1].
      shares: the share of the rows in each bin in percent, float64 [B] by system.
      systems: the whole histograms by system.
    """

    measure: Measure
    edges: np.ndarray
    shares: dict[str, np.ndarray]
    systems: dict[str, Histogram]


class Distributions:
    """The histograms of a run."""

    def __init__(self) -> None:
        self._histograms: dict[tuple[Measure, str], Histogram] = {}

    def add(self, table: pa.Table) -> None:
        """Counts the rows of a table."""
        for measure in MEASURES:
            for system, name in _columns(measure):
                histogram = self._histograms.setdefault(
                    (measure, system), Histogram(measure)
                )
                histogram.add(numbers(table, name))

    def shown(self) -> list[ShownHistogram]:
        """The histograms that have values."""
        shown = []
        for measure in MEASURES:
            systems = {
                system: histogram
                for (other, system), histogram in self._histograms.items()
                if other is measure and histogram.rows
            }
            if systems:
                shown.append(_shown(measure, systems))
        return shown


def _columns(measure: Measure) -> Iterator[tuple[str, str]]:
    if measure.field == "article_words":
        yield ARTICLE, measure.field
        return
    for system in _SYSTEMS:
        yield system, f"{system}_quality.{measure.field}"


def _shown(measure: Measure, systems: dict[str, Histogram]) -> ShownHistogram:
    """Joins narrow bins; what lies outside the shown range is in the outer bins."""
    first, last = _range([histogram.counts for histogram in systems.values()])
    step = max(1, -(-(last - first) // _SHOWN_BINS))
    starts = np.arange(first, last, step)
    shares = {}
    for system, histogram in systems.items():
        # The last bin reaches to the end.
        joined = np.add.reduceat(histogram.counts, starts)
        joined[0] += histogram.counts[:first].sum()
        shares[system] = 100 * joined / histogram.rows
    edges = measure.edges[np.minimum([*starts, starts[-1] + step], measure.bins)]
    return ShownHistogram(measure, edges, shares, systems)


def _range(counts: Sequence[np.ndarray]) -> tuple[int, int]:
    """The first bin and the one behind the last that hold all but the tails of every
    system.
    """
    firsts, lasts = [], []
    for values in counts:
        shares = np.cumsum(values) / values.sum()
        firsts.append(int(np.searchsorted(shares, _TAIL)))
        lasts.append(int(np.searchsorted(shares, 1 - _TAIL)) + 1)
    return min(firsts), min(max(lasts), len(counts[0]))
