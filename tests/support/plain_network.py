"""The networks of blocks in plain numpy and float64, document by document and without
padding; `plain_recurrent` has the recurrent network.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from support.plain_convolutional_gate import convolutional_gate
from support.plain_layers import (
    Weights,
    below,
    block,
    dense,
    embed,
    norm,
    past,
    relative_numbers,
    softmax,
)
from support.plain_pointer import mixture, pointer

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
