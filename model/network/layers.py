"""The parts of a Transformer (Vaswani et al. 2017), in keras.ops: positions, masks,
norms, attention, blocks.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from precis.model.backend import add_bias, keep_mask
from precis.model.network.config import StackConfig
from precis.model.network.gradients import attend, layer_norm

# What a masked score becomes before the softmax. Finite, so that a row with nothing to
# read stays free of NaN.
MASKED = -1e9

ACTIVATION_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "gelu_tanh": functools.partial(ops.gelu, approximate=True),
    "silu": ops.silu,
}


def padding_mask(ids: Any, pad_id: int) -> Any:
    """Which source positions may be read: bool [B, 1, 1, S], False at padding.

    ids 7 8 0 -> True True False
    """
    return ops.not_equal(ids, pad_id)[:, None, None, :]


def look_ahead_mask(length: int) -> Any:
    """Which target positions each target position may read: bool [1, 1, T, T], itself
    and all before it.

    T = 3 ->  True  False False
              True  True  False
              True  True  True
    """
    return ops.tril(ops.ones((length, length), dtype="bool"))[None, None]


def score_bias(mask: Any) -> Any:
    """What a mask adds to scores, float32: 0 where it is True. The mask is small where
    scores are large, so adding beats choosing.
    """
    return ops.where(mask, 0.0, MASKED)


def log_norm(logits: Any) -> Any:
    """log of the sum of exp(logits) over the last axis, which is kept: in one softmax
    and two maxima, faster than pass by pass.

    The largest probability is exp(largest logit - norm), and it is at least 1 / V.
    """
    largest = ops.max(logits, axis=-1, keepdims=True)
    return largest - ops.log(
        ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True)
    )


def places(ids: Any) -> Any:
    """Token ids [B, K, M] as places in [B, K, V]: int32 [B * K * M, 3]."""
    batch, beams, count = ops.shape(ids)
    rows = ops.broadcast_to(
        ops.arange(batch, dtype="int32")[:, None, None], (batch, beams, count)
    )
    columns = ops.broadcast_to(
        ops.arange(beams, dtype="int32")[None, :, None], (batch, beams, count)
    )
    return ops.reshape(ops.stack([rows, columns, ids], axis=-1), (-1, 3))


class Linear(keras.layers.Dense):
    """A linear layer; as one product over all rows, which fuses with the bias and the
    activation behind it.
    """

    def call(self, states: Any, training: bool = False) -> Any:
        """[..., I] -> [..., O]."""
        if len(states.shape) > 2:
            return ops.reshape(
                self.call(ops.reshape(states, (-1, states.shape[-1]))),
                (*ops.shape(states)[:-1], self.units),
            )
        product = ops.matmul(states, self.kernel)
        return add_bias(product, self.bias) if self.use_bias else product


class Dropout(keras.layers.Dropout):
    """Sets a share of the values to zero while training, and scales the others up so
    that the mean stays.
    """

    def call(self, states: Any, training: bool = False) -> Any:
        """[...] -> [...]."""
        return (
            states * keep_mask(ops.shape(states), self.rate, self.seed_generator)
            if training and self.rate
            else states
        )


class LayerNorm(keras.layers.LayerNormalization):
    """LayerNorm (Ba et al. 2016) over the width."""

    def call(self, states: Any) -> Any:
        """[..., D] -> [..., D]."""
        return layer_norm(states, self.gamma, self.beta, self.epsilon)


def make_norm(config: StackConfig, **kwargs: Any) -> keras.layers.Layer:
    """A norm over the width, in float32: LayerNorm or RMSNorm (Zhang and Sennrich
    2019).
    """
    kind = keras.layers.RMSNormalization if config.rms_norm else LayerNorm
    return kind(epsilon=config.norm_epsilon, dtype="float32", **kwargs)


class MultiHeadAttention(keras.layers.Layer):
    """H attentions side by side (Vaswani et al. 2017, section 3.2.2); D/H stands for
    the width of a head, whatever it is.
    """

    def __init__(
        self, *, config: StackConfig, memory_width: int | None = None, **kwargs: Any
    ) -> None:
        # Not cast on the way in: under mixed precision the bias would lose its float32.
        super().__init__(autocast=False, **kwargs)
        self.heads, self.width, self.memory_width = (
            config.heads,
            config.width,
            memory_width or config.width,
        )
        self.head_width = config.head_width or config.width // config.heads
        self.scale = 1.0 / math.sqrt(self.head_width) if config.scaled_scores else 1.0
        inner = self.heads * self.head_width
        linear = functools.partial(
            Linear, use_bias=config.biases, dtype=self.dtype_policy
        )
        self.query, self.key, self.value = (
            linear(inner, name=name) for name in ("query", "key", "value")
        )
        self.output_projection = linear(config.width, name="output")

    def build(self, _: Any = None) -> None:
        self.query.build((None, None, self.width))
        self.key.build((None, None, self.memory_width))
        self.value.build((None, None, self.memory_width))
        self.output_projection.build((None, None, self.heads * self.head_width))
        self.built = True

    def call(
        self, states: Any, memory: Any, bias: Any, past: Any = None
    ) -> tuple[Any, Any]:
        """States [B, T, D] read memory [B, S, D] -> [B, T, D] and weights [B, H, T, S];
        bias as in `attend`, past as in `EncoderBlock`.
        """
        own = self.keys_values(memory)
        if past is not None:
            own = tuple(
                ops.concatenate(pair, axis=2) for pair in zip(past, own, strict=True)
            )
        heads, weights = attend(self._split(self.query(states)), *own, bias, self.scale)
        return self._join(heads), weights

    def keys_values(self, memory: Any) -> tuple[Any, Any]:
        """The keys and values of a memory [B, S, D], each [B, H, S, D/H]."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def _split(self, states: Any) -> Any:
        batch, length = ops.shape(states)[0], ops.shape(states)[1]
        return ops.swapaxes(
            ops.reshape(states, (batch, length, self.heads, self.head_width)), 1, 2
        )  # [B, H, T, D/H]

    def _join(self, heads: Any) -> Any:
        batch, length = ops.shape(heads)[0], ops.shape(heads)[2]
        return self.output_projection(
            ops.reshape(
                ops.swapaxes(heads, 1, 2), (batch, length, self.heads * self.head_width)
            )
        )


