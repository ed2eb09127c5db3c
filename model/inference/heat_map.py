"""Attention weights as a picture: a heat map for each head, written tokens down, read
tokens across.
"""

import math
from typing import IO

import numpy as np

from precis.model.inference.attention import HeadWeights
from precis.model.tokenization.wordpiece import LINE_BREAK

_CELL = 0.19  # inches for a token
_MOST_ACROSS = 30.0  # inches
_DPI = 100


def draw(
    seen: HeadWeights,
    file: IO[bytes],
    *,
    heads: list[int] | None = None,
    most_columns: int = 60,
) -> None:
    """Writes a PNG.

    Args:
      seen: the weights.
      file: where to.
      heads: which, from 1; all of them without.
      most_columns: tokens across, at most: those that are read most, in their order. 0
          shows all.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    chosen = heads or list(range(1, len(seen.weights) + 1))
    weights = seen.weights[[head - 1 for head in chosen]]  # [H, T, S]
    columns = most_read(weights, most_columns)
    shown = weights[:, :, columns]
    height, width = len(seen.rows) * _CELL + 1.4, len(columns) * _CELL + 1.6
    across = max(
        1,
        min(len(chosen), int(_MOST_ACROSS // width), math.ceil(math.sqrt(len(chosen)))),
    )
    down = -(-len(chosen) // across)
    figure, grid = pyplot.subplots(
        down,
        across,
        figsize=(across * width + 1.0, down * height + 0.8),
        squeeze=False,
        layout="constrained",
        dpi=_DPI,
    )
    for place, axes in enumerate(grid.flat):
        if place >= len(chosen):
            axes.axis("off")
            continue
        image = axes.imshow(
            shown[place],
            aspect="auto",
            cmap="viridis",
            vmin=0.0,
            vmax=max(float(shown.max()), 1e-6),
        )
        axes.set_title(
            f"head {chosen[place]}" if seen.block != "copy" else "copy distribution",
            fontsize=10,
        )
        axes.set_xticks(
            range(len(columns)),
            [_label(seen.columns[column]) for column in columns],
            rotation=90,
            fontsize=7,
        )
        axes.set_yticks(
            range(len(seen.rows)), [_label(row) for row in seen.rows], fontsize=7
        )
        axes.set_xlabel("read", fontsize=8)
        axes.set_ylabel("written" if seen.block != "encoder" else "reads", fontsize=8)
    bar = figure.colorbar(image, ax=grid, shrink=0.6, aspect=30)
    bar.set_label("attention weight", fontsize=9)
    figure.suptitle(
        _title(seen, len(columns), float(shown.sum() / weights.sum())), fontsize=11
    )
    figure.savefig(file, format="png")
    pyplot.close(figure)


def most_read(weights: np.ndarray, most: int) -> np.ndarray:
    """The columns of weights [H, T, S] that have the largest single weights, at most
    `most` of them, in their order; 0 takes all.
    """
    columns = weights.shape[2]
    if not most or columns <= most:
        return np.arange(columns)
    return np.sort(np.argsort(-weights.max(axis=(0, 1)), kind="stable")[:most])


def _title(seen: HeadWeights, columns: int, share: float) -> str:
    name = (
        "copy distribution"
        if seen.block == "copy"
        else f"{seen.block} attention, layer {seen.layer}"
    )
    if columns == len(seen.columns):
        return name
    return f"{name}: the {columns} of {len(seen.columns)} tokens that are read most, which hold {share:.0%} of the weight"


def _label(piece: str) -> str:
    """A token without what a picture takes for a formula, and its line break as the
    font has it.
    """
    return piece.replace("$", r"\$").replace(LINE_BREAK, "↵")
