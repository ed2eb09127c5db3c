"""Colours of weights by how many others are smaller.

A few weights of an attention are many times as large as the rest, so that a linear
scale shows them and nothing else. Here each sixth of the colours has its share of the
weights:

    colour    0 --------- 1/6 --- 2/6 --- 3/6 -- 4/6 -- 5/6 -- 1
    quantile  0           0.5     0.75    0.9    0.95   0.99   1
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

LEVELS = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
COLOUR_MAP = "YlGnBu"


def colour_positions(weights: np.ndarray) -> np.ndarray:
    """The place of each weight on the scale of colours, from 0 to 1.

    Args:
      weights: of any shape; equal weights have one colour, the largest has 1.
    """
    values, inverse, counts = np.unique(
        weights, return_inverse=True, return_counts=True
    )
    smaller = np.cumsum(counts) - counts
    # Of the largest weight, not one is larger.
    share = smaller / max(1, smaller[-1])
    positions = np.interp(share, LEVELS, np.linspace(0.0, 1.0, len(LEVELS)))
    if len(values) == 1:
        positions = np.zeros(1)
    return positions[inverse].reshape(weights.shape)


def label_bar(bar: Any, weights: np.ndarray) -> None:
    """Writes the weights and their quantiles beside a colour bar from 0 to 1."""
    ticks = np.linspace(0.0, 1.0, len(LEVELS))
    bar.set_ticks(ticks, labels=tick_labels(weights))
    bar.ax.tick_params(labelsize=9)


def tick_labels(weights: np.ndarray) -> Sequence[str]:
    """For each level the weight below which so many lie."""
    values = np.quantile(weights, LEVELS)
    return [
        f"{value:.2g}  ({level:.0%})"
        for value, level in zip(values, LEVELS, strict=True)
    ]
