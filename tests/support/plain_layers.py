"""The parts of the networks in plain numpy and float64, written with loops from the
formulas of the papers; `model.network` must equal them.

The softmax of attention goes over the readable positions alone, so there are no masked
scores. Heads are slices of the weights. A `config` is a `StackConfig` or has its
fields.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]


def below(weights: Weights, part: str) -> Weights:
    """The weights of a part: `attention/query/kernel` is `query/kernel` below
    `attention`.
    """
    return {
        path[len(part) + 1 :]: value
        for path, value in weights.items()
        if path.startswith(f"{part}/")
    }


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = [math.exp(score - max(scores)) for score in scores]
    return np.array(exponentials) / sum(exponentials)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def dense(states: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """A linear layer, with a bias if it has one."""
    return np.einsum("...i,ij->...j", states, weights[f"{name}/kernel"]) + weights.get(
        f"{name}/bias", 0.0
    )


def sinusoidal(place: int, width: int, *, in_halves: bool) -> list[float]:
    """The code of one position: sine, cosine, sine, ... or all sines before all
    cosines.
    """
    angles = [place / 10000 ** (2 * i / width) for i in range(width // 2)]
    sines, cosines = (
        [math.sin(angle) for angle in angles],
        [math.cos(angle) for angle in angles],
    )
    return (
        [*sines, *cosines]
        if in_halves
        else [value for pair in zip(sines, cosines, strict=True) for value in pair]
    )


def bucket(distance: int, *, buckets: int, longest: int, is_bidirectional: bool) -> int:
    """The bucket of a key that stands `distance` behind its query, in whole numbers.

    Of n buckets the first e = n / 2 are for one distance each; the b-th of the others
    begins at e (longest / e)^(b / (n - e)).
    """
    first = 0
    if is_bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(0, -distance)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    shared = buckets - exact
    reached = [
        b
        for b in range(shared)
        if distance**shared * exact**b >= longest**b * exact**shared
    ]
    return first + exact + max(reached)


def relative_numbers(
    table: np.ndarray,
    queries: Sequence[int],
    keys: Sequence[int],
    config: Any,
    *,
    is_bidirectional: bool,
) -> np.ndarray:
    """What the scores of tokens at some positions get for others, [H, T, S]."""
    settings = {
        "buckets": config.relative_buckets,
        "longest": config.relative_distance,
        "is_bidirectional": is_bidirectional,
    }
    return np.array(
        [
            [
                [table[bucket(key - query, **settings), head] for key in keys]
                for query in queries
            ]
            for head in range(config.heads)
        ]
    )


def attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    readable: np.ndarray,
    numbers: Any = 0.0,
) -> tuple[np.ndarray, ...]:
    """One head of one document: query [T, d], key and value [S, d], readable bool [T,
    S], numbers added to scores [T, S].

    Returns:
      The context [T, d] and the weights [T, S].
    """
    weights, numbers = (
        np.zeros((len(query), len(key))),
        np.broadcast_to(numbers, readable.shape),
    )
    for t in range(len(query)):
        open_positions = [s for s in range(len(key)) if readable[t, s]]
        weights[t, open_positions] = softmax(
            np.array([query[t] @ key[s] + numbers[t, s] for s in open_positions])
        )
    return np.array(
        [
            sum(weights[t, s] * value[s] for s in range(len(key)))
            for t in range(len(query))
        ]
    ), weights


def multi_head(
    states: np.ndarray,
    memory: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
    config: Any,
    numbers: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One document: states [T, D], memory [S, D], readable bool [T, S], numbers [H, T,
    S] -> [T, D] and the weights [H, T, S].
    """
    depth = config.head_width or config.width // config.heads
    total, shares = (
        np.zeros((len(states), config.width)) + weights.get("output/bias", 0.0),
        [],
    )
    for head in range(config.heads):
        columns = slice(head * depth, (head + 1) * depth)
        query, key, value = (
            inputs @ weights[f"{name}/kernel"][:, columns]
            + weights.get(f"{name}/bias", np.zeros(depth * config.heads))[columns]
            for name, inputs in (
                ("query", states),
                ("key", memory),
                ("value", memory),
            )
        )
        if config.scaled_scores:
            query = query / math.sqrt(depth)
        context, share = attention(
            query, key, value, readable, 0.0 if numbers is None else numbers[head]
        )
        total += context @ weights["output/kernel"][columns]
        shares.append(share)
    return total, np.array(shares)


