"""The layers of a Transformer (Vaswani et al. 2017): masks, dropout, norms, multi-head
attention and the feed-forward network.

`blocks.py` builds the blocks of encoder and decoder from them, `positions.py` has
embeddings and positions, `gradients.py` the attention formula itself.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import keras

from precis.model.backend import Tensor, add_bias, keep_mask, ops
from precis.model.network.config import SOURCE_PADDING, StackConfig
from precis.model.network.gradients import attend, layer_norm, mix_values

# Added to the score of a masked position before the softmax. It is finite, so that the
# softmax of a fully masked row is not NaN.
MASKED = -1e9
# The number of queries that `attend_within` handles at a time.
_CHUNK = 128

ACTIVATION_FUNCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "gelu_tanh": functools.partial(ops.gelu, approximate=True),
    "silu": ops.silu,
}


def padding_mask(source: Tensor) -> Tensor:
    """Masks the padding of sources: int32 [B, S] -> bool [B, 1, 1, S].

    True where a position may be read. The padding token of a vocabulary, here 0, is an
    ordinary token, because a text may hold it:

        source  7     0     8     SOURCE_PADDING
        mask    True  True  True  False
    """
    return ops.not_equal(source, SOURCE_PADDING)[:, None, None, :]


def source_tokens(source: Tensor, pad_id: int) -> Tensor:
    """The tokens of sources, int32 [B, S], for embeddings and copies: padding becomes
    the padding token of the vocabulary.
    """
    return ops.where(ops.equal(source, SOURCE_PADDING), pad_id, source)


def look_ahead_mask(length: int) -> Tensor:
    """Masks later target positions: bool [1, 1, T, T], True where row t may read
    column s, which is s <= t.

    T = 3 ->  True  False False
              True  True  False
              True  True  True
    """
    return ops.tril(ops.ones((length, length), dtype="bool"))[None, None]


def score_bias(mask: Tensor) -> Tensor:
    """Turns a boolean mask into a bias that is added to attention scores, float32 of
    the same shape: 0 where the mask is True, MASKED where it is False.

    Scores are larger than the mask they are broadcast with, so adding a bias costs less
    than selecting with `where`.
    """
    return ops.where(mask, 0.0, MASKED)


def build_parts(parts: Iterable[Any], width: int) -> None:
    """Builds layers that read states [B, T, D]; skips None."""
    for part in parts:
        if part is not None and not part.built:
            part.build((None, None, width))


class Memory(NamedTuple):
    """The output of an encoder.

    Attributes:
      states: [B, S, D].
      source: int32 [B, S], the tokens; the padding token of the vocabulary at padding.
      mask: bool [B, 1, 1, S], False at padding.
      decoder_inputs: further tensors that the decoder reads; () for none.
    """

    states: Tensor
    source: Tensor
    mask: Tensor
    decoder_inputs: Any = ()

    @property
    def source_bias(self) -> Tensor:
        """The bias of scores over the source, float32 [B, 1, S]."""
        return score_bias(self.mask)[:, 0]


class Linear(keras.layers.Dense):
    """A linear layer that multiplies all rows in one matrix product.

    TensorFlow fuses a product of matrices, but not of larger tensors, with the bias and
    the activation that follow it.
    """

    def call(self, states: Tensor, training: bool = False) -> Tensor:
        """Maps states [..., I] to [..., O]."""
        if len(states.shape) > 2:
            rows = ops.reshape(states, (-1, states.shape[-1]))
            return ops.reshape(self.call(rows), (*ops.shape(states)[:-1], self.units))
        product = ops.matmul(states, self.kernel)
        return add_bias(product, self.bias) if self.use_bias else product


class LinearWeights(NamedTuple):
    """The weights of a linear layer, prepared once per search in the dtype that the
    search computes in.

    Attributes:
      kernel: [I, O].
      bias: [O], or () for none.
    """

    kernel: Tensor
    bias: Tensor


def prepare_linear(layer: Any, dtype: Any, *, scale: float = 1.0) -> LinearWeights:
    """The weights of a linear layer, times `scale`, in `dtype`."""
    return LinearWeights(
        kernel=ops.cast(layer.kernel * scale, dtype),
        bias=ops.cast(layer.bias * scale, dtype) if layer.use_bias else (),
    )


def project(states: Tensor, weights: LinearWeights) -> Tensor:
    """Applies a linear layer: states [N, I] -> [N, O] in the dtype of the weights."""
    product = ops.matmul(ops.cast(states, weights.kernel.dtype), weights.kernel)
    if isinstance(weights.bias, tuple):
        return product
    return add_bias(product, weights.bias)


def multiply(states: Tensor, weights: LinearWeights) -> Tensor:
    """Applies a linear layer: states [N, I] -> float32 [N, O]."""
    return ops.cast(project(states, weights), "float32")


class Dropout(keras.layers.Dropout):
    """Dropout: in training, sets a share of the values to zero and scales the others so
    that the mean stays the same.
    """

    def call(self, states: Tensor, training: bool = False) -> Tensor:
        """Maps states [...] to the same shape."""
        if not (training and self.rate):
            return states
        return states * keep_mask(ops.shape(states), self.rate, self.seed_generator)


class LayerNorm(keras.layers.LayerNormalization):
    """LayerNorm (Ba et al. 2016) over the width, with or without a bias."""

    def call(self, states: Tensor) -> Tensor:
        """Maps states [..., D] to the same shape."""
        beta = self.beta if self.center else ops.zeros_like(self.gamma)
        return layer_norm(states, self.gamma, beta, self.epsilon)


def make_norm(config: StackConfig, **kwargs: Any) -> keras.layers.Layer:
    """Makes a norm over the width in float32: LayerNorm, or RMSNorm (Zhang and Sennrich
    2019) with `rms_norm`.
    """
    settings = {"epsilon": config.norm_epsilon, "dtype": "float32", **kwargs}
    if config.rms_norm:
        return keras.layers.RMSNormalization(**settings)
    return LayerNorm(center=config.norm_bias, **settings)


def place_heads(
    heads: Tensor,
    norm: keras.layers.Layer | None,
    rotation: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """Normalises queries or keys, and rotates them by the angles of their positions (Su
    et al. 2021). Value i of the first half of a head and value i of the second half are
    the coordinates of a point that is rotated.

    Args:
      heads: [B, H, T, D/H].
      norm: the norm; None for no norm.
      rotation: cosines and sines, float32, broadcast to [B, H, T, D/H]; None for no
          rotation.
    """
    if norm is not None:
        heads = ops.cast(norm(heads), heads.dtype)
    if rotation is None:
        return heads
    cosines, sines = rotation
    first, second = ops.split(heads, 2, axis=-1)
    turned = ops.concatenate([-second, first], axis=-1)
    rotated = ops.cast(heads, "float32") * cosines + ops.cast(turned, "float32") * sines
    return ops.cast(rotated, heads.dtype)


def attend_within(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float, window: Any
) -> Tensor:
    """`attend` of a long text to itself, within a window around each query. Chunks of
    queries are handled in sequence, so that few scores are in memory at a time.

    Args:
      query, key, value: [B, H, S, D/H].
      bias: float32, broadcast to [B, H, 1, S]; MASKED where nothing may be read.
      scale: the factor of the scores.
      window: the number of positions before and after a query that it reads, int32
        each; S for the whole text.

    Returns:
      The mixed values [B, H, S, D/H].
    """
    before, behind = window
    batch, heads, length, depth = ops.shape(query)

    def mix(first: Tensor) -> Tensor:
        # The last chunk is padded with the last query.
        places = ops.minimum(first + ops.arange(_CHUNK, dtype="int32"), length - 1)
        low = ops.maximum(places[0] - before, 0)
        high = ops.minimum(places[-1] + behind + 1, length)
        distances = ops.arange(low, high, dtype="int32") - places[:, None]
        is_near = ops.logical_and(-distances <= before, distances <= behind)
        near = score_bias(is_near)  # [C, S]
        keys = ops.swapaxes(key[:, :, low:high], -1, -2)
        read = (keys, value[:, :, low:high], bias[..., low:high] + near)
        return mix_values(ops.take(query, places, axis=2), [read], scale)[0]

    chunks = ops.arange(0, length, _CHUNK, dtype="int32")
    mixed = ops.moveaxis(ops.map(mix, chunks), 0, 2)  # [B, H, S/C, C, D/H]
    return ops.reshape(mixed, (batch, heads, -1, depth))[:, :, :length]


class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2).

    In the shapes, D/H is the width of a head, even if `head_width` sets another value,
    and G is the number of heads of keys and values.
    """

    def __init__(
        self, *, config: StackConfig, memory_width: int | None = None, **kwargs: Any
    ) -> None:
        # Without autocast: under mixed precision it would cast the float32 bias.
        super().__init__(autocast=False, **kwargs)
        self.heads = config.heads
        self.kv_heads = config.kv_heads or config.heads
        self.width = config.width
        self.memory_width = memory_width or config.width
        self.head_width = config.width_of_head
        score_width = config.score_width or self.head_width
        self.scale = 1.0 / math.sqrt(score_width) if config.scaled_scores else 1.0
        inner_width = self.heads * self.head_width
        linear = functools.partial(
            Linear, use_bias=config.biases, dtype=self.dtype_policy
        )
        # Unscaled scores would start sqrt(head width) times as large. As in T5, the
        # initial queries are smaller by this factor.
        initial: Any = "glorot_uniform"
        if not config.scaled_scores:
            initial = keras.initializers.VarianceScaling(
                1.0 / self.head_width, mode="fan_avg", distribution="uniform"
            )
        self.query = linear(inner_width, name="query", kernel_initializer=initial)
        self.key = linear(self.kv_heads * self.head_width, name="key")
        self.value = linear(self.kv_heads * self.head_width, name="value")
        self.output_projection = linear(config.width, name="output")
        self.query_norm = self.key_norm = None
        if config.qk_norm:
            only_scaled = dataclasses.replace(config, rms_norm=True)
            self.query_norm = make_norm(only_scaled, name="query_norm")
            self.key_norm = make_norm(only_scaled, name="key_norm")

    def build(self, _: Any = None) -> None:
        self.query.build((None, None, self.width))
        self.key.build((None, None, self.memory_width))
        self.value.build((None, None, self.memory_width))
        self.output_projection.build((None, None, self.heads * self.head_width))
        build_parts([self.query_norm, self.key_norm], self.head_width)
        self.built = True

    def call(
        self,
        states: Tensor,
        memory: Tensor,
        bias: Tensor,
        past: tuple[Tensor, Tensor] | None = None,
        rotation: tuple[Tensor, Tensor] | None = None,
        window: Any = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Lets each state attend to a memory.

        Args:
          states: [B, T, D], the queries.
          memory: [B, S, D], the source of keys and values.
          bias: float32, broadcast to [B, H, T, S]; MASKED where nothing may be read.
          past: keys and values before those of the memory, each [B, G, P, D/H]; S is
              then longer by P.
          rotation: the rotation of queries and keys, as in `place_heads`.
          window: as in `attend_within`; None is the whole memory.

        Returns:
          States [B, T, D], and the attention weights float32 [B, H, T, S]; None with a
          window.
        """
        keys, values = self.keys_values(memory, rotation)
        if past is not None:
            past_keys, past_values = past
            keys = ops.concatenate([past_keys, keys], axis=2)
            values = ops.concatenate([past_values, values], axis=2)
        if self.kv_heads < self.heads:
            groups = self.heads // self.kv_heads
            keys, values = (ops.repeat(each, groups, axis=1) for each in (keys, values))
        queries = self._split_heads(self.query(states), self.heads)
        queries = place_heads(queries, self.query_norm, rotation)
        if window is not None:
            mixed = attend_within(queries, keys, values, bias, self.scale, window)
            return self._join_heads(mixed), None
        mixed, weights = attend(queries, keys, values, bias, self.scale)
        return self._join_heads(mixed), weights

    def keys_values(
        self, memory: Tensor, rotation: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The keys and values of a memory [B, S, D], each [B, G, S, D/H], with the keys
        normalised and rotated by `place_heads`.
        """
        keys = self._split_heads(self.key(memory), self.kv_heads)
        values = self._split_heads(self.value(memory), self.kv_heads)
        return place_heads(keys, self.key_norm, rotation), values

    def _split_heads(self, states: Tensor, count: int) -> Tensor:
        batch, length = ops.shape(states)[0], ops.shape(states)[1]
        heads = ops.reshape(states, (batch, length, count, self.head_width))
        return ops.swapaxes(heads, 1, 2)  # [B, H or G, T, D/H]

    def _join_heads(self, heads: Tensor) -> Tensor:
        batch, length = ops.shape(heads)[0], ops.shape(heads)[2]
        joined = ops.reshape(
            ops.swapaxes(heads, 1, 2), (batch, length, self.heads * self.head_width)
        )
        return self.output_projection(joined)  # [B, T, D]


class Residual(keras.layers.Layer):
    """The residual connection and the norm of a sublayer, in float32.

    norm(x + dropout(sublayer(x)))      (Vaswani et al. 2017, section 5.4)
    x + dropout(sublayer(norm(x)))      with the norm first (Xiong et al. 2020)
    x + dropout(norm(sublayer(norm(x))))    with both norms (Gemma 2, 2024)
    """

    def __init__(
        self, *, config: StackConfig, has_norm: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.norm_first = config.norm_first
        self.dropout = Dropout(config.dropout, name="dropout", dtype="float32")
        self.norm = keras.layers.Identity(name="norm")
        if has_norm:
            self.norm = make_norm(config, name="norm")
        has_both = config.both_norms
        self.update_norm = make_norm(config, name="update_norm") if has_both else None

    def build(self, shape: Any) -> None:
        build_parts([self.norm, self.update_norm], shape[-1])
        self.built = True

    def sublayer_input(self, states: Tensor) -> Tensor:
        """The input of the sublayer: states [..., D], after the norm if it is first."""
        return self.norm(states) if self.norm_first else states

    def call(self, states: Tensor, update: Tensor, training: bool = False) -> Tensor:
        """Adds the output of the sublayer to the states, both [..., D]."""
        if self.update_norm:
            update = self.update_norm(update)
        total = states + self.dropout(update, training=training)
        return total if self.norm_first else self.norm(total)


class FeedForward(keras.layers.Layer):
    """The position-wise feed-forward network, D -> F -> D.

    outer(activation(inner(x)))             (Vaswani et al. 2017, section 3.3)
    outer(activation(inner(x)) * gate(x))   gated (Shazeer 2020)
    """

    def __init__(self, *, config: StackConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = config.width
        self.activation = ACTIVATION_FUNCTIONS[config.activation]
        linear = functools.partial(Linear, use_bias=config.biases)
        self.inner = linear(config.feed_forward, name="inner")
        self.gate = None
        if config.gated_feed_forward:
            self.gate = linear(config.feed_forward, name="gate")
        self.outer = linear(config.width, name="outer")

    def build(self, _: Any = None) -> None:
        build_parts([self.inner, self.gate], self.width)
        self.outer.build((None, None, self.inner.units))
        self.built = True

    def call(self, states: Tensor) -> Tensor:
        """Maps states [B, T, D] to the same shape."""
        # No reshape between product and activation, as it prevents fusion.
        rows = ops.reshape(states, (-1, self.width))  # [B * T, D]
        inner = self.activation(self.inner(rows))  # [B * T, F]
        if self.gate:
            inner = inner * self.gate(rows)
        return ops.reshape(self.outer(inner), ops.shape(states))
