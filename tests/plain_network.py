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


def layer_norm(states: np.ndarray, weights: Weights, epsilon: float = 1e-6) -> np.ndarray:
    rows = []
    for row in states.reshape(-1, states.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        rows.append((row - mean) / math.sqrt(variance + epsilon) * weights["norm/gamma"] + weights["norm/beta"])
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


def feed_forward(states: np.ndarray, weights: Weights, activation: str = "relu") -> np.ndarray:
    inner = dense(states, weights, "inner")
    return dense(np.array([activate(activation, x) for x in inner.flat]).reshape(inner.shape), weights, "outer")


def encoder_block(states: np.ndarray, readable: np.ndarray, weights: Weights, config: Any) -> np.ndarray:
    """One document: states [S, D], readable bool [S]."""
    mask = np.tile(readable, (len(states), 1))
    read = multi_head(states, states, mask, below(weights, "attention"), config.heads)
    states = layer_norm(states + read, below(weights, "attention_residual"), config.norm_epsilon)
    inner = feed_forward(states, below(weights, "feed_forward"), config.activation)
    return layer_norm(states + inner, below(weights, "feed_forward_residual"), config.norm_epsilon)


def decoder_block(states: np.ndarray, memory: np.ndarray, readable: np.ndarray, weights: Weights, config: Any) -> np.ndarray:
    """One document: states [T, D], memory [S, D], readable bool [S]."""
    length, heads = len(states), config.decoder_heads or config.heads
    past = np.array([[earlier <= t for earlier in range(length)] for t in range(length)])
    read = multi_head(states, states, past, below(weights, "self_attention"), heads)
    states = layer_norm(states + read, below(weights, "self_residual"), config.norm_epsilon)
    read = multi_head(states, memory, np.tile(readable, (length, 1)), below(weights, "cross_attention"), heads)
    states = layer_norm(states + read, below(weights, "cross_residual"), config.norm_epsilon)
    inner = feed_forward(states, below(weights, "feed_forward"), config.activation)
    return layer_norm(states + inner, below(weights, "feed_forward_residual"), config.norm_epsilon)


def embed(ids: np.ndarray, weights: Weights, config: Any, side: str) -> np.ndarray:
    """What enters the first block; `side` is source_input or target_input."""
    table = weights["embedding/table"]
    scale = math.sqrt(table.shape[1]) if config.scaled_embedding else 1.0
    codes = weights[f"{side}/positions"] if config.positions == "learned" else positions(len(ids), table.shape[1])
    states = np.array([table[piece] * scale + codes[place] for place, piece in enumerate(ids)])
    return layer_norm(states, below(weights, side), config.norm_epsilon) if config.embedding_norm else states


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


def document(config: Any, weights: Weights, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, ...]:
    """One document, int [S] and [T] -> logits [T, V] of the output layer, states and inputs [T, D], memory [S, D]."""
    readable, memory = source != config.pad_id, embed(source, weights, config, "source_input")
    for i in range(config.encoder_layers):
        memory = encoder_block(memory, readable, below(weights, f"encoder_{i}"), config)
    states = inputs = embed(target, weights, config, "target_input")
    for i in range(config.decoder_layers):
        states = decoder_block(states, memory, readable, below(weights, f"decoder_{i}"), config)
    if config.tied_output:
        logits = states @ weights["embedding/table"].T + (weights["embedding/logits_bias"] if config.logits_bias else 0.0)
    else:
        logits = dense(states, weights, "output_layer")
    return logits, states, inputs, memory


def transformer(config: Any, weights: Weights, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Distributions of every next token of a batch: source int [B, S], target int [B, T] -> P [B, T, V]."""
    rows = []
    for ids, written in zip(source, target, strict=True):
        logits, states, inputs, memory = document(config, weights, ids, written)
        if config.pointer:
            rows.append(pointer(logits, states, inputs, ids, memory, ids != config.pad_id, below(weights, "pointer")))
        else:
            rows.append(np.array([softmax(row) for row in logits]))
    return np.array(rows)
