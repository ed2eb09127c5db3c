"""The pointer-generator output (See et al. 2017) in plain numpy and float64, token by
token.
"""

import math

import numpy as np

from support.plain_layers import Weights, dense, sigmoid, softmax


def mixture(
    generate: np.ndarray, vocabulary: np.ndarray, copy: np.ndarray, source: np.ndarray
) -> np.ndarray:
    """Equation 9 of See et al.: generate [B, T], vocabulary [B, T, V], copy [B, T, S],
    source int [B, S] -> P [B, T, V].
    """
    mixed = np.zeros(vocabulary.shape)
    for b in range(vocabulary.shape[0]):
        for t in range(vocabulary.shape[1]):
            for piece in range(vocabulary.shape[2]):
                mixed[b, t, piece] = generate[b, t] * vocabulary[b, t, piece]
            for s in range(source.shape[1]):
                mixed[b, t, source[b, s]] += (1 - generate[b, t]) * copy[b, t, s]
    return mixed


def pointer(
    states: np.ndarray,
    inputs: np.ndarray,
    memory: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
) -> tuple[np.ndarray, ...]:
    """One document: states and inputs [T, D], memory [S, D], readable bool [S] -> p_gen
    [T] and the copy distributions [T, S].
    """
    length, width = states.shape
    query, key = dense(states, weights, "query"), dense(memory, weights, "key")
    copy, generate, coverage = (
        np.zeros((length, len(memory))),
        np.zeros(length),
        np.zeros(len(memory)),
    )
    open_positions = [s for s in range(len(memory)) if readable[s]]
    for t in range(length):
        scores = [
            query[t] @ key[s] / math.sqrt(width)
            + weights.get("coverage_weight", 0.0) * coverage[s]
            for s in open_positions
        ]
        copy[t, open_positions] = softmax(np.array(scores))
        coverage += copy[t]
        context = sum(copy[t, s] * memory[s] for s in open_positions)
        kernel, depth = weights["gate/kernel"][:, 0], memory.shape[1]
        # w_c . context + w_s . state + w_x . input + b
        score = (
            kernel[:depth] @ context
            + kernel[depth : depth + width] @ states[t]
            + kernel[depth + width :] @ inputs[t]
        )
        generate[t] = sigmoid(score + weights["gate/bias"][0])
    return generate, copy
