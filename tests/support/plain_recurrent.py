"""The recurrent network in plain numpy and float64, token by token: a companion of
`plain_network`.
"""

import math
from typing import Any

import numpy as np

from support.plain_convolutional_gate import convolutional_gate
from support.plain_layers import Weights, below, dense, sigmoid, softmax
from support.plain_network import Document, finish


def step(x: np.ndarray, h: np.ndarray, weights: Weights) -> np.ndarray:
    """A GRU (Cho et al. 2014) in the form of cuDNN: the reset gate multiplies what the
    product with the last state made, its bias included.
    """
    width = len(h)
    of_input = x @ weights["kernel"] + weights["bias"][0]
    of_state = h @ weights["recurrent_kernel"] + weights["bias"][1]
    update, reset, new = (slice(i * width, (i + 1) * width) for i in range(3))
    z, r = (
        sigmoid(of_input[update] + of_state[update]),
        sigmoid(of_input[reset] + of_state[reset]),
    )
    return z * h + (1 - z) * np.tanh(of_input[new] + r * of_state[new])


def read(states: np.ndarray, weights: Weights) -> np.ndarray:
    """A layer over [S, D], from zeros: h of each token."""
    h = np.zeros(weights["recurrent_kernel"].shape[0])
    return np.array([h := step(x, h, weights) for x in states])


def encode(
    config: Any, weights: Weights, source: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One document, int [S] -> states [S, D], and the last state of both directions
    together.
    """
    states = weights["embedding/table"][source] * math.sqrt(config.width)
    for i in range(config.encoder_layers):
        forward, backward = (
            read(x, below(weights, f"encoder_{i}/{way}_gru/gru_cell"))
            for way, x in (("forward", states), ("backward", states[::-1]))
        )
        states = np.concatenate([forward, backward[::-1]], axis=1)
    return states, np.concatenate([forward[-1], backward[-1]])


def recurrent(
    config: Any, weights: Weights, source: np.ndarray, target: np.ndarray
) -> Document:
    """One document: int [S] without padding and [T]."""
    memory, end = encode(config, weights, source)
    cells = [
        np.tanh(dense(end, weights, f"bridge_{i}"))
        for i in range(config.decoder_layers)
    ]
    if config.convolutional_gate:
        memory = convolutional_gate(memory, below(weights, "convolutional_gate"))
    inputs = weights["embedding/table"][target] * math.sqrt(config.width)
    output, states, shares = np.zeros(config.width), [], []
    for x in inputs:
        h = np.concatenate([x, output])
        for layer, state in enumerate(cells):
            cells[layer] = h = step(h, state, below(weights, f"decoder_{layer}"))
        scores = [h @ (m @ weights["attention/key/kernel"]) for m in memory]
        shares.append(softmax(np.array(scores)))
        context = sum(share * m for share, m in zip(shares[-1], memory, strict=True))
        output = np.tanh(dense(np.concatenate([context, h]), weights, "join"))
        states.append(output)
    parts = {
        "states": np.array(states),
        "inputs": inputs,
        "memory": memory,
        "source": source,
    }
    return finish(
        config,
        weights,
        table=weights["embedding/table"],
        **parts,
        maps=[("cross", 0, np.array(shares)[None])],
    )
