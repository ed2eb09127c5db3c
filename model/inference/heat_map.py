"""Attention weights as a grid: one heat map for each head, in which the written tokens
are the rows and the tokens that are read the columns.
"""

import math
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from precis.model.inference.attention import HeadWeights
from precis.model.inference.quantile_colours import (
    COLOUR_MAP,
    colour_positions,
    label_bar,
)
from precis.model.tokenization.wordpiece import LINE_BREAK

_CELL_INCHES = 0.19
_MAX_WIDTH_INCHES = 30.0
_DOTS_PER_INCH = 100


def draw(
    attention: HeadWeights,
    file: IO[bytes],
    *,
    heads: list[int] | None = None,
    most_columns: int = 60,
) -> None:
    """Writes a PNG.

    Args:
      attention: the weights and their tokens.
      file: the file to write to.
      heads: the heads to draw, from 1; by default all.
      most_columns: the largest number of columns. The tokens with the largest weights
        are drawn, in their order. 0 draws all.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    heads = heads or list(range(1, len(attention.weights) + 1))
    weights = attention.weights[[head - 1 for head in heads]]  # [H, T, S]
    columns = most_read(weights, most_columns)
    drawn = weights[:, :, columns]
    map_height = len(attention.rows) * _CELL_INCHES + 1.4
    map_width = len(columns) * _CELL_INCHES + 1.6
    across = _maps_across(len(heads), map_width)
    down = -(-len(heads) // across)
    figure, grid = pyplot.subplots(
        down,
        across,
        figsize=(across * map_width + 1.0, down * map_height + 0.8),
        squeeze=False,
        layout="constrained",
        dpi=_DOTS_PER_INCH,
    )
    is_linear = attention.block == "copy"
    values = drawn if is_linear else colour_positions(drawn)
    largest = max(float(values.max()), 1e-6) if is_linear else 1.0
    colour_map = "viridis" if is_linear else COLOUR_MAP
    for axes, head, head_values in zip(grid.flat, heads, values, strict=False):
        image = axes.imshow(
            head_values, aspect="auto", cmap=colour_map, vmin=0.0, vmax=largest
        )
        _label_axes(axes, attention, head, columns)
    for axes in grid.flat[len(heads) :]:
        axes.axis("off")
    bar = figure.colorbar(image, ax=grid, shrink=0.6, aspect=30)
    if not is_linear:
        label_bar(bar, drawn)
    bar.set_label("attention weight", fontsize=9)
    share = float(drawn.sum() / weights.sum())
    figure.suptitle(title_of(attention, len(columns), share), fontsize=11)
    figure.savefig(file, format="png")
    pyplot.close(figure)


def most_read(weights: np.ndarray, most: int) -> np.ndarray:
    """The columns with the largest weights, in their order.

    Args:
      weights: [H, T, S].
      most: the largest number of columns; 0 takes all.

    Returns:
      int64 [at most S]; a column is judged by its largest single weight.
    """
    columns = weights.shape[2]
    if not most or columns <= most:
        return np.arange(columns)
    return np.sort(np.argsort(-weights.max(axis=(0, 1)), kind="stable")[:most])


def _maps_across(count: int, map_width: float) -> int:
    """How many maps stand side by side: about as many as stand one below the other,
    as far as the width of the picture allows.

    Args:
      count: the number of maps.
      map_width: inches.
    """
    fitting = int(_MAX_WIDTH_INCHES // map_width)
    return max(1, min(count, fitting, math.ceil(math.sqrt(count))))


def _label_axes(
    axes: Any, attention: HeadWeights, head: int, columns: np.ndarray
) -> None:
    """Writes the title of one heat map and the tokens of its rows and columns."""
    title = "copy distribution" if attention.block == "copy" else f"head {head}"
    axes.set_title(title, fontsize=10)
    tokens = [attention.columns[column] for column in columns]
    label_rows_and_columns(axes, attention, tokens, attention.rows, size=7)
    axes.set_xlabel("read", fontsize=8)


def title_of(
    attention: HeadWeights, columns: int, share: float, *, heads: int = 1
) -> str:
    """The title of a picture.

    Args:
      attention: the weights.
      columns: how many are drawn.
      share: of the weights, which is in these columns.
      heads: how many heads the weights are the mean of.
    """
    of_heads = f", mean of {heads} heads" if heads > 1 else ""
    name = f"{attention.block} attention, layer {attention.layer}{of_heads}"
    if attention.block == "copy":
        name = "copy distribution"
    if columns == len(attention.columns):
        return name
    return (
        f"{name}: the {columns} of {len(attention.columns)} {attention.unit} that are "
        f"read most ({share:.0%} of the weight)"
    )


def label_rows_and_columns(
    axes: Any,
    attention: HeadWeights,
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    size: int,
) -> None:
    """Writes the words or tokens of one heat map beside it.

    Args:
      axes: of the heat map.
      attention: the weights, whose block says what the rows do.
      columns, rows: the words or tokens.
      size: of their letters, in points.
    """
    labels = [label_of(column) for column in columns]
    axes.set_xticks(range(len(columns)), labels, rotation=90, fontsize=size)
    axes.set_yticks(range(len(rows)), [label_of(row) for row in rows], fontsize=size)
    reads = "reads" if attention.block == "encoder" else "written"
    axes.set_ylabel(reads, fontsize=size + 1)


def label_of(piece: str) -> str:
    """A token as a label: `$` is escaped because it begins a formula, and a line break
    is a character that the font has.
    """
    return piece.replace("$", r"\$").replace(LINE_BREAK, "↵")
