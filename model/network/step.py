"""One step of a Transformer decoder for all hypotheses of all documents: the inner loop of every search.

The formulas are those of `layers`; what differs is how they are laid out, because a search spends its time here:
- the keys and values of a source stand once per document, and its K hypotheses read them in one product;
- the own keys and values are never moved when the search reorders hypotheses. At each step hypothesis k writes into a slot of its own, and
  `readable` says for every hypothesis in which of the M slots its past stands; a search reorders only that. Now and then, when room is
  made for more steps, the slots that nobody reads any more are dropped;
- one product makes query, key and value; kernels are brought into the computing dtype and the layout of the product once per search.

    slots written by k =                0 1   0 1   0 1
    after three steps of K = 2:  k = 0  x .   . x   x .      it descends from hypothesis 1 of the second step
                                 k = 1  x .   . x   . x      x: readable, . : not
"""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from model.network.backend import add_bias, has_static_shapes, make_room, write_rows
from model.network.layers import MASKED, DecoderBlock, MultiHeadAttention


class Product(NamedTuple):
    """A linear layer made ready: kernel [I, O] and bias [O], or () for none, in the dtype it is multiplied in."""

    kernel: Any
    bias: Any


class BlockWeights(NamedTuple):
    """The linear layers of a decoder block, made ready for `step_block`."""

    own: Product  # D -> 3D: query, key, value
    own_output: Product
    query: Product
    output: Product
    inner: Product
    outer: Product


class Source(NamedTuple):
    """What a block reads of the source: keys and values [B, H, S, D/H]; in float32 the keys are [B, H, D/H, S].

    They stand in the layout in which their product with the queries is fastest out of a cold cache (oneDNN, AVX-512).
    """

    keys: Any
    values: Any


class Own(NamedTuple):
    """What the hypotheses wrote: keys and values, each [B * H * M / K, K * D/H], a row holding the K slots of one step."""

    keys: Any
    values: Any


