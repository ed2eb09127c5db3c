"""The forward pass of BERT in plain numpy and float64, on tensors under the names that
transformers gives them.

It is an independent reference for imported encoders: it uses neither the layers of
`model.network` nor the code that fills them.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

# The parts of a layer, and their names in a layer of BERT and RoBERTa and in one of
# DistilBERT.
PARTS = ("query", "key", "value", "output", "attention_norm", "inner", "outer", "norm")
LAYERS = {
    "encoder.layer": (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    ),
    "transformer.layer": (
        *(f"attention.{part}_lin" for part in ("q", "k", "v", "out")),
        *("sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
    ),
}
_erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_new": lambda x: (
        x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    ),
    "relu": lambda x: np.maximum(x, 0),
}


def hidden_states(
    tensors: Mapping[str, np.ndarray],
    ids: np.ndarray,
    *,
    heads: int,
    activation: str,
    epsilon: float,
    first_position: int = 0,
) -> list[np.ndarray]:
    """The states of one text without padding, int [S]: the input of the first layer and
    the output of each, float64 [S, D].
    """
    weights: dict[str, Any] = {
        name: np.asarray(tensor, "float64") for name, tensor in tensors.items()
    }

    def linear(name: str, states: np.ndarray) -> np.ndarray:
        return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, states: np.ndarray) -> np.ndarray:
        centred = states - states.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return centred / deviation * scale + shift

    places = slice(first_position, first_position + len(ids))
    states = weights["embeddings.word_embeddings.weight"][ids]
    states = states + weights["embeddings.position_embeddings.weight"][places]
    if "embeddings.token_type_embeddings.weight" in weights:
        states = states + weights["embeddings.token_type_embeddings.weight"][0]
    all_states = [norm("embeddings.LayerNorm", states)]
    prefix = next(
        prefix for prefix in LAYERS if any(name.startswith(prefix) for name in weights)
    )
    number = 0
    while f"{prefix}.{number}.{LAYERS[prefix][0]}.weight" in weights:
        names = [f"{prefix}.{number}.{name}" for name in LAYERS[prefix]]
        part = dict(zip(PARTS, names, strict=True))
        states = all_states[-1]
        query, key, value = (
            np.stack(np.split(linear(part[name], states), heads, axis=-1))
            for name in ("query", "key", "value")
        )
        scores = np.exp(
            query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
        )  # [H, S, S]
        shares = scores / scores.sum(-1, keepdims=True)
        mixed = np.concatenate(list(shares @ value), axis=-1)  # [S, D]
        states = norm(part["attention_norm"], states + linear(part["output"], mixed))
        inner = ACTIVATIONS[activation](linear(part["inner"], states))
        all_states.append(norm(part["norm"], states + linear(part["outer"], inner)))
        number += 1
    return all_states
