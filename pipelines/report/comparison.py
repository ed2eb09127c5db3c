"""Two runs side by side: paired differences over the documents that both have.

A document is the same in both runs by its document_id and content_sha256. Scores
of an evaluation have the id alone, so documents with a repeated id are left out there.
All rows are compared; only numbers are kept of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precis.model.bootstrap import bootstrap_intervals
from precis.model.text.words import words
from precis.pipelines.report.columns import keys, numbers
from precis.pipelines.report.compared_rows import (
    COMPARED_MEASURES,
    RowNumbers,
    paired_places,
)
from precis.pipelines.report.reported_run import ReportedRun

COMPARED_SCORES = ("rouge1", "rouge2", "rougeLsum")


class Difference(NamedTuple):
    """A measure of two runs over the same rows.

    Attributes:
      name: the system or the measure.
      measure: such as `rouge1`.
      rows: the rows that both runs have a value for.
      mean, other_mean: of this run and of the other one.
      difference, low, high: this less the other: its mean and interval.
    """

    name: str
    measure: str
    rows: int
    mean: float
    other_mean: float
    difference: float
    low: float
    high: float

    @property
    def is_zero(self) -> bool:
        """Whether the rows are equal in both runs."""
        return self.low == self.high == 0

    @property
    def touches_zero(self) -> bool:
        """Whether the interval holds zero."""
        return self.low <= 0 <= self.high


def compare_measures(this: RowNumbers, other: RowNumbers) -> list[Difference]:
    """The differences of the measures of the shown summaries."""
    mine, others = _paired((this.keys, this.values), (other.keys, other.values))
    found = [
        _difference("shown summary", title, mine[:, column], others[:, column])
        for column, title in enumerate(COMPARED_MEASURES.values())
    ]
    return [difference for difference in found if difference]


def compare_scores(
    this: ReportedRun, other: ReportedRun
) -> dict[str, list[Difference]]:
    """The differences of ROUGE by system, for the systems that both runs have.

    Systems come in the order of the evaluation of this run and by its names; those
    without a document in common are left out.
    """
    if this.evaluation is None or other.evaluation is None:
        return {}
    of_other = {row["method"] for row in other.evaluation["systems"]}
    found = {}
    for row in this.evaluation["systems"]:
        system = row["method"]
        if system not in of_other:
            continue
        # One system at a time, so that no more than its scores are in memory.
        first, second = _paired(_scores(this, system), _scores(other, system))
        differences = [
            _difference(row["system"], measure, first[:, column], second[:, column])
            for column, measure in enumerate(COMPARED_SCORES)
        ]
        if all(differences):
            found[row["system"]] = [each for each in differences if each]
    return found


def _scores(run: ReportedRun, system: str) -> tuple[np.ndarray, np.ndarray]:
    """The scores of a system: keys of ids, uint64 [N], and float32 [N, 3]."""
    ids, values = [np.empty(0, np.uint64)], [np.empty((0, 3), np.float32)]
    for whole in run.scores():
        is_wanted = pc.and_(
            pc.equal(whole.column("system"), system), pc.is_valid(whole["rouge1"])
        )
        table = whole.filter(is_wanted)
        scores = [numbers(table, name) for name in COMPARED_SCORES]
        ids.append(keys(table.column("document_id").to_pylist()))
        values.append(np.stack(scores, axis=1).astype(np.float32))
    return np.concatenate(ids), np.concatenate(values)


def _paired(
    this: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The values of the keys that stand once in both."""
    first, second = paired_places(this[0], other[0])
    return this[1][first], other[1][second]


def _difference(
    name: str, measure: str, mine: np.ndarray, others: np.ndarray
) -> Difference | None:
    """The paired difference of a column; None where no row has both values."""
    has_both = ~np.isnan(mine) & ~np.isnan(others)
    if not has_both.any():
        return None
    mine, others = mine[has_both].astype(float), others[has_both].astype(float)
    difference = mine - others
    low, high = bootstrap_intervals(difference[:, None])
    return Difference(
        name,
        measure,
        len(difference),
        float(mine.mean()),
        float(others.mean()),
        float(difference.mean()),
        float(low[0]),
        float(high[0]),
    )


def text_change(text: str, other: str) -> float:
    """How far two texts differ: 0 for equal words, 1 for none in common.

    It is one less the F1 of their words, each counted as often as it stands.
    """
    mine, others = Counter(words(text.lower())), Counter(words(other.lower()))
    total = mine.total() + others.total()
    return 1 - 2 * (mine & others).total() / total if total else 0.0


def differing_settings(
    this: Mapping[str, Any], other: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """The settings and the corpus of two manifests where they differ."""
    mine, others = _settings(this), _settings(other)
    return [
        (name, mine.get(name), others.get(name))
        for name in sorted({*mine, *others})
        if mine.get(name) != others.get(name)
    ]


def _settings(manifest: Mapping[str, Any]) -> dict[str, Any]:
    names = ("corpus", "split", "bundle", "extractive_bundle", "precis_version")
    return {**{name: manifest.get(name) for name in names}, **manifest["settings"]}


def rows_by_key(
    tables: Iterable[pa.Table], wanted: set[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of another run that a page also has, by document_id and content.

    Args:
      tables: of that run, with the columns that the page shows.
      wanted: the keys.
    """
    found = {}
    for table in tables:
        ids = table.column("document_id").to_pylist()
        contents = table.column("content_sha256").to_pylist()
        places = [
            place
            for place, key in enumerate(zip(ids, contents, strict=True))
            if key in wanted
        ]
        for row in table.take(places).to_pylist() if places else ():
            found[row["document_id"], row["content_sha256"]] = row
    return found
