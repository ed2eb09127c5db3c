"""The networks in plain numpy and float64, document by document and without padding."""

import dataclasses
import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from support.plain_layers import (
    Weights,
    below,
    block,
    dense,
    embed,
    multi_head,
    norm,
    past,
    relative_numbers,
    sigmoid,
    softmax,
)

Map = tuple[str, int, np.ndarray]  # of a block and its number, the weights [H, T, S]


class Document(NamedTuple):
    """The output of a network for one document.

    Attributes:
      logits: of the output layer, [T, V].
      probabilities: of each next token, [T, V].
      maps: the attention weights of each block.
    """

    logits: np.ndarray
    probabilities: np.ndarray
    maps: list[Map]


_ONE_HEAD = dict(heads=1, head_width=None, score_width=None, kv_heads=None)
_ONE_HEAD |= dict(qk_norm=False, scaled_scores=True, positions="")


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
        SimpleNamespace(width=states.shape[1], **_ONE_HEAD),
    )
    return states * sigmoid(gate)


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


def scramble(layer: Any, *, seed: int, scale: float = 0.5) -> None:
    """Replaces every weight of a built layer, biases and norms too, because zeros and
    ones hide mistakes. The scales of norms are drawn around one.
    """
    rng = np.random.default_rng(seed)
    drawn = [
        rng.normal(
            weight.path.endswith(("gamma", "norm/scale")), scale, weight.shape
        ).astype("float32")
        for weight in layer.weights
    ]
    layer.set_weights(drawn)


def weights_of(layer: Any) -> Weights:
    """A layer's weights by path, without the layer's own name."""
    return {
        weight.path.split("/", 1)[1]: np.asarray(weight.numpy(), "float64")
        for weight in layer.weights
    }


def finish(
    config: Any,
    weights: Weights,
    *,
    table: np.ndarray,
    states: np.ndarray,
    inputs: np.ndarray,
    memory: np.ndarray,
    source: np.ndarray,
    maps: list[Map],
) -> Document:
    """What follows a decoder, of one document: its states and inputs [T, D], memory [S,
    D], source int [S].
    """
    if config.tied_output:
        scale = (
            states.shape[1] ** -0.5 if getattr(config, "scaled_output", False) else 1.0
        )
        logits = scale * states @ table.T
        if getattr(config, "logits_bias", False):
            logits += weights[
                "embedding/logits_bias"
                if "embedding/logits_bias" in weights
                else "target_embedding/logits_bias"
            ]
    else:
        logits = dense(states, weights, "output_layer")
    vocabulary = np.array([softmax(row) for row in logits])
    if not config.pointer:
        return Document(logits, vocabulary, maps)
    generate, copy = pointer(states, inputs, memory, below(weights, "pointer"))
    mixed = mixture(generate, vocabulary, copy, source)
    return Document(logits, mixed, [*maps, ("copy", 0, copy[None])])


def numbers_of(
    weights: Weights, name: str, length: int, config: Any, *, is_bidirectional: bool
) -> np.ndarray | None:
    """What relative positions add to scores, [H, T, T]."""
    if config.positions != "relative":
        return None
    table, every = weights[f"{name}/table"], range(length)
    return relative_numbers(
        table, every, every, config, is_bidirectional=is_bidirectional
    )


def view(
    config: Any, number: int, readable: np.ndarray, reach: tuple[int, int]
) -> tuple[Any, np.ndarray]:
    """The configuration of a block, and what it reads, bool [T, T]: one of a window so
    many tokens before and behind.
    """
    if config.reach[number : number + 1] != "l":
        return config, readable
    places = np.arange(len(readable))
    distances = places - places[:, None]
    is_near = (-distances <= reach[0]) & (distances <= reach[1])
    of_block = dataclasses.replace(config, rotary_base=config.local_rotary_base)
    return of_block, readable & is_near


def transformer(
    config: Any, weights: Weights, source: np.ndarray, target: np.ndarray
) -> Document:
    """One document: source int [S] without padding and target [T]."""
    decoder, is_shared, maps = config.decoder, config.shared_embedding, []
    table = weights[f"{'' if is_shared else 'target_'}embedding/table"]
    states = embed(
        source,
        weights["embedding/table"],
        below(weights, "source_input"),
        config,
        is_scaled=config.scaled_embedding,
    )
    everything = np.ones((len(source), len(source)), bool)
    numbers = numbers_of(
        weights, "encoder_positions", len(source), config, is_bidirectional=True
    )
    for i in range(config.encoder_layers):
        own = below(weights, f"encoder_{i}")
        reach = (config.window - 1) // 2, config.window // 2
        of_block, readable = view(config, i, everything, reach)
        states, share = block(states, readable, own, of_block, numbers)
        if not config.reach:
            maps.append(("encoder", i, share))
    memory = states
    if config.norm_first:
        memory = norm(states, below(weights, "encoder_norm"), config)
    if config.convolutional_gate:
        memory = convolutional_gate(memory, below(weights, "convolutional_gate"))
    inputs = states = embed(
        target,
        table,
        below(weights, "target_input"),
        decoder,
        is_scaled=(config if is_shared else decoder).scaled_embedding,
    )
    numbers = numbers_of(
        weights, "decoder_positions", len(target), decoder, is_bidirectional=False
    )
    of_memory = {"memory": memory, "memory_readable": everything[0]}
    for i in range(config.decoder_layers):
        own = below(weights, f"decoder_{i}")
        reach = decoder.window - 1, 0
        of_block, readable = view(decoder, i, past(len(target)), reach)
        if config.merged_attention:
            of_source = np.ones((len(target), len(source)), bool)
            readable = np.concatenate([of_source, readable], axis=1)
            states, share = block(states, readable, own, of_block, source=memory)
            maps.append(("self", i, share))
            continue
        states, share, cross = block(
            states, readable, own, of_block, numbers, **of_memory
        )
        maps += [("self", i, share), ("cross", i, cross)]
    if decoder.norm_first:
        states = norm(states, below(weights, "decoder_norm"), decoder)
    parts = {"states": states, "inputs": inputs, "memory": memory}
    return finish(config, weights, table=table, **parts, source=source, maps=maps)


def decoder_only(
    config: Any, weights: Weights, source: np.ndarray, target: np.ndarray
) -> Document:
    """One document: source int [S] without padding and target [T] are one sequence;
    what it says is read off behind the source.
    """
    sequence, length = np.concatenate([source, target]), len(source)
    table, maps = weights["embedding/table"], []
    entered = states = embed(
        sequence,
        table,
        below(weights, "input_layer"),
        config,
        is_scaled=config.scaled_embedding,
    )
    numbers = numbers_of(
        weights, "relative_positions", len(sequence), config, is_bidirectional=False
    )
    for i in range(config.layers):
        reach = config.window - 1, 0
        of_block, readable = view(config, i, past(len(sequence)), reach)
        own = below(weights, f"block_{i}")
        states, share = block(states, readable, own, of_block, numbers)
        maps.append(share)
    if config.norm_first:
        states = norm(states, below(weights, "last_norm"), config)
    blocks = [
        ("encoder", i, share[:, :length, :length]) for i, share in enumerate(maps)
    ]
    blocks += [("self", i, share[:, length:]) for i, share in enumerate(maps)]
    parts = {
        "states": states[length:],
        "inputs": entered[length:],
        "memory": states[:length],
    }
    return finish(config, weights, table=table, **parts, source=source, maps=blocks)


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
