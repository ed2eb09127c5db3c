"""Plots as SVG with the colours of the page, drawn by matplotlib.

Text stays text, and colours are variables of the style sheet, so that the same picture
serves the light and the dark page.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from precis.pipelines.report.distributions import ShownHistogram
from precis.pipelines.report.training_curves import TrainingCurves

# Colours that matplotlib writes, each for a variable of page.css.
_VARIABLES = {
    "#010101": "var(--text)",
    "#020202": "var(--muted)",
    "#030303": "var(--line)",
    "#040404": "var(--series-1)",
    "#050505": "var(--series-2)",
    "#060606": "var(--series-3)",
    "#070707": "var(--series-4)",
}
_TEXT, _MUTED, _LINE, *_SERIES = _VARIABLES
SYSTEM_SERIES = {"extractive": 1, "abstractive": 2, "reference": 3, "article": 4}
_MOST_TICKS = 6
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "precis",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _TEXT,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _MUTED,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "grid.color": _LINE,
    "grid.linewidth": 0.7,
}


def draw_histogram(shown: ShownHistogram, name: str) -> str:
    """A histogram of every system of a measure, one above the other.

    Args:
      shown: the bins.
      name: a prefix for the names in the SVG, unique on the page.
    """
    figure, axes = _figure(4.2, 2.1)
    for system, shares in shown.shares.items():
        color = _SERIES[SYSTEM_SERIES[system] - 1]
        axes.stairs(shares, shown.edges, color=color, linewidth=1.8)
        axes.stairs(shares, shown.edges, color=color, fill=True, alpha=0.18)
    if shown.measure.is_log:
        _label_log_axis(axes, shown.edges)
    axes.set_xlabel(shown.measure.unit)
    axes.set_ylabel("% of rows")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    return _svg(figure, name, f"Histogram: {shown.measure.title}")


def _label_log_axis(axes: Any, edges: np.ndarray) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log")
    low, high = edges[0], edges[-1]
    powers = 10.0 ** np.arange(-3, 8)
    # The finest labels of which at most six fit.
    for steps in (
        (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
        (1, 1.5, 2, 3, 5, 7),
        (1, 2, 5),
        (1,),
    ):
        ticks = np.sort(np.outer(powers, steps).ravel())
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) <= _MOST_TICKS:
            break
    axes.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def draw_intervals(
    rows: Sequence[tuple[str, Mapping[str, float]]],
    name: str,
    title: str,
    *,
    marked: str = "",
    zero: bool = False,
) -> str:
    """Means with their intervals, a line for each system.

    Args:
      rows: systems from the top, each with `mean`, `low` and `high`, from 0 to 1.
      name: as in `draw_histogram`.
      title: of the measure, for readers of the text.
      marked: a system whose mean is drawn as a line through all others.
      zero: whether a line is drawn at zero, as for differences.
    """
    figure, axes = _figure(4.2, 0.75 + 0.27 * len(rows))
    places = np.arange(len(rows))[::-1]
    means = np.array([100 * row["mean"] for _, row in rows])
    lows = np.array([100 * row["low"] for _, row in rows])
    highs = np.array([100 * row["high"] for _, row in rows])
    for system, row in rows:
        if system == marked:
            axes.axvline(100 * row["mean"], color=_MUTED, linewidth=1, linestyle="--")
    if zero:
        axes.axvline(0, color=_MUTED, linewidth=1, linestyle="--")
    axes.hlines(places, lows, highs, color=_SERIES[0], linewidth=3)
    axes.plot(means, places, "o", color=_SERIES[0], markersize=6)
    axes.set_yticks(places, [system for system, _ in rows])
    axes.tick_params(axis="y", length=0, labelcolor=_TEXT)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.set_xlabel(title)
    return _svg(figure, name, f"Means and intervals: {title}")


def draw_training(curves: TrainingCurves, name: str) -> str:
    """The loss by step, of the training data and where it was validated."""
    figure, axes = _figure(6.0, 2.6)
    axes.plot(curves.steps, curves.losses, color=_SERIES[0], linewidth=1.6)
    if "loss" in curves.validation:
        steps, losses = curves.validation["loss"]
        axes.plot(steps, losses, "o-", color=_SERIES[1], linewidth=1.6, markersize=4)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.grid(axis="y")
    axes.margins(x=0.02)
    return _svg(figure, name, "Loss by step")


def draw_validation(
    measures: Mapping[str, tuple[np.ndarray, np.ndarray]], name: str
) -> str:
    """ROUGE of the validation documents by step, a line for each measure."""
    figure, axes = _figure(6.0, 2.6)
    for number, (steps, values) in enumerate(measures.values()):
        color = _SERIES[number % len(_SERIES)]
        axes.plot(steps, 100 * values, "o-", color=color, linewidth=1.6, markersize=4)
    axes.set_xlabel("step")
    axes.set_ylabel("F1, x100")
    axes.grid(axis="y")
    axes.margins(x=0.02)
    return _svg(figure, name, "ROUGE of validation documents by step")


def _figure(width: float, height: float) -> tuple[Any, Any]:
    """A figure that no window and no global state knows."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        return figure, figure.add_subplot()


def _svg(figure: Any, name: str, label: str) -> str:
    """A figure as an element of the page."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(
            file, format="svg", metadata={"Date": None, "Creator": None}, dpi=72
        )
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = _with_prefixed_ids(text, name)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, variable)
    box = re.search(r'viewBox="[^"]*"', text)
    start = f'<svg class="chart" role="img" aria-label="{label}" {box and box[0]}>'
    body = re.sub(r"^<svg[^>]*>", start, text, count=1)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    # The page's font, whose widths differ little.
    body = re.sub(r" font-family: [^;\"]*;", "", body)
    return re.sub(r"\n\s*", "\n", body).replace("xlink:href", "href")


def _with_prefixed_ids(text: str, name: str) -> str:
    """Names that are used get a prefix; the others are left out."""
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', text))
    text = re.sub(
        r' id="([^"]+)"',
        lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "",
        text,
    )
    return re.sub(r'(url\(|href=")#', rf"\g<1>#{name}-", text)
