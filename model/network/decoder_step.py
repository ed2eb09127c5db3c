"""One step of a Transformer decoder for all hypotheses of all documents: the inner loop
of every search.

The formulas are those of `layers`; what differs is how they are laid out, because a
search spends its time here:
- the keys and values of a source stand once per document, and its K hypotheses read
  them in one product;
- the own keys and values are never moved when the search reorders hypotheses. At each
  step hypothesis k writes into a slot of its own, and `readable` says for every
  hypothesis in which of the M slots its past stands; a search reorders only that. Now
  and then, when room is made for more steps, the slots that nobody reads any more are
  dropped;
- one product makes query, key and value; kernels are brought into the computing dtype
  and the layout of the product once per search.

    slots written by k =                0 1   0 1   0 1
    after three steps of K = 2:  k = 0  x .   . x   x .      it descends from hypothesis 1 of the second step
                                 k = 1  x .   . x   . x      x: readable, . : not
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.backend import add_bias, write_rows
from precis.model.network.blocks import DecoderBlock, EncoderBlock
from precis.model.network.kv_cache import Own
from precis.model.network.layers import (
    FeedForward,
    Linear,
    MultiHeadAttention,
    Residual,
)


class Product(NamedTuple):
    """A linear layer made ready: kernel [I, O] and bias [O], or () for none, in the
    dtype it is multiplied in.
    """

    kernel: Any
    bias: Any


class InnerWeights(NamedTuple):
    """The linear layers of a feed-forward network, made ready; `gate` is () where there
    is none.
    """

    inner: Product
    gate: Any
    outer: Product


class BlockWeights(NamedTuple):
    """The linear layers of a block, made ready for `step_decoder_block` or
    `step_block`.
    """

    own: Product  # D -> 3 * H * D/H: query, key, value
    own_output: Product
    query: Any  # of the cross-attention; () in a block without one, and so is the next
    output: Any
    feed_forward: InnerWeights


class Source(NamedTuple):
    """What a block reads of the source: keys and values [B, H, S, D/H]; in float32 the
    keys are [B, H, D/H, S].

    They stand in the layout in which their product with the queries is fastest out of a
    cold cache (oneDNN, AVX-512).
    """

    keys: Any
    values: Any


def ready_weights(block: DecoderBlock) -> BlockWeights:
    """The weights of a block of a decoder, once per search. Queries carry the scale of
    the scores.
    """
    own, cross, dtype = block.self_attention, block.cross_attention, block.compute_dtype
    query, output = (
        ready(cross.query, dtype, scale=cross.scale),
        ready(cross.output_projection, dtype),
    )
    return BlockWeights(
        _fused(own, dtype),
        ready(own.output_projection, dtype),
        query,
        output,
        _inner(block.feed_forward, dtype),
    )


def ready_own_weights(block: EncoderBlock) -> BlockWeights:
    """The same of a block without cross-attention."""
    own, dtype = block.attention, block.compute_dtype
    return BlockWeights(
        _fused(own, dtype),
        ready(own.output_projection, dtype),
        (),
        (),
        _inner(block.feed_forward, dtype),
    )


def ready(
    layer: Linear | keras.layers.Dense, dtype: Any, *, scale: float = 1.0
) -> Product:
    """A linear layer, multiplied by a number, as a product in `dtype`."""
    return Product(
        ops.cast(layer.kernel * scale, dtype),
        ops.cast(layer.bias * scale, dtype) if layer.use_bias else (),
    )


def _fused(own: MultiHeadAttention, dtype: Any) -> Product:
    """Query, key and value of an attention as one product."""
    parts = [
        ready(own.query, dtype, scale=own.scale),
        ready(own.key, dtype),
        ready(own.value, dtype),
    ]
    kernel = ops.concatenate([part.kernel for part in parts], axis=1)
    return Product(
        kernel,
        ops.concatenate([part.bias for part in parts], axis=0)
        if own.query.use_bias
        else (),
    )


def _inner(feed_forward: FeedForward, dtype: Any) -> InnerWeights:
    gate = ready(feed_forward.gate, dtype) if feed_forward.gate else ()
    return InnerWeights(
        ready(feed_forward.inner, dtype), gate, ready(feed_forward.outer, dtype)
    )


def read_source(attention: MultiHeadAttention, states: Any) -> Source:
    """Keys and values of a source's states [B, S, D], once per search."""
    return as_source(*attention.keys_values(states))


def as_source(keys: Any, values: Any) -> Source:
    """Keys and values [B, H, S, D/H] in the layout that a step reads."""
    return Source(ops.swapaxes(keys, 2, 3) if _is_by_column(keys) else keys, values)


def _is_by_column(keys: Any) -> bool:
    """Whether the keys of a source stand as [B, H, D/H, S]."""
    return keras.backend.standardize_dtype(keys.dtype) == "float32"


