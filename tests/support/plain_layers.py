"""The parts of the networks in plain numpy and float64, for one document, written from
the formulas of the papers; `model.network` must equal them.

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
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def dense(states: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """A linear layer, with a bias if it has one."""
    return states @ weights[f"{name}/kernel"] + weights.get(f"{name}/bias", 0.0)


def sinusoidal(place: int, width: int, *, in_halves: bool) -> list[float]:
    """The code of one position: sine, cosine, sine, ... or all sines before all
    cosines.
    """
    angles = [place / 10000 ** (2 * i / width) for i in range(width // 2)]
    pairs = [(math.sin(angle), math.cos(angle)) for angle in angles]
    if in_halves:
        pairs = list(zip(*pairs, strict=True))
    return [value for pair in pairs for value in pair]


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
    buckets = [[bucket(key - query, **settings) for key in keys] for query in queries]
    return np.moveaxis(table[np.array(buckets)], -1, 0)


def frequency(number: int, depth: int, config: Any) -> float:
    """The angle of one position. Waves that are longer than a part of a length are
    longer by a factor, those that are shorter than another part are as they were, and
    between them the frequency changes in proportion to the waves that fit the length.
    """
    plain = config.rotary_base ** (-2 * number / depth)
    if not config.rotary_scaling:
        return plain
    factor, low, high, length = config.rotary_scaling
    wave = 2 * math.pi / plain
    if wave > length / low:
        return plain / factor
    if wave < length / high:
        return plain
    share = (length / wave - low) / (high - low)
    return (1 - share) * plain / factor + share * plain


def rotated(heads: np.ndarray, config: Any) -> np.ndarray:
    """Heads [T, D/H] at positions 0, 1, ...: numbers i and i + D/2H are a complex
    number, which is multiplied by e^(j pos theta^(-2i / (D/H))).
    """
    length, depth = heads.shape
    points = heads[:, : depth // 2] + 1j * heads[:, depth // 2 :]
    angles = [
        [place * frequency(i, depth, config) for i in range(depth // 2)]
        for place in range(length)
    ]
    points = points * np.exp(1j * np.array(angles))
    return np.concatenate([points.real, points.imag], axis=1)


def multi_head(
    states: np.ndarray,
    memory: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
    config: Any,
    numbers: Any = None,
    source: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States [T, D], memory [S, D], readable bool [T, S], numbers [H, T, S] -> [T, D]
    and the weights [H, T, S]. A source is read in front of the memory.
    """
    depth = config.head_width or config.width // config.heads
    read = memory if source is None else np.concatenate([source, memory])
    query, key, value = (
        dense(inputs, weights, name)
        for name, inputs in (("query", states), ("key", read), ("value", read))
    )
    scale = 1 / math.sqrt(config.score_width or depth) if config.scaled_scores else 1.0
    groups = config.heads // (config.kv_heads or config.heads)
    shares = np.zeros((config.heads, len(states), len(read)))
    contexts = []
    for head in range(config.heads):
        first = head // groups * depth  # of its group
        queries = query[:, head * depth : (head + 1) * depth]
        keys, values = key[:, first : first + depth], value[:, first : first + depth]
        if config.qk_norm:
            queries = rms(queries, config) * weights["query_norm/scale"]
            keys = rms(keys, config) * weights["key_norm/scale"]
        if config.positions == "rotary" and memory is states:
            first = len(read) - len(memory)
            own = rotated(keys[first:], config)
            queries, keys = (
                rotated(queries, config),
                np.concatenate([keys[:first], own]),
            )
        for t, is_open in enumerate(readable):
            scores = scale * keys[is_open] @ queries[t]
            if numbers is not None:
                scores = scores + numbers[head, t, is_open]
            shares[head, t, is_open] = softmax(scores)
        contexts.append(shares[head] @ values)
    return dense(np.concatenate(contexts, axis=1), weights, "output"), shares