class Residual(keras.layers.Layer):
    """What surrounds a sublayer: norm(x + dropout(sublayer(x))), or with the norm first
    x + dropout(sublayer(norm(x))). In float32.
    """

    def __init__(self, *, config: StackConfig, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.norm_first = config.norm_first
        self.dropout = Dropout(config.dropout, name="dropout", dtype="float32")
        self.norm = make_norm(config, name="norm")

    def build(self, shape: Any) -> None:
        self.norm.build(shape)
        self.built = True

    def reads(self, states: Any) -> Any:
        """What the sublayer reads of states [..., D]."""
        return self.norm(states) if self.norm_first else states

    def call(self, states: Any, update: Any, training: bool = False) -> Any:
        """Adds what the sublayer said to the states; both [..., D]."""
        total = states + self.dropout(update, training=training)
        return total if self.norm_first else self.norm(total)


class FeedForward(keras.layers.Layer):
    """The position-wise network: linear(activation(linear(x))), D -> F -> D; gated,
    linear(activation(linear(x)) * linear(x)).
    """

    def __init__(self, *, config: StackConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width, self.activation = (
            config.width,
            ACTIVATION_FUNCTIONS[config.activation],
        )
        self.inner = Linear(config.feed_forward, use_bias=config.biases, name="inner")
        self.gate = (
            Linear(config.feed_forward, use_bias=config.biases, name="gate")
            if config.gated_feed_forward
            else None
        )
        self.outer = Linear(config.width, use_bias=config.biases, name="outer")

    def build(self, _: Any = None) -> None:
        self.inner.build((None, None, self.width))
        if self.gate:
            self.gate.build((None, None, self.width))
        self.outer.build((None, None, self.inner.units))
        self.built = True

    def call(self, states: Any) -> Any:
        """[B, T, D] -> [B, T, D]."""
        rows = ops.reshape(
            states, (-1, self.width)
        )  # as rows throughout: a reshape in between would part what fuses
        inner = self.activation(self.inner(rows))
        return ops.reshape(
            self.outer(inner * self.gate(rows) if self.gate else inner),
            ops.shape(states),
        )


class EncoderBlock(keras.layers.Layer):
    """Self-attention, then the feed-forward network; with a bias that hides what comes
    later, also a block of a decoder-only network.
    """

    def __init__(self, *, config: StackConfig, **kwargs: Any) -> None:
        # Not cast on the way in: under mixed precision the residual stream would lose
        # its float32.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        self.attention = MultiHeadAttention(config=config, name="attention")
        self.attention_residual = Residual(config=config, name="attention_residual")
        self.feed_forward = FeedForward(config=config, name="feed_forward")
        self.feed_forward_residual = Residual(
            config=config, name="feed_forward_residual"
        )

    def build(self, _: Any = None) -> None:
        for part in (
            self.attention,
            self.attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        ):
            part.build((None, None, self.width))
        self.built = True

    def call(
        self, states: Any, bias: Any, past: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """[B, S, D] -> [B, S, D] and the attention's weights [B, H, S, S]; bias as in
        `attend`.

        Keys and values `past`, each [B, H, P, D/H], are read as if they stood before
        the states: the weights are [B, H, S, P + S] then.
        """
        reads = self.attention_residual.reads(states)
        update, weights = self.attention(reads, reads, bias, past=past)
        states = self.attention_residual(states, update, training=training)
        update = self.feed_forward(self.feed_forward_residual.reads(states))
        return self.feed_forward_residual(states, update, training=training), weights


class DecoderBlock(keras.layers.Layer):
    """Self-attention over the past, cross-attention to the source, then the
    feed-forward network.
    """

    def __init__(
        self, *, config: StackConfig, memory_width: int, **kwargs: Any
    ) -> None:
        # As in the encoder.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        self.self_attention = MultiHeadAttention(config=config, name="self_attention")
        self.self_residual = Residual(config=config, name="self_residual")
        self.cross_attention = MultiHeadAttention(
            config=config, memory_width=memory_width, name="cross_attention"
        )
        self.cross_residual = Residual(config=config, name="cross_residual")
        self.feed_forward = FeedForward(config=config, name="feed_forward")
        self.feed_forward_residual = Residual(
            config=config, name="feed_forward_residual"
        )

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

    def call(
        self,
        states: Any,
        memory: Any,
        own_bias: Any,
        source_bias: Any,
        training: bool = False,
    ) -> tuple[Any, Any, Any]:
        """[B, T, D] -> [B, T, D], and the weights of both attentions, [B, H, T, T] and
        [B, H, T, S]; biases as in `attend`.
        """
        reads = self.self_residual.reads(states)
        update, own = self.self_attention(reads, reads, own_bias)
        states = self.self_residual(states, update, training=training)
        update, cross = self.cross_attention(
            self.cross_residual.reads(states), memory, source_bias
        )
        states = self.cross_residual(states, update, training=training)
        update = self.feed_forward(self.feed_forward_residual.reads(states))
        return self.feed_forward_residual(states, update, training=training), own, cross
