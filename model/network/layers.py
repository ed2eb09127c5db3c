"""The parts of a Transformer (Vaswani et al. 2017), in keras.ops: positions, masks, attention, blocks."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

# What a masked score becomes before the softmax. Finite, so that a row with nothing to read stays free of NaN.
MASKED = -1e9


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
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2)) * (1.0 / math.sqrt(query.shape[-1]))
    weights = masked_softmax(scores, mask)
    return ops.matmul(ops.cast(weights, value.dtype), value)


def masked_softmax(scores: Any, mask: Any) -> Any:
    """Softmax over the last axis in float32, zero where the mask is False."""
    return ops.softmax(ops.where(mask, ops.cast(scores, "float32"), MASKED), axis=-1)


class TokenEmbedding(keras.layers.Layer):
    """Token embeddings scaled by sqrt(D), plus sinusoidal positions, then dropout; read backwards, the tied output layer."""

    def __init__(self, *, vocabulary_size: int, width: int, max_tokens: int, dropout: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.width, self.max_tokens = vocabulary_size, width, max_tokens
        self.dropout = keras.layers.Dropout(dropout, name="dropout")

    def build(self, _: Any = None) -> None:
        # Standard deviation D^-0.5 makes a scaled embedding as large as a position code, and tied logits about 1.
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary_size, self.width),
            initializer=keras.initializers.RandomNormal(stddev=self.width**-0.5),
        )
        self.positions = sinusoidal_positions(self.max_tokens, self.width)
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        """Embeds whole rows: int [B, T] -> [B, T, D]."""
        return self.dropout(self.look_up(ids) + self._positions()[: ops.shape(ids)[1]], training=training)

    def at(self, ids: Any, index: Any) -> Any:
        """Embeds one step: int [B, K] at position `index` (int32 scalar) -> [B, K, D]."""
        return self.look_up(ids) + ops.take(self._positions(), index, axis=0)

    def look_up(self, ids: Any) -> Any:
        """The scaled embeddings without positions, [..., D]."""
        return ops.take(ops.cast(self.table, self.compute_dtype), ids, axis=0) * math.sqrt(self.width)

    def logits(self, states: Any) -> Any:
        """States [..., D] times the table transposed, float32 [..., V]."""
        return ops.cast(ops.matmul(states, ops.transpose(ops.cast(self.table, states.dtype))), "float32")

    def _positions(self) -> Any:
        return ops.convert_to_tensor(self.positions, dtype=self.compute_dtype)


class MultiHeadAttention(keras.layers.Layer):
    """H attentions side by side, each over D/H of the width (Vaswani et al. 2017, section 3.2.2)."""

    def __init__(self, *, heads: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.heads, self.width = heads, width
        self.query, self.key, self.value, self.output_projection = (
            keras.layers.Dense(width, name=name) for name in ("query", "key", "value", "output")
        )

    def build(self, _: Any = None) -> None:
        for part in (self.query, self.key, self.value, self.output_projection):
            part.build((None, None, self.width))
        self.built = True

    def call(self, states: Any, memory: Any, mask: Any) -> Any:
        """States [B, T, D] read memory [B, S, D] where mask, broadcast to [B, H, T, S], allows it -> [B, T, D]."""
        return self.read(states, self.keys_values(memory), mask)

    def keys_values(self, memory: Any) -> tuple[Any, Any]:
        """The keys and values of a memory [B, S, D], each [B, H, S, D/H]: computed once, read at every step."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def read(self, states: Any, keys_values: tuple[Any, Any], mask: Any) -> Any:
        """States [B, T, D] read given keys and values [B, H, S, D/H] -> [B, T, D]."""
        return self._join(attend(self._split(self.query(states)), *keys_values, mask))

    def read_own(self, states: Any, keys_values: tuple[Any, Any], index: Any) -> tuple[Any, tuple[Any, Any]]:
        """One step of self-attention for K beams, each with its own past.

        Args:
          states: [B, K, D], the newest position of each beam.
          keys_values: the past, each [B, K, H, T, D/H]; positions from `index` on are not filled yet.
          index: int32 scalar, the newest position.

        Returns:
          The new states [B, K, D], and keys and values with the newest position filled in.
        """
        heads = (*ops.shape(states)[:2], self.heads, 1, self.width // self.heads)
        query, key, value = (ops.reshape(part(states), heads) for part in (self.query, self.key, self.value))  # [B, K, H, 1, D/H]
        keys, values = (ops.slice_update(past, [0, 0, 0, index, 0], new) for past, new in zip(keys_values, (key, value), strict=True))
        mask = ops.arange(ops.shape(keys)[3]) <= index  # [T]
        read = attend(query, keys, values, mask)  # [B, K, H, 1, D/H]
        return self.output_projection(ops.reshape(read, ops.shape(states))), (keys, values)

    def _split(self, states: Any) -> Any:
        batch, length = ops.shape(states)[0], ops.shape(states)[1]
        return ops.swapaxes(ops.reshape(states, (batch, length, self.heads, self.width // self.heads)), 1, 2)  # [B, H, T, D/H]

    def _join(self, heads: Any) -> Any:
        batch, length = ops.shape(heads)[0], ops.shape(heads)[2]
        return self.output_projection(ops.reshape(ops.swapaxes(heads, 1, 2), (batch, length, self.width)))  # [B, T, D]


class Residual(keras.layers.Layer):
    """What surrounds each sublayer of a post-norm block: LayerNorm(x + dropout(sublayer(x)))."""

    def __init__(self, *, dropout: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dropout = keras.layers.Dropout(dropout, name="dropout")
        self.norm = keras.layers.LayerNormalization(epsilon=1e-6, name="norm")

    def build(self, shape: Any) -> None:
        self.norm.build(shape)
        self.built = True

    def call(self, states: Any, update: Any, training: bool = False) -> Any:
        """Adds what the sublayer said to its input; both [B, T, D]."""
        return self.norm(states + self.dropout(update, training=training))


class FeedForward(keras.layers.Layer):
    """The position-wise network: linear(relu(linear(x))), D -> F -> D."""

    def __init__(self, *, width: int, feed_forward: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.inner = keras.layers.Dense(feed_forward, activation="relu", name="inner")
        self.outer = keras.layers.Dense(width, name="outer")

    def build(self, _: Any = None) -> None:
        self.inner.build((None, None, self.width))
        self.outer.build((None, None, self.inner.units))
        self.built = True

    def call(self, states: Any) -> Any:
        """[B, T, D] -> [B, T, D]."""
        return self.outer(self.inner(states))


class EncoderBlock(keras.layers.Layer):
    """Self-attention, then the feed-forward network."""

    def __init__(self, *, width: int, feed_forward: int, heads: int, dropout: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.attention = MultiHeadAttention(heads=heads, width=width, name="attention")
        self.attention_residual = Residual(dropout=dropout, name="attention_residual")
        self.feed_forward = FeedForward(width=width, feed_forward=feed_forward, name="feed_forward")
        self.feed_forward_residual = Residual(dropout=dropout, name="feed_forward_residual")

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

    def __init__(self, *, width: int, feed_forward: int, heads: int, dropout: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.self_attention = MultiHeadAttention(heads=heads, width=width, name="self_attention")
        self.self_residual = Residual(dropout=dropout, name="self_residual")
        self.cross_attention = MultiHeadAttention(heads=heads, width=width, name="cross_attention")
        self.cross_residual = Residual(dropout=dropout, name="cross_residual")
        self.feed_forward = FeedForward(width=width, feed_forward=feed_forward, name="feed_forward")
        self.feed_forward_residual = Residual(dropout=dropout, name="feed_forward_residual")

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

    def step(self, states: Any, own: tuple[Any, Any], source: tuple[Any, Any], source_mask: Any, index: Any) -> tuple[Any, tuple[Any, Any]]:
        """One position for K beams: [B, K, D] -> [B, K, D] and the own keys and values with it filled in.

        The beams of a document read one copy of its keys and values, as if they were K target positions.
        """
        read, own = self.self_attention.read_own(states, own, index)
        states = self.self_residual(states, read)
        states = self.cross_residual(states, self.cross_attention.read(states, source, source_mask))
        return self.feed_forward_residual(states, self.feed_forward(states)), own