def ready_weights(block: DecoderBlock) -> BlockWeights:
    """The weights of a block, once per search. The query carries the 1 / sqrt(D/H) of the attention."""
    own, cross = block.self_attention, block.cross_attention
    scale = 1.0 / math.sqrt(own.width // own.heads)
    queries = [Product(part.query.kernel * scale, part.query.bias * scale) for part in (own, cross)]
    dtype = block.compute_dtype
    fused = Product(
        ops.concatenate([queries[0].kernel, own.key.kernel, own.value.kernel], axis=1),
        ops.concatenate([queries[0].bias, own.key.bias, own.value.bias], axis=0),
    )
    layers = (fused, own.output_projection, queries[1], cross.output_projection, block.feed_forward.inner, block.feed_forward.outer)
    return BlockWeights(*(Product(ops.cast(layer.kernel, dtype), ops.cast(layer.bias, dtype)) for layer in layers))


def read_source(attention: MultiHeadAttention, states: Any) -> Source:
    """Keys and values of a source's states [B, S, D], once per search."""
    keys, values = attention.keys_values(states)  # [B, H, S, D/H]
    return Source(ops.swapaxes(keys, 2, 3) if _is_by_column(keys) else keys, values)


def _is_by_column(keys: Any) -> bool:
    """Whether the keys of a source stand as [B, H, D/H, S]."""
    return keras.backend.standardize_dtype(keys.dtype) == "float32"


def make_own(attention: MultiHeadAttention, batch: Any, beams: int, length: int) -> Own:
    """Empty keys and values with room for `length` steps."""
    shape = (batch * attention.heads * length, beams * (attention.width // attention.heads))
    return Own(make_room(shape, attention.compute_dtype), make_room(shape, attention.compute_dtype))


def slots_in_use(readable: Any) -> Any:
    """The slots that some hypothesis reads, and as many others as make the number the same for all documents and a multiple of 4 K.

    Of 4 K and not K, because a product of a new shape has to be prepared once.

    Args:
      readable: float32 [B, K, M], 0 or MASKED.

    Returns:
      int32 [B, P], in the order of the slots for those in use. Where shapes must be known beforehand: all slots.
    """
    batch, beams, slots = ops.shape(readable)
    if has_static_shapes():
        return ops.broadcast_to(ops.arange(slots, dtype="int32"), (batch, slots))
    is_free = ops.cast(ops.max(readable, axis=1) < MASKED / 2, "int32")  # [B, M]
    most = ops.max(ops.sum(1 - is_free, axis=1))
    # Slots in use first, each group in its order.
    order = ops.argsort(is_free * slots + ops.arange(slots, dtype="int32"), axis=-1)
    size = 4 * beams
    return ops.cast(order[:, : ops.minimum((most + size - 1) // size * size, slots)], "int32")


def grow_own(own: Own, kept: Any, *, heads: int, beams: int, more: int) -> Own:
    """The kept slots, int32 [B, P], followed by room for `more` steps."""
    batch, count = ops.shape(kept)
    size = own.keys.shape[-1]  # K * D/H
    pairs = batch * heads

    def grow(buffer: Any) -> Any:
        slots = ops.shape(buffer)[0] // pairs * beams
        rows = ops.arange(pairs, dtype="int32")[:, None] * slots + ops.repeat(kept, heads, axis=0)  # [B * H, P]
        past = ops.take(ops.reshape(buffer, (-1, size // beams)), rows, axis=0)  # [B * H, P, D/H]
        room = make_room((pairs, more, size), buffer.dtype)
        return ops.reshape(ops.concatenate([ops.reshape(past, (pairs, count // beams, size)), room], axis=1), (-1, size))

    return Own(*map(grow, own))


def step_block(
    block: DecoderBlock, weights: BlockWeights, states: Any, *, own: Own, readable: Any, source: Source, source_bias: Any, place: Any
) -> tuple[Any, Own]:
    """One position of K hypotheses through one block.

    Args:
      block: gives the norms.
      weights: of the block, made ready.
      states: float32 [B * K, D].
      own: keys and values with M slots.
      readable: float32 [B, K, M], 0 or MASKED; the slots of this step among them.
      source: of the block.
      source_bias: float32 [B, 1, 1, S], MASKED at padding.
      place: int32 scalar, the K slots of this step begin at K times this.

    Returns:
      float32 [B * K, D], and `own` with the slots of this step filled in.
    """
    heads = block.self_attention.heads
    depth = block.width // heads
    batch, beams, slots = ops.shape(readable)
    fused = ops.reshape(multiply(states, weights.own), (batch, beams, 3, heads, depth))
    query, key, value = ops.unstack(ops.cast(ops.transpose(fused, (2, 0, 3, 1, 4)), own.keys.dtype), num=3)  # [B, H, K, D/H]
    rows = ops.arange(batch * heads, dtype="int32") * (slots // beams) + place
    own = Own(*(write_rows(past, rows, ops.reshape(new, (-1, beams * depth))) for past, new in zip(own, (key, value), strict=True)))
    keys, values = (ops.reshape(past, (batch, heads, slots, depth)) for past in own)
    read = _attend(query, ops.swapaxes(keys, 2, 3), values, readable[:, None])
    states = block.self_residual(states, multiply(read, weights.own_output))
    query = ops.reshape(multiply(states, weights.query), (batch, beams, heads, depth))
    columns = source.keys if _is_by_column(source.keys) else ops.swapaxes(source.keys, 2, 3)
    read = _attend(ops.cast(ops.swapaxes(query, 1, 2), own.keys.dtype), columns, source.values, source_bias)
    states = block.cross_residual(states, multiply(read, weights.output))
    inner = block.feed_forward.activation(_project(states, weights.inner))
    return block.feed_forward_residual(states, multiply(inner, weights.outer)), own


def multiply(states: Any, product: Product) -> Any:
    """States [N, I] through a linear layer -> float32 [N, O]."""
    return ops.cast(_project(states, product), "float32")


def _project(states: Any, product: Product) -> Any:
    """The same in the dtype of the product."""
    made = ops.matmul(ops.cast(states, product.kernel.dtype), product.kernel)
    return made if isinstance(product.bias, tuple) else add_bias(made, product.bias)


def _attend(query: Any, keys: Any, values: Any, bias: Any) -> Any:
    """Queries [B, H, K, D/H], scaled already, read keys [B, H, D/H, S] and values [B, H, S, D/H] -> [B * K, D]."""
    scores = ops.cast(ops.matmul(query, keys), "float32") + bias  # [B, H, K, S]
    read = ops.matmul(ops.cast(ops.softmax(scores), values.dtype), values)  # [B, H, K, D/H]
    batch, heads, beams, depth = ops.shape(read)
    return ops.reshape(ops.swapaxes(read, 1, 2), (batch * beams, heads * depth))
