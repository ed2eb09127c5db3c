"""The losses of a training, thinned out for a plot."""

import json
from typing import Any, NamedTuple

import numpy as np

from precis.model import files

_LOSSES_FILE = ("training", "losses.jsonl")
_MOST_POINTS = 400


class TrainingCurves(NamedTuple):
    """The reports of a training.

    Attributes:
      steps, losses: of the training data, float64 [N]; means of neighbouring steps
          where there are many.
      validation: by measure, the steps and the values, float64 [V] each.
      last_step: how many steps there were.
    """

    steps: np.ndarray
    losses: np.ndarray
    validation: dict[str, tuple[np.ndarray, np.ndarray]]
    last_step: int


def read_curves(bundle: str) -> TrainingCurves | None:
    """The curves of the training that made a bundle; None where it has left none.

    A line that is no report, as a killed training may leave, is skipped.

    Args:
      bundle: its folder.
    """
    path = files.join(bundle, *_LOSSES_FILE)
    if not files.exists(path):
        return None
    steps: list[float] = []
    losses: list[float] = []
    validation: dict[str, list[tuple[float, float]]] = {}
    with files.open_read(path) as lines:
        for line in lines:
            report = _report(line)
            if report is None:
                continue
            steps.append(float(report["step"]))
            losses.append(float(report["loss"]))
            for name, value in (report.get("validation") or {}).items():
                if isinstance(value, int | float):
                    point = (float(report["step"]), float(value))
                    validation.setdefault(name, []).append(point)
    if not steps:
        return None
    curves = {
        name: (np.array(points)[:, 0], np.array(points)[:, 1])
        for name, points in validation.items()
    }
    return TrainingCurves(
        _thinned(np.array(steps)), _thinned(np.array(losses)), curves, int(steps[-1])
    )


def _report(line: bytes) -> dict[str, Any] | None:
    try:
        report = json.loads(line)
        is_report = {"step", "loss"} <= set(report)
    except (ValueError, TypeError):
        return None
    return report if is_report else None


def _thinned(values: np.ndarray) -> np.ndarray:
    """The means of neighbouring values, at most `_MOST_POINTS`."""
    if len(values) <= _MOST_POINTS:
        return values
    return np.array([part.mean() for part in np.array_split(values, _MOST_POINTS)])
