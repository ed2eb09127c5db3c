"""The forward pass of BART, PEGASUS and T5 in plain numpy and float64.

It is an independent route to the results of an imported network. It reads tensors under
the names of transformers and uses neither the layers of `model.network` nor the
converters.
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
    """A checkpoint that computes one document at a time.

    Args:
      settings: config.json.
      tensors: by name.
    """

    def __init__(
        self, settings: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
    ) -> None:
        self.settings = settings
        self.weights: dict[str, Any] = {
            name.removeprefix("model."): np.asarray(tensor, "float64")
            for name, tensor in tensors.items()
        }
        self.is_t5 = settings["model_type"] in ("t5", "mt5")
        self.is_bart = settings["model_type"] == "bart"

    def encode(self, source: np.ndarray) -> np.ndarray:
        """The last states of a source without padding, int [S] -> [S, D]."""
        return self._run("encoder", source, None)

    def logits(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The logits of the token after each token of a target, int [T] -> [T, V]."""
        states = self._run("decoder", target, self.encode(source))
        if "lm_head.weight" in self.weights:
            return states @ self.weights["lm_head.weight"].T
        logits = states @ self.weights["shared.weight"].T
        if self.is_t5:
            return logits / math.sqrt(states.shape[1])
        return logits + self.weights["final_logits_bias"][0]

    def _run(self, side: str, ids: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
        """The last states of a side; a decoder reads the memory of the encoder."""
        states = self._embed(side, ids)
        length = len(ids)
        visible = np.ones((length, length), bool)
        if memory is not None:
            visible = np.tri(length, dtype=bool)
        bias = np.where(visible, 0.0, -np.inf)  # [T, T]
        if self.is_t5:
            bias = bias + self._distances(side, length)  # [H, T, T]
        for layer in range(self._layers(side)):
            names = self._names(side, layer)

            def self_attention(x: np.ndarray, name: str = names["self"]) -> np.ndarray:
                return self._attend(side, name, x, x, bias)

            def cross_attention(
                x: np.ndarray, name: str = names["cross"]
            ) -> np.ndarray:
                return self._attend(side, name, x, memory, 0.0)

            def feed_forward(
                x: np.ndarray, name: str = names["feed_forward"]
            ) -> np.ndarray:
                return self._feed_forward(name, x)

            states = self._sublayer(states, names["self_norm"], self_attention)
            if memory is not None:
                states = self._sublayer(states, names["cross_norm"], cross_attention)
            states = self._sublayer(states, names["feed_forward_norm"], feed_forward)
        if self.is_bart:
            return states
        last_norm = "final_layer_norm" if self.is_t5 else "layer_norm"
        return self._norm(f"{side}.{last_norm}", states)

    def _names(self, side: str, layer: int) -> dict[str, str]:
        """The names of the parts of a layer."""
        if not self.is_t5:
            block = f"{side}.layers.{layer}"
            return {
                "self": f"{block}.self_attn",
                "self_norm": f"{block}.self_attn_layer_norm",
                "cross": f"{block}.encoder_attn",
                "cross_norm": f"{block}.encoder_attn_layer_norm",
                "feed_forward": block,
                "feed_forward_norm": f"{block}.final_layer_norm",
            }
        block = f"{side}.block.{layer}.layer"
        last = 1 if side == "encoder" else 2
        return {
            "self": f"{block}.0.SelfAttention",
            "self_norm": f"{block}.0.layer_norm",
            "cross": f"{block}.1.EncDecAttention",
            "cross_norm": f"{block}.1.layer_norm",
            "feed_forward": f"{block}.{last}.DenseReluDense",
            "feed_forward_norm": f"{block}.{last}.layer_norm",
        }

    def _embed(self, side: str, ids: np.ndarray) -> np.ndarray:
        states = self.weights["shared.weight"][ids]
        width = self.settings["d_model"]
        if self.is_t5:
            return states
        if self.settings["scale_embedding"]:
            states = states * math.sqrt(width)
        if self.is_bart:
            table = self.weights[f"{side}.embed_positions.weight"]
            states = states + table[2 : len(ids) + 2]
            return self._norm(f"{side}.layernorm_embedding", states)
        angles = [
            [position / 10000 ** (2 * i / width) for i in range(width // 2)]
            for position in range(len(ids))
        ]
        return states + np.array(
            [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
        )

    def _layers(self, side: str) -> int:
        if not self.is_t5:
            return self.settings[f"{side}_layers"]
        return self.settings[
            "num_layers" if side == "encoder" else "num_decoder_layers"
        ]

    def _sublayer(self, states: np.ndarray, norm: str, update: Any) -> np.ndarray:
        """A residual connection: BART is post-norm, PEGASUS and T5 are pre-norm."""
        if self.is_bart:
            return self._norm(norm, states + update(states))
        return states + update(self._norm(norm, states))

    def _norm(self, name: str, states: np.ndarray) -> np.ndarray:
        weight = self.weights[f"{name}.weight"]
        if self.is_t5:
            epsilon = self.settings["layer_norm_epsilon"]
            square = (states**2).mean(-1, keepdims=True)
            return states / np.sqrt(square + epsilon) * weight
        centred = states - states.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        bias = self.weights[f"{name}.bias"]
        return centred / np.sqrt(variance + 1e-5) * weight + bias

    def _linear(self, name: str, states: np.ndarray) -> np.ndarray:
        return states @ self.weights[f"{name}.weight"].T + self.weights.get(
            f"{name}.bias", 0.0
        )

    def _attend(
        self, side: str, name: str, states: np.ndarray, memory: np.ndarray, bias: Any
    ) -> np.ndarray:
        if self.is_t5:
            heads = self.settings["num_heads"]
            parts = ("q", "k", "v", "o")
        else:
            heads = self.settings[f"{side}_attention_heads"]
            parts = ("q_proj", "k_proj", "v_proj", "out_proj")

        def by_head(part: str, inputs: np.ndarray) -> np.ndarray:
            values = self._linear(f"{name}.{part}", inputs)
            return np.stack(np.split(values, heads, axis=-1))  # [H, T, D / H]

        query = by_head(parts[0], states)
        key = by_head(parts[1], memory)
        value = by_head(parts[2], memory)
        scale = 1.0 if self.is_t5 else math.sqrt(query.shape[-1])
        scores = query @ key.swapaxes(1, 2) / scale + bias  # [H, T, S]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        context = weights / weights.sum(-1, keepdims=True) @ value
        joined = np.concatenate(list(context), axis=-1)
        return self._linear(f"{name}.{parts[3]}", joined)

    def _feed_forward(self, name: str, states: np.ndarray) -> np.ndarray:
        if not self.is_t5:
            activation = ACTIVATIONS[self.settings["activation_function"]]
            inner = activation(self._linear(f"{name}.fc1", states))
            return self._linear(f"{name}.fc2", inner)
        kind = self.settings["feed_forward_proj"]
        if not kind.startswith("gated-"):
            inner = ACTIVATIONS[kind](self._linear(f"{name}.wi", states))
            return self._linear(f"{name}.wo", inner)
        # The version with a gate uses the approximation of gelu.
        kind = "gelu_new" if kind == "gated-gelu" else kind.removeprefix("gated-")
        gate = ACTIVATIONS[kind](self._linear(f"{name}.wi_0", states))
        inner = gate * self._linear(f"{name}.wi_1", states)
        return self._linear(f"{name}.wo", inner)

    def _distances(self, side: str, length: int) -> np.ndarray:
        """The bias of the scores, [H, T, T] (Raffel et al. 2020, section 2.1)."""
        table = self.weights[
            f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        ]
        bias = np.zeros((table.shape[1], length, length))
        for query in range(length):
            for key in range(length):
                bias[:, query, key] = table[self._bucket(side, query - key)]
        return bias

    def _bucket(self, side: str, distance: int) -> int:
        """The bucket of the position of a query minus that of a key."""
        buckets = self.settings["relative_attention_num_buckets"]
        longest = self.settings["relative_attention_max_distance"]
        first = 0
        if side == "encoder":
            buckets //= 2
            if distance < 0:  # The second half of the buckets is for later keys.
                distance = -distance
                first = buckets
        exact = buckets // 2
        if distance < exact:
            return first + max(distance, 0)
        ratio = math.log(distance / exact) / math.log(longest / exact)
        return first + min(buckets - 1, exact + int(ratio * (buckets - exact)))
