"""The convolutional gated unit in plain numpy and float64, one document at a time."""

from typing import NamedTuple

import numpy as np

from support.plain_layers import Weights, below, dense, multi_head, sigmoid


def convolution(states: np.ndarray, weights: Weights) -> np.ndarray:
    """States [S, D], outside of which all is zero, through a convolution of an odd
    width and a relu; kernel [width, D, D].
    """
    kernel, reach = weights["kernel"], len(weights["kernel"]) // 2
    convolved = np.zeros((len(states), kernel.shape[2])) + weights["bias"]
    for s in range(len(states)):
        for place in range(len(kernel)):
            if 0 <= s + place - reach < len(states):
                convolved[s] += states[s + place - reach] @ kernel[place]
    return np.maximum(convolved, 0.0)


class _OneHead(NamedTuple):
    width: int
    heads: int = 1
    head_width: None = None
    score_width: None = None
    kv_heads: None = None
    qk_norm: bool = False
    scaled_scores: bool = True
    positions: str = ""


def convolutional_gate(states: np.ndarray, weights: Weights) -> np.ndarray:
    """One document, [S, D] -> [S, D]."""
    narrow, middle, inner = (
        convolution(states, below(weights, name))
        for name in ("convolution_1", "convolution_3", "convolution_5_inner")
    )
    wide = convolution(inner, below(weights, "convolution_5_outer"))
    joined = dense(np.concatenate([narrow, middle, wide], axis=1), weights, "join")
    everything = np.ones((len(states), len(states)), bool)
    gate, _ = multi_head(
        joined,
        joined,
        everything,
        below(weights, "attention"),
        _OneHead(states.shape[1]),
    )
    return states * sigmoid(gate)
