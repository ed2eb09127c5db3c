"""The parts of a Transformer (Vaswani et al. 2017), in keras.ops: positions, masks, attention, blocks."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from model.config import EncoderConfig, ExtractorConfig, NetworkConfig
from model.network.backend import add_bias

# What a masked score becomes before the softmax. Finite, so that a row with nothing to read stays free of NaN.
MASKED = -1e9

BlockConfig = EncoderConfig | ExtractorConfig | NetworkConfig

ACTIVATION_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "gelu_tanh": functools.partial(ops.gelu, approximate=True),
    "silu": ops.silu,
}


def sinusoidal_positions(length: int, width: int) -> np.ndarray:
    """Sine and cosine position codes, float32 [length, width] (Vaswani et al. 2017, section 3.5).

    PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(pos / 10000^(2i/D)).
    """
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width).astype("float32")


def padding_mask(ids: Any, pad_id: int) -> Any:
    """Which source positions may be read: bool [B, 1, 1, S], False at padding.

    ids 7 8 0 -> True True False
    """
    return ops.not_equal(ids, pad_id)[:, None, None, :]


def look_ahead_mask(length: int) -> Any:
    """Which target positions each target position may read: bool [1, 1, T, T], itself and all before it.

    T = 3 ->  True  False False
              True  True  False
              True  True  True
    """
    return ops.tril(ops.ones((length, length), dtype="bool"))[None, None]


def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """Scaled dot-product attention: softmax(Q K^T / sqrt(D/H)) V (Vaswani et al. 2017, equation 1).

    Args:
      query: [B, H, T, D/H].
      key, value: [B, H, S, D/H].
      mask: bool, broadcast to [B, H, T, S].

    Returns:
      The mixed values [B, H, T, D/H]. The softmax is taken in float32.
    """
    scores = ops.matmul(query * (1.0 / math.sqrt(query.shape[-1])), ops.swapaxes(key, -1, -2))
    weights = masked_softmax(scores, mask)
    return ops.matmul(ops.cast(weights, value.dtype), value)


def masked_softmax(scores: Any, mask: Any) -> Any:
    """Softmax over the last axis in float32, zero where the mask is False."""
    return ops.softmax(ops.cast(scores, "float32") + score_bias(mask), axis=-1)


def score_bias(mask: Any) -> Any:
    """What a mask adds to scores, float32: 0 where it is True. The mask is small where scores are large, so adding beats choosing."""
    return ops.where(mask, 0.0, MASKED)


def log_norm(logits: Any) -> Any:
    """log of the sum of exp(logits) over the last axis, which is kept: in one softmax and two maxima, faster than pass by pass.

    The largest probability is exp(largest logit - norm), and it is at least 1 / V.
    """
    largest = ops.max(logits, axis=-1, keepdims=True)
    return largest - ops.log(ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True))


def places(ids: Any) -> Any:
    """Token ids [B, K, M] as places in [B, K, V]: int32 [B * K * M, 3]."""
    batch, beams, count = ops.shape(ids)
    rows = ops.broadcast_to(ops.arange(batch, dtype="int32")[:, None, None], (batch, beams, count))
    columns = ops.broadcast_to(ops.arange(beams, dtype="int32")[None, :, None], (batch, beams, count))
    return ops.reshape(ops.stack([rows, columns, ids], axis=-1), (-1, 3))


class Linear(keras.layers.Dense):
    """A linear layer; as one product over all rows, which fuses with the bias and the activation behind it."""

    def call(self, states: Any, training: bool = False) -> Any:
        """[..., I] -> [..., O]."""
        if len(states.shape) > 2:
            return ops.reshape(self.call(ops.reshape(states, (-1, states.shape[-1]))), (*ops.shape(states)[:-1], self.units))
        return add_bias(ops.matmul(states, self.kernel), self.bias)


class TokenEmbedding(keras.layers.Layer):
    """Token embeddings; read backwards, the tied output layer. Always float32."""

    def __init__(self, *, vocabulary_size: int, width: int, is_scaled: bool, has_logits_bias: bool, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.vocabulary_size, self.width, self.has_logits_bias = vocabulary_size, width, has_logits_bias
        self.scale = math.sqrt(width) if is_scaled else 1.0

    def build(self, _: Any = None) -> None:
        # Standard deviation D^-0.5 makes a scaled embedding as large as a position code, and tied logits about 1.
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary_size, self.width),
            initializer=keras.initializers.RandomNormal(stddev=self.width**-0.5),
        )
        self.logits_bias = None
        if self.has_logits_bias:
            # `logits` is called by a network that may compute in another precision; autocast would bring it there.
            self.logits_bias = self.add_weight(name="logits_bias", shape=(self.vocabulary_size,), initializer="zeros", autocast=False)
        self.built = True

    def call(self, ids: Any) -> Any:
        """int32 [...] -> float32 [..., D], times sqrt(D) if scaled."""
        return ops.take(self.table, ids, axis=0) * self.scale

    def logits(self, states: Any, dtype: Any) -> Any:
        """States [..., D] times the table transposed, multiplied in `dtype`, float32 [..., V]."""
        logits = ops.cast(ops.matmul(ops.cast(states, dtype), ops.transpose(ops.cast(self.table, dtype))), "float32")
        return logits if self.logits_bias is None else logits + self.logits_bias


class PositionedInput(keras.layers.Layer):
    """What enters the first block: embeddings plus positions, normed if so configured, then dropout. Always float32."""

    def __init__(self, *, config: EncoderConfig | NetworkConfig, max_tokens: int, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.config, self.max_tokens = config, max_tokens
        self.norm = layer_norm(config, name="norm") if config.embedding_norm else None
        self.dropout = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")

    def build(self, _: Any = None) -> None:
        shape = (self.max_tokens, self.config.width)
        if self.config.positions == "learned":
            self.positions = self.add_weight(name="positions", shape=shape, initializer=keras.initializers.RandomNormal(stddev=0.02))
        else:
            self.positions = sinusoidal_positions(*shape)
        if self.norm:
            self.norm.build((None, None, self.config.width))
        self.built = True

    def call(self, embedded: Any, training: bool = False) -> Any:
        """Whole rows: [B, T, D] -> [B, T, D]."""
        return self.dropout(self._normed(embedded + self._table()[: ops.shape(embedded)[1]]), training=training)

    def at(self, embedded: Any, index: Any) -> Any:
        """One step at position `index` (int32 scalar): [..., D] -> [..., D]."""
        return self._normed(embedded + ops.take(self._table(), index, axis=0))

    def _normed(self, states: Any) -> Any:
        return self.norm(states) if self.norm else states

    def _table(self) -> Any:
        return ops.convert_to_tensor(self.positions)


class MultiHeadAttention(keras.layers.Layer):
    """H attentions side by side, each over D/H of the width (Vaswani et al. 2017, section 3.2.2)."""

    def __init__(self, *, heads: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.heads, self.width = heads, width
        self.query, self.key, self.value, self.output_projection = (
            Linear(width, name=name) for name in ("query", "key", "value", "output")
        )

    def build(self, _: Any = None) -> None:
        for part in (self.query, self.key, self.value, self.output_projection):
            part.build((None, None, self.width))
        self.built = True

    def call(self, states: Any, memory: Any, mask: Any) -> Any:
        """States [B, T, D] read memory [B, S, D] where mask, broadcast to [B, H, T, S], allows it -> [B, T, D]."""
        keys, values = self.keys_values(memory)
        return self._join(attend(self._split(self.query(states)), keys, values, mask))

    def keys_values(self, memory: Any) -> tuple[Any, Any]:
        """The keys and values of a memory [B, S, D], each [B, H, S, D/H]."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def _split(self, states: Any) -> Any:
        batch, length = ops.shape(states)[0], ops.shape(states)[1]
        return ops.swapaxes(ops.reshape(states, (batch, length, self.heads, self.width // self.heads)), 1, 2)  # [B, H, T, D/H]

    def _join(self, heads: Any) -> Any:
        batch, length = ops.shape(heads)[0], ops.shape(heads)[2]
        return self.output_projection(ops.reshape(ops.swapaxes(heads, 1, 2), (batch, length, self.width)))  # [B, T, D]


def layer_norm(config: BlockConfig, **kwargs: Any) -> keras.layers.LayerNormalization:
    """A LayerNorm (Ba et al. 2016) over the width, in float32."""
    return keras.layers.LayerNormalization(epsilon=config.norm_epsilon, dtype="float32", **kwargs)


class Residual(keras.layers.Layer):
    """What surrounds each sublayer of a post-norm block: LayerNorm(x + dropout(sublayer(x))). Always float32."""

    def __init__(self, *, config: BlockConfig, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.dropout = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self.norm = layer_norm(config, name="norm")

    def build(self, shape: Any) -> None:
        self.norm.build(shape)
        self.built = True

    def call(self, states: Any, update: Any, training: bool = False) -> Any:
        """Adds what the sublayer said to its input; both [B, T, D]."""
        return self.norm(states + self.dropout(update, training=training))


class FeedForward(keras.layers.Layer):
    """The position-wise network: linear(activation(linear(x))), D -> F -> D."""

    def __init__(self, *, width: int, feed_forward: int, activation: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width, self.activation = width, ACTIVATION_FUNCTIONS[activation]
        self.inner = Linear(feed_forward, name="inner")
        self.outer = Linear(width, name="outer")

    def build(self, _: Any = None) -> None:
        self.inner.build((None, None, self.width))
        self.outer.build((None, None, self.inner.units))
        self.built = True

    def call(self, states: Any) -> Any:
        """[B, T, D] -> [B, T, D]."""
        rows = ops.reshape(states, (-1, self.width))  # as rows throughout: a reshape in between would part what fuses
        return ops.reshape(self.outer(self.activation(self.inner(rows))), ops.shape(states))


class EncoderBlock(keras.layers.Layer):
    """Self-attention, then the feed-forward network."""

    def __init__(self, *, config: BlockConfig, **kwargs: Any) -> None:
        # Not cast on the way in: under mixed precision the residual stream would lose its float32.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        self.attention = MultiHeadAttention(heads=config.heads, width=config.width, name="attention")
        self.attention_residual = Residual(config=config, name="attention_residual")
        self.feed_forward = FeedForward(
            width=config.width, feed_forward=config.feed_forward, activation=config.activation, name="feed_forward"
        )
        self.feed_forward_residual = Residual(config=config, name="feed_forward_residual")

    def build(self, _: Any = None) -> None:
        for part in (self.attention, self.attention_residual, self.feed_forward, self.feed_forward_residual):
            part.build((None, None, self.width))
        self.built = True

    def call(self, states: Any, mask: Any, training: bool = False) -> Any:
        """[B, S, D] -> [B, S, D]; mask bool [B, 1, 1, S]."""
        states = self.attention_residual(states, self.attention(states, states, mask), training=training)
        return self.feed_forward_residual(states, self.feed_forward(states), training=training)


class DecoderBlock(keras.layers.Layer):
    """Self-attention over the past, cross-attention to the source, then the feed-forward network."""

    def __init__(self, *, config: NetworkConfig, **kwargs: Any) -> None:
        # As in the encoder.
        super().__init__(autocast=False, **kwargs)
        self.width, heads = config.width, config.decoder_heads or config.heads
        self.self_attention = MultiHeadAttention(heads=heads, width=config.width, name="self_attention")
        self.self_residual = Residual(config=config, name="self_residual")
        self.cross_attention = MultiHeadAttention(heads=heads, width=config.width, name="cross_attention")
        self.cross_residual = Residual(config=config, name="cross_residual")
        feed_forward = config.decoder_feed_forward or config.feed_forward
        self.feed_forward = FeedForward(width=config.width, feed_forward=feed_forward, activation=config.activation, name="feed_forward")
        self.feed_forward_residual = Residual(config=config, name="feed_forward_residual")

    def build(self, _: Any = None) -> None:
        parts = (
            self.self_attention,
            self.self_residual,
            self.cross_attention,
            self.cross_residual,
            self.feed_forward,
            self.feed_forward_residual,
        )
        for part in parts:
            part.build((None, None, self.width))
        self.built = True

    def call(self, states: Any, memory: Any, own_mask: Any, source_mask: Any, training: bool = False) -> Any:
        """[B, T, D] -> [B, T, D]; own_mask bool [1, 1, T, T], source_mask bool [B, 1, 1, S]."""
        states = self.self_residual(states, self.self_attention(states, states, own_mask), training=training)
        states = self.cross_residual(states, self.cross_attention(states, memory, source_mask), training=training)
        return self.feed_forward_residual(states, self.feed_forward(states), training=training)
