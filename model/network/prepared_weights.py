"""The linear layers of a network in the form that a search multiplies with.

Once per search, kernels are brought into the computing dtype, the scale of the
attention scores is multiplied into the queries, and the query, key and value of a
self-attention become one product.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.backend import add_bias
from precis.model.network.blocks import DecoderBlock, EncoderBlock
from precis.model.network.layers import FeedForward, Linear, MultiHeadAttention


class LinearWeights(NamedTuple):
    """A linear layer in the dtype it is multiplied in.

    Attributes:
      kernel: [I, O].
      bias: [O], or () for none.
    """

    kernel: Any
    bias: Any


class FeedForwardWeights(NamedTuple):
    """The linear layers of a feed-forward network; `gate` is () where there is none."""

    inner: LinearWeights
    gate: Any
    outer: LinearWeights


class BlockWeights(NamedTuple):
    """The linear layers of a block.

    Attributes:
      self_qkv: D -> 3 * H * D/H, query, key and value of the self-attention.
      self_output: of the self-attention.
      cross_query: of the cross-attention; () in a block without one.
      cross_output: of the cross-attention; () in a block without one.
      feed_forward: of the feed-forward network.
    """

    self_qkv: LinearWeights
    self_output: LinearWeights
    cross_query: Any
    cross_output: Any
    feed_forward: FeedForwardWeights


def prepare_decoder_block(block: DecoderBlock) -> BlockWeights:
    """The weights of a block with self-attention and cross-attention."""
    cross, dtype = block.cross_attention, block.compute_dtype
    return BlockWeights(
        self_qkv=_prepare_qkv(block.self_attention, dtype),
        self_output=prepare_linear(block.self_attention.output_projection, dtype),
        cross_query=prepare_linear(cross.query, dtype, scale=cross.scale),
        cross_output=prepare_linear(cross.output_projection, dtype),
        feed_forward=_prepare_feed_forward(block.feed_forward, dtype),
    )


def prepare_encoder_block(block: EncoderBlock) -> BlockWeights:
    """The weights of a block without cross-attention."""
    dtype = block.compute_dtype
    return BlockWeights(
        self_qkv=_prepare_qkv(block.attention, dtype),
        self_output=prepare_linear(block.attention.output_projection, dtype),
        cross_query=(),
        cross_output=(),
        feed_forward=_prepare_feed_forward(block.feed_forward, dtype),
    )


def prepare_linear(
    layer: Linear | keras.layers.Dense, dtype: Any, *, scale: float = 1.0
) -> LinearWeights:
    """A linear layer times `scale`, in `dtype`."""
    return LinearWeights(
        kernel=ops.cast(layer.kernel * scale, dtype),
        bias=ops.cast(layer.bias * scale, dtype) if layer.use_bias else (),
    )


def _prepare_qkv(attention: MultiHeadAttention, dtype: Any) -> LinearWeights:
    parts = [
        prepare_linear(attention.query, dtype, scale=attention.scale),
        prepare_linear(attention.key, dtype),
        prepare_linear(attention.value, dtype),
    ]
    kernel = ops.concatenate([part.kernel for part in parts], axis=1)
    if not attention.query.use_bias:
        return LinearWeights(kernel, ())
    return LinearWeights(kernel, ops.concatenate([part.bias for part in parts], axis=0))


def _prepare_feed_forward(layer: FeedForward, dtype: Any) -> FeedForwardWeights:
    return FeedForwardWeights(
        inner=prepare_linear(layer.inner, dtype),
        gate=prepare_linear(layer.gate, dtype) if layer.gate else (),
        outer=prepare_linear(layer.outer, dtype),
    )


def project(states: Any, weights: LinearWeights) -> Any:
    """States [N, I] through a linear layer -> [N, O] in the dtype of the weights."""
    product = ops.matmul(ops.cast(states, weights.kernel.dtype), weights.kernel)
    if isinstance(weights.bias, tuple):
        return product
    return add_bias(product, weights.bias)


def multiply(states: Any, weights: LinearWeights) -> Any:
    """States [N, I] through a linear layer -> float32 [N, O]."""
    return ops.cast(project(states, weights), "float32")


def feed_forward(layer: FeedForward, weights: FeedForwardWeights, states: Any) -> Any:
    """States [N, D] through a feed-forward network -> float32 [N, D]."""
    inner = layer.activation(project(states, weights.inner))
    if weights.gate:
        inner = inner * project(states, weights.gate)
    return multiply(inner, weights.outer)
