"""The decoder-only network in plain numpy and float64, document by document and without
padding; `plain_recurrent` has the recurrent network. transformers is the judge of
encoder-decoders.
"""

from typing import Any, NamedTuple

import numpy as np

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
    generate, copy = pointer(
        states, inputs, memory, np.ones(len(memory), bool), below(weights, "pointer")
    )
    mixed = mixture(generate[None], vocabulary[None], copy[None], source[None])[0]
    return Document(logits, mixed, [*maps, ("copy", 0, copy[None])])


def decoder_only(
    config: Any, weights: Weights, source: np.ndarray, target: np.ndarray
) -> Document:
    """One document: source int [S] without padding and target [T] are one sequence;
    what it says is read off behind the source.
    """
    sequence, length = np.concatenate([source, target]), len(source)
    table, numbers, maps = weights["embedding/table"], None, []
    entered = states = embed(
        sequence,
        table,
        below(weights, "input_layer"),
        config,
        is_scaled=config.scaled_embedding,
    )
    if config.positions == "relative":
        every = range(len(sequence))
        numbers = relative_numbers(
            weights["relative_positions/table"],
            every,
            every,
            config,
            is_bidirectional=False,
        )
    for i in range(config.layers):
        states, share = block(
            states, past(len(sequence)), below(weights, f"block_{i}"), config, numbers
        )
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
