"""The forward pass of BART, PEGASUS and T5 in plain numpy and float64, on tensors under
the names that transformers gives them.

An independent route to what an imported network computes: it knows neither the layers
of `model.network` nor how they are filled.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_new": lambda x: (
        x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    ),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


class PlainCheckpoint:
    """One checkpoint, read document by document.

    The names of its parts, the attentions first: (attention, its linear layers, its
    norm), then (feed-forward, its norm).
    """

    def __init__(
        self, settings: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
    ) -> None:
        self.settings = settings
        self.weights: dict[str, Any] = {
            name.removeprefix("model."): np.asarray(tensor, "float64")
            for name, tensor in tensors.items()
        }
        self.is_t5, self.is_bart = (
            settings["model_type"] in ("t5", "mt5"),
            settings["model_type"] == "bart",
        )

    def encode(self, source: np.ndarray) -> np.ndarray:
        """The last states of a source without padding, int [S] -> [S, D]."""
        return self._run("encoder", source, None)

    def logits(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """What may come after each token of a target, int [T] -> [T, V]."""
        states, weights = (
            self._run("decoder", target, self.encode(source)),
            self.weights,
        )
        if "lm_head.weight" in weights:
            return states @ weights["lm_head.weight"].T
        logits = states @ weights["shared.weight"].T
        return (
            logits / math.sqrt(states.shape[1])
            if self.is_t5
            else logits + weights["final_logits_bias"][0]
        )

    def _run(self, side: str, ids: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
        states = self._embed(side, ids)
        visible = (
            np.ones((len(ids), len(ids)), bool)
            if memory is None
            else np.tri(len(ids), dtype=bool)
        )
        own = np.where(visible, 0.0, -np.inf) + (
            self._distances(side, len(ids)) if self.is_t5 else 0.0
        )  # [H, T, T]
        for layer in range(self._layers(side)):
            block = (
                f"{side}.block.{layer}.layer"
                if self.is_t5
                else f"{side}.layers.{layer}"
            )
            name, norm = (
                (f"{block}.0.SelfAttention", f"{block}.0.layer_norm")
                if self.is_t5
                else _bart_names(block, "self_attn")
            )
            states = self._sublayer(
                states, norm, lambda x, name=name: self._attend(side, name, x, x, own)
            )
            if memory is not None:
                name, norm = (
                    (f"{block}.1.EncDecAttention", f"{block}.1.layer_norm")
                    if self.is_t5
                    else _bart_names(block, "encoder_attn")
                )
                states = self._sublayer(
                    states,
                    norm,
                    lambda x, name=name: self._attend(side, name, x, memory, 0.0),
                )
            name = f"{block}.{1 if memory is None else 2}" if self.is_t5 else block
            norm = f"{name}.layer_norm" if self.is_t5 else f"{name}.final_layer_norm"
            states = self._sublayer(
                states, norm, lambda x, name=name: self._feed_forward(name, x)
            )
        if self.is_bart:
            return states
        return self._norm(
            f"{side}.final_layer_norm" if self.is_t5 else f"{side}.layer_norm", states
        )

    def _embed(self, side: str, ids: np.ndarray) -> np.ndarray:
        states, width = self.weights["shared.weight"][ids], self.settings["d_model"]
        if self.is_t5:
            return states
        if self.settings["scale_embedding"]:
            states = states * math.sqrt(width)
        if self.is_bart:
            states = (
                states
                + self.weights[f"{side}.embed_positions.weight"][2 : len(ids) + 2]
            )
            return self._norm(f"{side}.layernorm_embedding", states)
        angles = [
            [place / 10000 ** (2 * i / width) for i in range(width // 2)]
            for place in range(len(ids))
        ]
        return states + np.array(
            [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
        )

    def _layers(self, side: str) -> int:
        if self.is_t5:
            return self.settings[
                "num_layers" if side == "encoder" else "num_decoder_layers"
            ]
        return self.settings[f"{side}_layers"]

    def _sublayer(self, states: np.ndarray, norm: str, update: Any) -> np.ndarray:
        return (
            self._norm(norm, states + update(states))
            if self.is_bart
            else states + update(self._norm(norm, states))
        )

    def _norm(self, name: str, states: np.ndarray) -> np.ndarray:
        weight = self.weights[f"{name}.weight"]
        if self.is_t5:
            return (
                states
                / np.sqrt(
                    (states**2).mean(-1, keepdims=True)
                    + self.settings["layer_norm_epsilon"]
                )
                * weight
            )
        centred = states - states.mean(-1, keepdims=True)
        return (
            centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight
            + self.weights[f"{name}.bias"]
        )

    def _linear(self, name: str, states: np.ndarray) -> np.ndarray:
        return states @ self.weights[f"{name}.weight"].T + self.weights.get(
            f"{name}.bias", 0.0
        )

    def _attend(
        self, side: str, name: str, states: np.ndarray, memory: np.ndarray, added: Any
    ) -> np.ndarray:
        heads = (
            self.settings["num_heads"]
            if self.is_t5
            else self.settings[f"{side}_attention_heads"]
        )
        parts = (
            ("q", "k", "v", "o")
            if self.is_t5
            else ("q_proj", "k_proj", "v_proj", "out_proj")
        )
        read_from = zip(parts, (states, memory, memory), strict=False)
        query, key, value = (
            np.stack(np.split(self._linear(f"{name}.{part}", x), heads, axis=-1))
            for part, x in read_from
        )
        scores = (
            query
            @ key.swapaxes(1, 2)
            / (1.0 if self.is_t5 else math.sqrt(query.shape[-1]))
            + added
        )  # [H, T, S]
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        read = shares / shares.sum(-1, keepdims=True) @ value
        return self._linear(f"{name}.{parts[3]}", np.concatenate(list(read), axis=-1))

    def _feed_forward(self, name: str, states: np.ndarray) -> np.ndarray:
        if not self.is_t5:
            return self._linear(
                f"{name}.fc2",
                ACTIVATIONS[self.settings["activation_function"]](
                    self._linear(f"{name}.fc1", states)
                ),
            )
        name, kind = f"{name}.DenseReluDense", self.settings["feed_forward_proj"]
        if not kind.startswith("gated-"):
            return self._linear(
                f"{name}.wo", ACTIVATIONS[kind](self._linear(f"{name}.wi", states))
            )
        activation = ACTIVATIONS[
            "gelu_new" if kind == "gated-gelu" else kind.removeprefix("gated-")
        ]
        return self._linear(
            f"{name}.wo",
            activation(self._linear(f"{name}.wi_0", states))
            * self._linear(f"{name}.wi_1", states),
        )

    def _distances(self, side: str, length: int) -> np.ndarray:
        """What is added to scores, [H, T, T] (Raffel et al. 2020, section 2.1)."""
        buckets, longest = (
            self.settings["relative_attention_num_buckets"],
            self.settings["relative_attention_max_distance"],
        )
        table = self.weights[
            f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        ]
        half = buckets // 2 if side == "encoder" else buckets
        added = np.zeros((table.shape[1], length, length))
        for query in range(length):
            for key in range(length):
                back, bucket = query - key, 0
                if (
                    side == "encoder" and back < 0
                ):  # the second half of the buckets is for what comes later
                    back, bucket = -back, half
                exact = half // 2
                if back < exact:
                    bucket += max(back, 0)
                else:
                    bucket += min(
                        half - 1,
                        exact
                        + int(
                            math.log(back / exact)
                            / math.log(longest / exact)
                            * (half - exact)
                        ),
                    )
                added[:, query, key] = table[bucket]
        return added


def _bart_names(block: str, attention: str) -> tuple[str, str]:
    return f"{block}.{attention}", f"{block}.{attention}_layer_norm"
