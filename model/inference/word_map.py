"""The picture of one attention: the words of the summary read those of the source.

+---------------------------------------------------+
|  title                                            |
|  written   heat map, the words read most  | bar   |
|            words of the source, upright           |
|  Written: the summary, wrapped                    |
+---------------------------------------------------+
"""

import textwrap
from typing import IO, Any

import numpy as np

from precis.model.inference.attention import HeadWeights
from precis.model.inference.heat_map import (
    label_rows_and_columns,
    most_read,
    title_of,
)
from precis.model.inference.quantile_colours import (
    COLOUR_MAP,
    colour_positions,
    label_bar,
)

_DOTS_PER_INCH = 100
_WIDTH_INCHES = 16.0  # 1600 pixels
_BESIDE_INCHES = 3.6  # what the words of the rows and the bar take
_LEAST_COLUMN_INCHES = 0.19
_ROW_INCHES = 0.24
_TITLE_INCHES = 0.7
_LETTER_INCHES = 0.095  # of an upright word
_LINE_INCHES = 0.25
_LINE_CHARACTERS = 135
_LONGEST_WORD = 22


def draw_words(
    attention: HeadWeights, file: IO[bytes], *, most_columns: int, heads: int
) -> None:
    """Writes a PNG of 1600 pixels across; wider where more columns are asked for than
    fit.

    Args:
      attention: the weights of words, [1, T, S].
      file: the file to write to.
      most_columns: the largest number of columns. The words with the largest weights
        are drawn, in their order. 0 draws all.
      heads: how many heads the weights are the mean of, for the title.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    columns = most_read(attention.weights, most_columns)
    drawn = attention.weights[0][:, columns]  # [T, columns]
    labels = [_shortened(attention.columns[column]) for column in columns]
    lines = _wrapped(attention.summary)
    width = max(_WIDTH_INCHES, len(columns) * _LEAST_COLUMN_INCHES + _BESIDE_INCHES)
    map_height = (
        _TITLE_INCHES
        + len(attention.rows) * _ROW_INCHES
        + max(map(len, labels)) * _LETTER_INCHES
    )
    text_height = (len(lines) + 2) * _LINE_INCHES
    figure, (map_axes, text_axes) = pyplot.subplots(
        2,
        1,
        figsize=(width, map_height + text_height),
        height_ratios=(map_height, text_height),
        layout="constrained",
        dpi=_DOTS_PER_INCH,
    )
    image = map_axes.imshow(
        colour_positions(drawn), aspect="auto", cmap=COLOUR_MAP, vmin=0.0, vmax=1.0
    )
    _label_map(map_axes, attention, columns, labels)
    bar = figure.colorbar(image, ax=map_axes, fraction=0.02, pad=0.01, aspect=30)
    label_bar(bar, drawn)
    bar.set_label("weight (share of weights below it)", fontsize=9)
    share = float(drawn.sum() / attention.weights.sum())
    title = title_of(attention, len(columns), share, heads=heads)
    map_axes.set_title(title, fontsize=13)
    text_axes.axis("off")
    text = "\n".join(["Written:", *lines])
    text_axes.text(0.0, 1.0, text, fontsize=12, va="top", parse_math=False)
    figure.savefig(file, format="png")
    pyplot.close(figure)


def _label_map(
    axes: Any, attention: HeadWeights, columns: np.ndarray, labels: list[str]
) -> None:
    """Writes the words, and draws a line where words of the source are left out."""
    rows = [_shortened(row) for row in attention.rows]
    label_rows_and_columns(axes, attention, labels, rows, size=10)
    axes.tick_params(length=2)
    for place in np.flatnonzero(np.diff(columns) > 1):
        axes.axvline(place + 0.5, color="white", linewidth=1.5)
    for row in range(1, len(attention.rows)):
        axes.axhline(row - 0.5, color="white", linewidth=0.5)


def _shortened(word: str) -> str:
    return word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD - 1]}…"


def _wrapped(summary: str) -> list[str]:
    """The lines of the summary as they stand below the picture."""
    return [
        part
        for line in summary.splitlines() or [""]
        for part in textwrap.wrap(line, _LINE_CHARACTERS) or [""]
    ]