def norm(states: np.ndarray, weights: Weights, config: Any) -> np.ndarray:
    """LayerNorm, or RMSNorm: x over the root of the mean of x^2."""
    rows = []
    for row in states.reshape(-1, states.shape[-1]):
        mean = 0.0 if config.rms_norm else sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        normed = (row - mean) / math.sqrt(variance + config.norm_epsilon)
        rows.append(
            normed * weights["scale"]
            if config.rms_norm
            else normed * weights["gamma"] + weights["beta"]
        )
    return np.array(rows).reshape(states.shape)


def activate(name: str, x: float) -> float:
    if name == "relu":
        return max(x, 0.0)
    if name == "gelu":  # x times the normal distribution function
        return x * (1 + math.erf(x / math.sqrt(2))) / 2
    if name == "gelu_tanh":  # Hendrycks and Gimpel 2016, section 2
        return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    if name == "silu":
        return x / (1 + math.exp(-x))
    raise AssertionError(name)


def feed_forward(states: np.ndarray, weights: Weights, config: Any) -> np.ndarray:
    inner = dense(states, weights, "inner")
    active = np.array([activate(config.activation, x) for x in inner.flat]).reshape(
        inner.shape
    )
    return dense(
        active * dense(states, weights, "gate")
        if config.gated_feed_forward
        else active,
        weights,
        "outer",
    )


def residual(
    states: np.ndarray,
    sublayer: Callable[[np.ndarray], np.ndarray],
    weights: Weights,
    config: Any,
) -> np.ndarray:
    """norm(x + f(x)), or with the norm first x + f(norm(x))."""
    if config.norm_first:
        return states + sublayer(norm(states, below(weights, "norm"), config))
    return norm(states + sublayer(states), below(weights, "norm"), config)


def encoder_block(
    states: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
    config: Any,
    numbers: Any = None,
) -> tuple[np.ndarray, ...]:
    """One document: states [S, D], readable bool [S, S], numbers [H, S, S] -> [S, D]
    and the weights [H, S, S].
    """
    shares: list[np.ndarray] = []

    def attend(states: np.ndarray) -> np.ndarray:
        update, share = multi_head(
            states, states, readable, below(weights, "attention"), config, numbers
        )
        shares.append(share)
        return update

    states = residual(states, attend, below(weights, "attention_residual"), config)
    states = residual(
        states,
        lambda x: feed_forward(x, below(weights, "feed_forward"), config),
        below(weights, "feed_forward_residual"),
        config,
    )
    return states, shares[0]


def decoder_block(
    states: np.ndarray,
    memory: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
    config: Any,
    numbers: Any = None,
) -> tuple[np.ndarray, ...]:
    """One document: states [T, D], memory [S, D], readable bool [S], numbers [H, T, T]
    -> [T, D], weights [H, T, T] and [H, T, S].
    """
    length, shares = len(states), []

    def attend_to_targets(states: np.ndarray) -> np.ndarray:
        update, share = multi_head(
            states,
            states,
            past(length),
            below(weights, "self_attention"),
            config,
            numbers,
        )
        shares.append(share)
        return update

    def attend_to_source(states: np.ndarray) -> np.ndarray:
        update, share = multi_head(
            states,
            memory,
            np.tile(readable, (length, 1)),
            below(weights, "cross_attention"),
            config,
        )
        shares.append(share)
        return update

    states = residual(
        states, attend_to_targets, below(weights, "self_residual"), config
    )
    states = residual(
        states, attend_to_source, below(weights, "cross_residual"), config
    )
    states = residual(
        states,
        lambda x: feed_forward(x, below(weights, "feed_forward"), config),
        below(weights, "feed_forward_residual"),
        config,
    )
    return states, *shares


def past(length: int) -> np.ndarray:
    """Who may read whom where each token reads itself and what stands before it, bool
    [T, T].
    """
    return np.array(
        [[earlier <= t for earlier in range(length)] for t in range(length)]
    )


def embed(
    ids: np.ndarray,
    table: np.ndarray,
    weights: Weights,
    config: Any,
    *,
    is_scaled: bool,
    first: int = 0,
) -> np.ndarray:
    """What enters the first block of tokens that stand at position `first` and behind
    it; `weights` are those of the input layer.
    """
    width = table.shape[1]
    states = []
    for place, piece in enumerate(ids, start=first):
        code = np.zeros(width)
        if config.positions == "learned":
            code = weights["positions"][place]
        elif config.positions != "relative":
            code = np.array(
                sinusoidal(
                    place, width, in_halves=config.positions == "sinusoidal_halves"
                )
            )
        states.append(table[piece] * (math.sqrt(width) if is_scaled else 1.0) + code)
    return (
        norm(np.array(states), below(weights, "norm"), config)
        if config.embedding_norm
        else np.array(states)
    )
