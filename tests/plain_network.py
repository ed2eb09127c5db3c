"""The Transformer's formulas in plain numpy and float64, loop by loop: what `model.network` is checked against.

Attention takes its softmax over the readable positions alone, so that no masked score exists here; heads are slices of the weights.
"""

import math
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]


def scramble(layer: Any, *, seed: int, scale: float = 0.5) -> None:
    """Replaces every weight of a built layer, biases and norms too: zeros and ones hide mistakes. Norms scale around one."""
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(weight.path.endswith("gamma"), scale, weight.shape).astype("float32") for weight in layer.weights]
    layer.set_weights(drawn)


def weights_of(layer: Any) -> Weights:
    """A layer's weights by path, without the layer's own name."""
    return {weight.path.split("/", 1)[1]: np.asarray(weight.numpy(), "float64") for weight in layer.weights}


def below(weights: Weights, part: str) -> Weights:
    """The weights of a part: `attention/query/kernel` is `query/kernel` below `attention`."""
    return {path[len(part) + 1 :]: value for path, value in weights.items() if path.startswith(f"{part}/")}


def positions(length: int, width: int) -> np.ndarray:
    codes = np.zeros((length, width))
    for position in range(length):
        for i in range(width // 2):
            codes[position, 2 * i] = math.sin(position / 10000 ** (2 * i / width))
            codes[position, 2 * i + 1] = math.cos(position / 10000 ** (2 * i / width))
    return codes


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = [math.exp(score - max(scores)) for score in scores]
    return np.array(exponentials) / sum(exponentials)


def dense(states: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return np.einsum("...i,ij->...j", states, weights[f"{name}/kernel"]) + weights[f"{name}/bias"]


def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, readable: np.ndarray) -> np.ndarray:
    """One head of one document: query [T, d], key and value [S, d], readable bool [T, S] -> [T, d]."""
    read = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        open_positions = [s for s in range(len(key)) if readable[t, s]]
        shares = softmax(np.array([query[t] @ key[s] / math.sqrt(query.shape[1]) for s in open_positions]))
        for share, s in zip(shares, open_positions, strict=True):
            read[t] += share * value[s]
    return read


def multi_head(states: np.ndarray, memory: np.ndarray, readable: np.ndarray, weights: Weights, heads: int) -> np.ndarray:
    """One document: states [T, D], memory [S, D], readable bool [T, S] -> [T, D]."""
    depth = states.shape[1] // heads
    total = np.zeros((len(states), states.shape[1])) + weights["output/bias"]
    for head in range(heads):
        own = slice(head * depth, (head + 1) * depth)
        query, key, value = (
            read_from @ weights[f"{name}/kernel"][:, own] + weights[f"{name}/bias"][own]
            for name, read_from in (("query", states), ("key", memory), ("value", memory))
        )
        total += attention(query, key, value, readable) @ weights["output/kernel"][own]
    return total


def layer_norm(states: np.ndarray, weights: Weights) -> np.ndarray:
    rows = []
    for row in states.reshape(-1, states.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        rows.append((row - mean) / math.sqrt(variance + 1e-6) * weights["norm/gamma"] + weights["norm/beta"])
    return np.array(rows).reshape(states.shape)


def feed_forward(states: np.ndarray, weights: Weights) -> np.ndarray:
    return dense(np.maximum(dense(states, weights, "inner"), 0.0), weights, "outer")


def encoder_block(states: np.ndarray, readable: np.ndarray, weights: Weights, heads: int) -> np.ndarray:
    """One document: states [S, D], readable bool [S]."""
    mask = np.tile(readable, (len(states), 1))
    read = multi_head(states, states, mask, below(weights, "attention"), heads)
    states = layer_norm(states + read, below(weights, "attention_residual"))
    return layer_norm(states + feed_forward(states, below(weights, "feed_forward")), below(weights, "feed_forward_residual"))


def decoder_block(states: np.ndarray, memory: np.ndarray, readable: np.ndarray, weights: Weights, heads: int) -> np.ndarray:
    """One document: states [T, D], memory [S, D], readable bool [S]."""
    length = len(states)
    past = np.array([[earlier <= t for earlier in range(length)] for t in range(length)])
    states = layer_norm(states + multi_head(states, states, past, below(weights, "self_attention"), heads), below(weights, "self_residual"))
    read = multi_head(states, memory, np.tile(readable, (length, 1)), below(weights, "cross_attention"), heads)
    states = layer_norm(states + read, below(weights, "cross_residual"))
    return layer_norm(states + feed_forward(states, below(weights, "feed_forward")), below(weights, "feed_forward_residual"))


def embed(ids: np.ndarray, weights: Weights) -> np.ndarray:
    table = weights["embedding/table"]
    return np.array([table[piece] * math.sqrt(table.shape[1]) for piece in ids]) + positions(len(ids), table.shape[1])


def mixture(generate: np.ndarray, vocabulary: np.ndarray, copy: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Equation 9 of See et al.: generate [B, T], vocabulary [B, T, V], copy [B, T, S], source int [B, S] -> P [B, T, V]."""
    mixed = np.zeros(vocabulary.shape)
    for b in range(vocabulary.shape[0]):
        for t in range(vocabulary.shape[1]):
            for piece in range(vocabulary.shape[2]):
                mixed[b, t, piece] = generate[b, t] * vocabulary[b, t, piece]
            for s in range(source.shape[1]):
                mixed[b, t, source[b, s]] += (1 - generate[b, t]) * copy[b, t, s]
    return mixed


def pointer(
    logits: np.ndarray,
    states: np.ndarray,
    inputs: np.ndarray,
    source: np.ndarray,
    memory: np.ndarray,
    readable: np.ndarray,
    weights: Weights,
) -> np.ndarray:
    """One document: logits [T, V], states and inputs [T, D], source int [S], memory [S, D], readable bool [S] -> P [T, V]."""
    length, width = states.shape
    query, key = dense(states, weights, "query"), dense(memory, weights, "key")
    copy, generate = np.zeros((length, len(source))), np.zeros(length)
    for t in range(length):
        open_positions = [s for s in range(len(source)) if readable[s]]
        copy[t, open_positions] = softmax(np.array([query[t] @ key[s] / math.sqrt(width) for s in open_positions]))
        context = sum(copy[t, s] * memory[s] for s in open_positions)
        kernel = weights["gate/kernel"][:, 0]
        # w_c . context + w_s . state + w_x . input + b
        score = kernel[:width] @ context + kernel[width : 2 * width] @ states[t] + kernel[2 * width :] @ inputs[t] + weights["gate/bias"][0]
        generate[t] = 1 / (1 + math.exp(-score))
    vocabulary = np.array([softmax(row) for row in logits])
    return mixture(generate[None], vocabulary[None], copy[None], source[None])[0]


def transformer(config: Any, weights: Weights, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Distributions of every next token of a batch: source int [B, S], target int [B, T] -> P [B, T, V]."""
    rows = []
    for ids, written in zip(source, target, strict=True):
        readable, memory = ids != config.pad_id, embed(ids, weights)
        for i in range(config.encoder_layers):
            memory = encoder_block(memory, readable, below(weights, f"encoder_{i}"), config.heads)
        states = inputs = embed(written, weights)
        for i in range(config.decoder_layers):
            states = decoder_block(states, memory, readable, below(weights, f"decoder_{i}"), config.heads)
        logits = states @ weights["embedding/table"].T if config.tied_output else dense(states, weights, "output_layer")
        if config.pointer:
            rows.append(pointer(logits, states, inputs, ids, memory, readable, below(weights, "pointer")))
        else:
            rows.append(np.array([softmax(row) for row in logits]))
    return np.array(rows)
