"""The figures of an evaluation: the scores of every system, their means and bootstrap
intervals.

A system is an extractive method, `abstractive`, or `summary`, the text that is shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from precis.model import rouge
from precis.model.bootstrap import bootstrap_intervals
from precis.model.quality.fallback import ABSTRACTIVE
from precis.pipelines.evaluate.measures import SUMMARY
from precis.pipelines.evaluate.scoring import KEYPHRASE_COUNTS, RangeScores

LEAD, RANDOM, ORACLE = "lead", "random", "oracle"


def join_scores(parts: Sequence[RangeScores]) -> dict[str, np.ndarray]:
    """The scores of each system, float64 [N, 4] over all scored rows; NaN for the rows
    in which it has no summary.
    """
    empty = {
        part.number: np.full((part.scored, len(rouge.MEASURES)), np.nan)
        for part in parts
    }
    systems = _in_order({system for part in parts for system in part.scores})
    return {
        system: np.concatenate(
            [part.scores.get(system, empty[part.number]) for part in parts]
        )
        for system in systems
    }


def _in_order(systems: Iterable[str]) -> list[str]:
    """The order of the table: the baselines, the other methods by name, the network,
    the shown summary, and last the upper bound.
    """
    order = (LEAD, RANDOM, "", ABSTRACTIVE, SUMMARY, ORACLE)
    return sorted(
        systems,
        key=lambda system: (order.index(system if system in order else ""), system),
    )


def count_rows(values: np.ndarray) -> int:
    """The number of values that are not NaN."""
    return int(np.count_nonzero(~np.isnan(values)))


def mean_figures(
    columns: Mapping[Any, np.ndarray], *, resamples: int, confidence: float
) -> dict[Any, dict[str, float]]:
    """The mean and the bootstrap interval of each column that has values.

    NaN is left out. Columns with values in the same rows are resampled together.

    Args:
      columns: float64 [N] by any key.
      resamples, confidence: as `bootstrap_intervals` takes them.
    """
    keys_by_rows: dict[bytes, list[Any]] = {}
    for key, values in columns.items():
        keys_by_rows.setdefault(np.isnan(values).tobytes(), []).append(key)
    figures = {}
    for keys in keys_by_rows.values():
        has_value = ~np.isnan(columns[keys[0]])
        if not has_value.any():
            continue
        matrix = np.stack([columns[key][has_value] for key in keys], axis=1)
        low, high = bootstrap_intervals(
            matrix, resamples=resamples, confidence=confidence
        )
        means = matrix.mean(axis=0)
        for index, key in enumerate(keys):
            figures[key] = {
                "mean": float(means[index]),
                "low": float(low[index]),
                "high": float(high[index]),
            }
    return figures


def keyphrase_figures(
    parts: Sequence[RangeScores], *, resamples: int, confidence: float
) -> list[dict[str, Any]]:
    """The mean F1 of each keyphrase method over the rows with reference phrases."""
    systems = []
    for method in sorted({method for part in parts for method in part.keyphrases}):
        matrix = np.concatenate(
            [part.keyphrases[method] for part in parts if method in part.keyphrases]
        )
        columns = {
            f"f1_at_{count}": matrix[:, column]
            for column, count in enumerate(KEYPHRASE_COUNTS)
        }
        figures = mean_figures(columns, resamples=resamples, confidence=confidence)
        systems.append({"system": method, "rows": len(matrix), **figures})
    return systems
