"""The picture of attention weights: a heat map for each head, or their mean, in which
the tokens that are written are the rows and those that are read the columns.

+---------------------------------------------------+
|  title                                            |
|  written   heat map, the tokens read most  | bar   |
|            … tokens of the source, upright        |
|  Written: the summary, wrapped                    |
+---------------------------------------------------+

A few weights of an attention are many times as large as the rest, so the colours
follow a power of the weights; a copy distribution has a linear scale.
"""

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from precis.model.inference.attention import HeadWeights
from precis.model.tokenization.wordpiece import LINE_BREAK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GAP = "… "
_LONGEST_LABEL = 22
_COLUMN_INCHES, _ROW_INCHES, _MARGIN_INCHES = 0.19, 0.2, 2.5
_LEAST_INCHES = 8.0  # across
_CHARACTERS_AN_INCH = 9
_POWER = 0.6


def draw(
    attention: HeadWeights, *, heads: list[int] | None = None, most_columns: int = 60
) -> "Figure":
    """Draws attention weights.

    Args:
      attention: the weights and their tokens.
      heads: the heads to draw, from 1; by default all.
      most_columns: the largest number of columns. Those with the largest weights are
        drawn, in their order. 0 draws all.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    heads = heads or list(range(1, len(attention.weights) + 1))
    weights = attention.weights[[head - 1 for head in heads]]  # [H, T, S]
    columns = most_read(weights, most_columns)
    drawn = weights[:, :, columns]
    across = math.ceil(math.sqrt(len(heads)))
    down = -(-len(heads) // across)
    map_width = len(columns) * _COLUMN_INCHES + _MARGIN_INCHES
    map_height = len(attention.rows) * _ROW_INCHES + _MARGIN_INCHES
    width = max(across * map_width, _LEAST_INCHES)
    characters = int(width * _CHARACTERS_AN_INCH)
    summary = textwrap.fill(f"Written: {attention.summary}", characters)
    height = down * map_height + 0.3 * summary.count("\n")
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    power = 1.0 if attention.block == "copy" else _POWER
    norm = PowerNorm(power, 0.0, max(float(drawn.max()), 1e-6))
    skips = np.diff(columns, prepend=-1) > 1
    labels = [
        _GAP * bool(skip) + _label(attention.columns[column])
        for column, skip in zip(columns, skips, strict=True)
    ]
    text = {"fontsize": 8, "parse_math": False}  # `$` begins no formula
    for axes, head, values in zip(grid.flat, heads, drawn, strict=False):
        image = axes.imshow(values, aspect="auto", cmap="YlGnBu", norm=norm)
        axes.set_xticks(range(len(columns)), labels, rotation=90, **text)
        axes.set_yticks(range(len(attention.rows)), map(_label, attention.rows), **text)
        axes.set_ylabel("reads" if attention.block == "encoder" else "written")
        if attention.mean_of <= 1:
            axes.set_title(f"head {head}", fontsize=10)
    for axes in grid.flat[len(heads) :]:
        axes.axis("off")
    figure.colorbar(image, ax=grid, fraction=0.02, pad=0.01, label="weight")
    share = float(drawn.sum() / weights.sum())
    title = title_of(attention, len(columns), share)
    figure.suptitle(textwrap.fill(title, characters), fontsize=11)
    figure.supxlabel(summary, x=0.02, ha="left", fontsize=10, parse_math=False)
    return figure


def most_read(weights: np.ndarray, most: int) -> np.ndarray:
    """The columns with the largest weights, in their order.

    Args:
      weights: [H, T, S].
      most: the largest number of columns; 0 takes all.

    Returns:
      int64 [at most S]; a column is judged by its largest single weight.
    """
    largest = weights.max(axis=(0, 1))
    return np.sort(np.argsort(-largest, kind="stable")[: most or None])


def title_of(attention: HeadWeights, columns: int, share: float) -> str:
    """The title of a picture.

    Args:
      attention: the weights.
      columns: how many are drawn.
      share: of the weights, which is in these columns.
    """
    name = f"{attention.block} attention, layer {attention.layer}"
    if attention.block == "copy":
        name = "copy distribution"
    if attention.mean_of > 1:
        name += f", mean of {attention.mean_of} heads"
    if columns < len(attention.columns):
        name += (
            f": the {columns} of {len(attention.columns)} tokens that are "
            f"read most ({share:.0%} of the weight)"
        )
    if attention.read_tokens < attention.source_tokens:
        name += (
            f"; the network read the first {attention.read_tokens:,} of "
            f"{attention.source_tokens:,} tokens of the article"
        )
    return name


def _label(token: str) -> str:
    """A token as a label: a line break is a character that the font has, and
    the end of a long one is left out.
    """
    if len(token) > _LONGEST_LABEL:
        token = f"{token[: _LONGEST_LABEL - 1]}…"
    return token.replace(LINE_BREAK, "↵")
