"""The plots of the page, with the numbers that stand beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from precis.model import rouge
from precis.model.errors import PrecisError
from precis.pipelines.evaluate.evaluation_table import LEAD
from precis.pipelines.report.charts import (
    SYSTEM_SERIES,
    draw_histogram,
    draw_intervals,
    draw_training,
    draw_validation,
)
from precis.pipelines.report.comparison import COMPARED_SCORES, Difference
from precis.pipelines.report.distributions import Distributions, Histogram
from precis.pipelines.report.reported_run import ReportedRun
from precis.pipelines.report.training_curves import read_curves

_PLOTTED = ("rouge1", "rouge2", "rougeLsum")
_BUNDLES = {"bundle": "network", "extractive_bundle": "extractor"}


def plots(run: ReportedRun, distributions: Distributions) -> dict[str, Any]:
    """What the template shows of plots.

    Args:
      run: the run.
      distributions: of all its rows.
    """
    from markupsafe import Markup

    trainings, unread = _trainings(run.manifest)
    histograms = [
        {
            "title": shown.measure.title,
            "svg": Markup(draw_histogram(shown, f"h{number}")),
            "systems": [
                _statistics(system, histogram)
                for system, histogram in shown.systems.items()
            ],
        }
        for number, shown in enumerate(distributions.shown())
    ]
    return {
        "histograms": histograms,
        "rouge_plots": [
            Markup(svg) for svg in _rouge_plots(run.evaluation) if run.evaluation
        ],
        "trainings": [
            {**each, "plots": list(map(Markup, each["plots"]))} for each in trainings
        ],
        "unread_trainings": unread,
    }


def _statistics(system: str, histogram: Histogram) -> dict[str, Any]:
    return {
        "system": system,
        "series": SYSTEM_SERIES[system],
        "rows": f"{histogram.rows:,}",
        "mean": _number(histogram.mean),
        "median": _number(histogram.quantile(0.5)),
        "low": _number(histogram.quantile(0.05)),
        "high": _number(histogram.quantile(0.95)),
    }


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _rouge_plots(evaluation: Mapping[str, Any] | None) -> list[str]:
    systems = evaluation["systems"] if evaluation else []
    lead = next((each["system"] for each in systems if each["method"] == LEAD), "")
    return [
        draw_intervals(
            [(each["system"], each[measure]) for each in systems],
            f"r{number}",
            f"{rouge.MEASURES[measure]}, x100",
            marked=lead,
        )
        for number, measure in enumerate(_PLOTTED)
    ]


def _trainings(
    manifest: Mapping[str, Any],
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """The training of each bundle whose folder still has its losses, and the folders
    that cannot be read with the reason.
    """
    trainings: list[dict[str, Any]] = []
    unread: list[tuple[str, str]] = []
    for name, title in _BUNDLES.items():
        folder = str(manifest.get(name) or "")
        try:
            curves = read_curves(folder) if folder else None
        except (PrecisError, OSError) as error:
            unread.append((folder, " ".join(str(error).split())))
            continue
        if curves is None:
            continue
        drawn = [draw_training(curves, f"t{name}")]
        scores = {
            rouge.MEASURES[measure]: points
            for measure, points in curves.validation.items()
            if measure in _PLOTTED and len(points[0]) > 1
        }
        if scores:
            drawn.append(draw_validation(scores, f"v{name}"))
        trainings.append(
            {
                "title": title,
                "folder": folder,
                "steps": f"{curves.last_step:,}",
                "validated": "loss" in curves.validation,
                "scores": list(scores),
                "plots": drawn,
            }
        )
    return trainings, unread


def difference_plots(scores: Mapping[str, Sequence[Difference]]) -> list[Any]:
    """The differences of ROUGE between two runs, a plot for each measure.

    Args:
      scores: the differences by system, those that are zero among them.
    """
    from markupsafe import Markup

    differing = {
        name: differences
        for name, differences in scores.items()
        if not all(each.is_zero for each in differences)
    }
    if not differing:
        return []
    return [
        Markup(
            draw_intervals(
                [
                    (name, _interval(differences[number]))
                    for name, differences in differing.items()
                ],
                f"d{number}",
                f"{rouge.MEASURES[measure]}, difference, x100",
                zero=True,
            )
        )
        for number, measure in enumerate(COMPARED_SCORES)
    ]


def _interval(difference: Difference) -> dict[str, float]:
    return {
        "mean": difference.difference,
        "low": difference.low,
        "high": difference.high,
    }
