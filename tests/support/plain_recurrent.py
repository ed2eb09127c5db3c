"""The recurrent network in plain numpy and float64, token by token: a companion of
`plain_network`.
"""

import math
from typing import Any

import numpy as np

from support.plain_convolutional_gate import convolutional_gate
from support.plain_layers import (
    Weights,
    below,
    dense,
    sigmoid,
    softmax,
)
from support.plain_network import Document, finish

State = tuple[np.ndarray, ...]  # of a cell: h, and of an LSTM c too


def step_gru(x: np.ndarray, state: State, weights: Weights) -> State:
    """Cho et al. 2014 in the form of cuDNN: the reset gate multiplies what the product
    with the last state made, its bias included.
    """
    (h,) = state
    width = len(h)
    of_input = x @ weights["kernel"] + weights["bias"][0]
    of_state = h @ weights["recurrent_kernel"] + weights["bias"][1]
    update, reset, new = (slice(i * width, (i + 1) * width) for i in range(3))
    z, r = (
        sigmoid(of_input[update] + of_state[update]),
        sigmoid(of_input[reset] + of_state[reset]),
    )
    return (z * h + (1 - z) * np.tanh(of_input[new] + r * of_state[new]),)


def step_lstm(x: np.ndarray, state: State, weights: Weights) -> State:
    """Hochreiter and Schmidhuber 1997 with a forget gate; the gates stand as input,
    forget, new, output.
    """
    h, c = state
    gates = np.split(
        x @ weights["kernel"] + h @ weights["recurrent_kernel"] + weights["bias"], 4
    )
    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * np.tanh(gates[2])
    return sigmoid(gates[3]) * np.tanh(c), c


CELLS = {"gru": (step_gru, 1), "lstm": (step_lstm, 2)}


def read(states: np.ndarray, weights: Weights, cell: str) -> tuple[np.ndarray, State]:
    """A layer over [S, D], from zeros: h of each token and the last state."""
    step, tensors = CELLS[cell]
    state = (np.zeros(weights["recurrent_kernel"].shape[0]),) * tensors
    states_read = []
    for x in states:
        state = step(x, state, weights)
        states_read.append(state[0])
    return np.array(states_read), state


def encode(
    config: Any, weights: Weights, source: np.ndarray
) -> tuple[np.ndarray, State]:
    """One document, int [S] -> states [S, D], and the last state of both directions
    together.
    """
    states = weights["embedding/table"][source] * math.sqrt(config.width)
    for i in range(config.encoder_layers):
        ways = [
            below(weights, f"encoder_{i}/{way}_{config.cell}/{config.cell}_cell")
            for way in ("forward", "backward")
        ]
        forward, last = read(states, ways[0], config.cell)
        backward, first = read(states[::-1], ways[1], config.cell)
        states = np.concatenate([forward, backward[::-1]], axis=1)
    return states, tuple(np.concatenate(pair) for pair in zip(last, first, strict=True))


def score(config: Any, weights: Weights, h: np.ndarray, m: np.ndarray) -> float:
    """How well a state fits one place of the memory."""
    if config.attention == "luong":  # h W m
        return h @ (m @ weights["key/kernel"])
    # v tanh(W h + U m + b)
    return float(
        (
            np.tanh(
                h @ weights["query/kernel"]
                + m @ weights["key/kernel"]
                + weights["key/bias"]
            )
            @ weights["score/kernel"]
        )[0]
    )


def recurrent(
    config: Any, weights: Weights, source: np.ndarray, target: np.ndarray
) -> Document:
    """One document: int [S] without padding and [T]."""
    memory, ends = encode(config, weights, source)
    step, tensors = CELLS[config.cell]
    first = [
        np.tanh(dense(ends[i % tensors], weights, f"bridge_{i}"))
        for i in range(tensors * config.decoder_layers)
    ]
    cells = [
        tuple(first[layer * tensors : (layer + 1) * tensors])
        for layer in range(config.decoder_layers)
    ]
    if config.convolutional_gate:
        memory = convolutional_gate(memory, below(weights, "convolutional_gate"))
    inputs = weights["embedding/table"][target] * math.sqrt(config.width)
    output, states, shares = np.zeros(config.width), [], []
    for x in inputs:
        h = np.concatenate([x, output]) if config.input_feeding else x
        for layer, state in enumerate(cells):
            cells[layer] = step(h, state, below(weights, f"decoder_{layer}"))
            h = cells[layer][0]
        shares.append(
            softmax(
                np.array(
                    [score(config, below(weights, "attention"), h, m) for m in memory]
                )
            )
        )
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
