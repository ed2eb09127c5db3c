"""The pointer-generator output (See et al. 2017) in plain numpy and float64, token by
token.
"""

import math

import numpy as np

from support.plain_layers import Weights, dense, sigmoid, softmax


def mixture(
    generate: np.ndarray, vocabulary: np.ndarray, copy: np.ndarray, source: np.ndarray
) -> np.ndarray:
    """Equation 9 of See et al., of one document: generate [T], vocabulary [T, V], copy
    [T, S], source int [S] -> P [T, V].
    """
    mixed = generate[:, None] * vocabulary
    for t in range(len(mixed)):
        for s, token in enumerate(source):
            mixed[t, token] += (1 - generate[t]) * copy[t, s]
    return mixed


def pointer(
    states: np.ndarray, inputs: np.ndarray, memory: np.ndarray, weights: Weights
) -> tuple[np.ndarray, ...]:
    """One document: states and inputs [T, D], memory [S, D] -> p_gen [T] and the copy
    distributions [T, S].
    """
    length, width = states.shape
    query, key = dense(states, weights, "query"), dense(memory, weights, "key")
    copy, generate = np.zeros((length, len(memory))), np.zeros(length)
    for t in range(length):
        copy[t] = softmax(key @ query[t] / math.sqrt(width))
        context = copy[t] @ memory
        kernel, depth = weights["gate/kernel"][:, 0], memory.shape[1]
        # w_c . context + w_s . state + w_x . input + b
        score = (
            kernel[:depth] @ context
            + kernel[depth : depth + width] @ states[t]
            + kernel[depth + width :] @ inputs[t]
        )
        generate[t] = sigmoid(score + weights["gate/bias"][0])
    return generate, copy