def rms(states: np.ndarray, config: Any) -> np.ndarray:
    return states / np.sqrt(
        (states**2).mean(axis=-1, keepdims=True) + config.norm_epsilon
    )


def norm(states: np.ndarray, weights: Weights, config: Any) -> np.ndarray:
    """LayerNorm, or RMSNorm: x over the root of the mean of x^2."""
    if not config.rms_norm:
        states = states - states.mean(axis=-1, keepdims=True)
    normed = rms(states, config)
    if config.rms_norm:
        return normed * weights["scale"]
    return normed * weights["gamma"] + weights.get("beta", 0.0)


def activate(name: str, x: float) -> float:
    return {
        "relu": lambda: max(x, 0.0),
        # x times the normal distribution function
        "gelu": lambda: x * (1 + math.erf(x / math.sqrt(2))) / 2,
        # Hendrycks and Gimpel 2016, section 2
        "gelu_tanh": lambda: (
            x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        ),
        "silu": lambda: x / (1 + math.exp(-x)),
    }[name]()


def feed_forward(states: np.ndarray, weights: Weights, config: Any) -> np.ndarray:
    inner = dense(states, weights, "inner")
    active = np.vectorize(lambda x: activate(config.activation, x))(inner)
    if config.gated_feed_forward:
        active = active * dense(states, weights, "gate")
    return dense(active, weights, "outer")


def residual(
    states: np.ndarray,
    sublayer: Callable[[np.ndarray], np.ndarray],
    weights: Weights,
    config: Any,
) -> np.ndarray:
    """norm(x + f(x)), or with the norm first x + f(norm(x)); without one x + f(x)."""
    if not below(weights, "norm"):
        return states + sublayer(states)
    if config.norm_first:
        update = sublayer(norm(states, below(weights, "norm"), config))
        if config.both_norms:
            update = norm(update, below(weights, "update_norm"), config)
        return states + update
    return norm(states + sublayer(states), below(weights, "norm"), config)


def block(
    states: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
    config: Any,
    numbers: Any = None,
    *,
    memory: np.ndarray | None = None,
    memory_readable: Any = None,
    source: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """States [T, D], readable bool [T, T], numbers [H, T, T] -> [T, D] and the weights
    [H, T, T]; of a decoder with a memory [S, D], readable bool [S], also [H, T, S].
    """
    shares: list[np.ndarray] = []

    def attend(part: str, memory: Any, readable: np.ndarray, numbers: Any) -> Any:
        def sublayer(inputs: np.ndarray) -> np.ndarray:
            read = inputs if memory is None else memory
            own = below(weights, part)
            update, share = multi_head(
                inputs, read, readable, own, config, numbers, source
            )
            shares.append(share)
            return update

        return sublayer

    name, part = "attention_residual", "attention"
    if memory is not None:
        name, part = "self_residual", "self_attention"
    sublayers = {name: attend(part, None, readable, numbers)}
    if memory is not None:
        every = np.tile(memory_readable, (len(states), 1))
        sublayers["cross_residual"] = attend("cross_attention", memory, every, None)
    sublayers["feed_forward_residual"] = lambda inputs: feed_forward(
        inputs, below(weights, "feed_forward"), config
    )
    for name, sublayer in sublayers.items():
        states = residual(states, sublayer, below(weights, name), config)
    return states, *shares


def past(length: int) -> np.ndarray:
    """Who may read whom where each token reads itself and what stands before it, bool
    [T, T].
    """
    return np.tri(length, dtype=bool)


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
    states = table[ids] * (math.sqrt(width) if is_scaled else 1.0)
    places = range(first, first + len(ids))
    if config.positions == "learned":
        states = states + weights["positions"][list(places)]
    elif config.positions.startswith("sinusoidal"):
        in_halves = config.positions == "sinusoidal_halves"
        states = states + [
            sinusoidal(place, width, in_halves=in_halves) for place in places
        ]
    if config.embedding_norm:
        states = norm(states, below(weights, "norm"), config)
    return states