def step_decoder_block(
    block: DecoderBlock,
    weights: BlockWeights,
    states: Any,
    *,
    own: Own,
    own_bias: Any,
    source: Source,
    source_bias: Any,
    place: Any,
) -> tuple[Any, Own]:
    """One position of K hypotheses through one block.

    Args:
      block: gives the norms.
      weights: of the block, made ready.
      states: float32 [B * K, D].
      own: keys and values with M slots.
      own_bias: float32, broadcast to [B, H, K, M], MASKED at slots that a hypothesis
          may not read; the slots of this step are readable.
      source: of the block.
      source_bias: float32 [B, 1, 1, S], MASKED at padding.
      place: int32 scalar, the K slots of this step begin at K times this.

    Returns:
      float32 [B * K, D], and `own` with the slots of this step filled in.
    """
    query, own = _write_own(
        block.self_attention,
        block.self_residual.reads(states),
        weights,
        own,
        own_bias,
        place,
    )
    keys, values = _columns(own, query, own_bias)
    read = _attend(query, keys, values, own_bias)
    states = block.self_residual(states, multiply(read, weights.own_output))
    batch, heads, beams, depth = ops.shape(query)
    query = ops.reshape(
        multiply(block.cross_residual.reads(states), weights.query),
        (batch, beams, heads, depth),
    )
    columns = (
        source.keys if _is_by_column(source.keys) else ops.swapaxes(source.keys, 2, 3)
    )
    read = _attend(
        ops.cast(ops.swapaxes(query, 1, 2), own.keys.dtype),
        columns,
        source.values,
        source_bias,
    )
    states = block.cross_residual(states, multiply(read, weights.output))
    return _feed_forward(
        block.feed_forward, block.feed_forward_residual, weights.feed_forward, states
    ), own


def step_block(
    block: EncoderBlock,
    weights: BlockWeights,
    states: Any,
    *,
    own: Own,
    own_bias: Any,
    source: Source,
    source_bias: Any,
    place: Any,
) -> tuple[Any, Own]:
    """The same through a block that reads the source and what was written in one
    attention.
    """
    query, own = _write_own(
        block.attention,
        block.attention_residual.reads(states),
        weights,
        own,
        own_bias,
        place,
    )
    keys, values = _columns(own, query, own_bias)
    columns = (
        source.keys if _is_by_column(source.keys) else ops.swapaxes(source.keys, 2, 3)
    )
    scores = [
        ops.cast(ops.matmul(query, columns), "float32") + source_bias,
        ops.cast(ops.matmul(query, keys), "float32") + own_bias,
    ]
    weight = ops.cast(
        ops.softmax(ops.concatenate(scores, axis=-1)), values.dtype
    )  # [B, H, K, S + M]
    length = ops.shape(columns)[3]
    read = ops.matmul(weight[..., :length], source.values) + ops.matmul(
        weight[..., length:], values
    )
    states = block.attention_residual(
        states, multiply(_as_rows(read), weights.own_output)
    )
    return _feed_forward(
        block.feed_forward, block.feed_forward_residual, weights.feed_forward, states
    ), own


def _write_own(
    attention: MultiHeadAttention,
    states: Any,
    weights: BlockWeights,
    own: Own,
    own_bias: Any,
    place: Any,
) -> tuple[Any, Own]:
    """Queries [B, H, K, D/H] of states [B * K, D], and `own` with their keys and
    values.
    """
    heads, depth = attention.heads, attention.head_width
    beams = own.keys.shape[-1] // depth
    slots = ops.shape(own_bias)[-1]
    fused = ops.reshape(multiply(states, weights.own), (-1, beams, 3, heads, depth))
    query, key, value = ops.unstack(
        ops.cast(ops.transpose(fused, (2, 0, 3, 1, 4)), own.keys.dtype), num=3
    )  # [B, H, K, D/H]
    rows = (
        ops.arange(ops.shape(query)[0] * heads, dtype="int32") * (slots // beams)
        + place
    )
    return query, Own(
        *(
            write_rows(past, rows, ops.reshape(new, (-1, beams * depth)))
            for past, new in zip(own, (key, value), strict=True)
        )
    )


def _columns(own: Own, query: Any, own_bias: Any) -> tuple[Any, Any]:
    """Keys [B, H, D/H, M] and values [B, H, M, D/H]."""
    batch, heads, _, depth = ops.shape(query)
    keys, values = (
        ops.reshape(past, (batch, heads, ops.shape(own_bias)[-1], depth))
        for past in own
    )
    return ops.swapaxes(keys, 2, 3), values


def _feed_forward(
    part: FeedForward, residual: Residual, weights: InnerWeights, states: Any
) -> Any:
    reads = residual.reads(states)
    inner = part.activation(_project(reads, weights.inner))
    if weights.gate:
        inner = inner * _project(reads, weights.gate)
    return residual(states, multiply(inner, weights.outer))


def multiply(states: Any, product: Product) -> Any:
    """States [N, I] through a linear layer -> float32 [N, O]."""
    return ops.cast(_project(states, product), "float32")


def _project(states: Any, product: Product) -> Any:
    """The same in the dtype of the product."""
    made = ops.matmul(ops.cast(states, product.kernel.dtype), product.kernel)
    return made if isinstance(product.bias, tuple) else add_bias(made, product.bias)


def _attend(query: Any, keys: Any, values: Any, bias: Any) -> Any:
    """Queries [B, H, K, D/H], scaled already, read keys [B, H, D/H, S] and values [B,
    H, S, D/H] -> [B * K, D].
    """
    scores = ops.cast(ops.matmul(query, keys), "float32") + bias  # [B, H, K, S]
    return _as_rows(ops.matmul(ops.cast(ops.softmax(scores), values.dtype), values))


def _as_rows(read: Any) -> Any:
    """[B, H, K, D/H] -> [B * K, H * D/H]."""
    batch, heads, beams, depth = ops.shape(read)
    return ops.reshape(ops.swapaxes(read, 1, 2), (batch * beams, heads * depth))
