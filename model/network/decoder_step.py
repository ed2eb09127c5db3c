"""One step of a Transformer decoder for all hypotheses of all documents: the inner loop
of every search.

The formulas are those of `layers`. The layout differs, because a search spends its time
here:
- the keys and values of a source are stored once per document, and its K hypotheses
  read them in one product;
- the keys and values of written tokens stay in the slots of a `KVCache`;
- the linear layers are `prepared_weights`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.backend import write_rows
from precis.model.cache import Cache, KVCache
from precis.model.network.blocks import DecoderBlock, EncoderBlock
from precis.model.network.layers import MultiHeadAttention
from precis.model.network.prepared_weights import (
    BlockWeights,
    feed_forward,
    multiply,
    project,
)


class SourceKeyValues(NamedTuple):
    """The keys and values of a source in one block, in the layout in which their
    product with the queries is fastest out of a cold cache (oneDNN, AVX-512).

    Attributes:
      keys: [B, H, S, D/H]; in float32 [B, H, D/H, S].
      values: [B, H, S, D/H].
    """

    keys: Any
    values: Any


def arrange_source(keys: Any, values: Any) -> SourceKeyValues:
    """Keys and values [B, H, S, D/H] in the layout of a step."""
    if _has_transposed_keys(keys):
        keys = ops.swapaxes(keys, 2, 3)
    return SourceKeyValues(keys, values)


def _has_transposed_keys(keys: Any) -> bool:
    return keras.backend.standardize_dtype(keys.dtype) == "float32"


def step_blocks(
    step_block: Callable[..., tuple[Any, Any, Any]],
    blocks: Sequence[DecoderBlock] | Sequence[EncoderBlock],
    states: Any,
    cache: Cache,
    *,
    self_bias: Any,
    slot_rows: Any,
    source_bias: Any,
) -> tuple[Any, KVCache]:
    """Moves K hypotheses by one position through all blocks of a network.

    Args:
      step_block: `step_decoder_block` or `step_encoder_block`; see there for the other
          arguments.
      blocks: from the lowest to the highest.
      states: float32 [B * K, D], the inputs of the lowest block.
      cache: holds the prepared weights, and the keys and values of source and written
          tokens.
      self_bias, slot_rows, source_bias: the same for all blocks.

    Returns:
      float32 [B * K, D], and the `KVCache` with the slots of this step.
    """
    kv_cache = cache.per_document["kv_cache"]
    self_keys, self_values = [], []
    for layer, block in enumerate(blocks):
        states, keys, values = step_block(
            block,
            cache.shared["blocks"][layer],
            states,
            self_keys=kv_cache.self_keys[layer],
            self_values=kv_cache.self_values[layer],
            self_bias=self_bias,
            slot_rows=slot_rows,
            source=cache.per_document["source"][layer],
            source_bias=source_bias,
        )
        self_keys.append(keys)
        self_values.append(values)
    return states, KVCache(tuple(self_keys), tuple(self_values), kv_cache.positions)


def step_decoder_block(
    block: DecoderBlock,
    weights: BlockWeights,
    states: Any,
    *,
    self_keys: Any,
    self_values: Any,
    self_bias: Any,
    slot_rows: Any,
    source: SourceKeyValues,
    source_bias: Any,
) -> tuple[Any, Any, Any]:
    """Moves K hypotheses by one position through one block.

    Args:
      block: gives the norms and the activation.
      weights: of the block.
      states: float32 [B * K, D].
      self_keys: the block's part of the `KVCache`; is written in place.
      self_values: as the keys.
      self_bias: float32, broadcast to [B, H, K, M], MASKED at slots that a hypothesis
          may not read; the slots of this step may be read.
      slot_rows: int32 [B * H], the rows of keys and values that hold the slots of this
          step.
      source: keys and values of the source.
      source_bias: float32 [B, 1, 1, S], MASKED at padding.

    Returns:
      float32 [B * K, D], and the keys and the values with the slots of this step.
    """
    queries, self_keys, self_values = _write_slots(
        block.self_attention,
        weights,
        block.self_residual.sublayer_input(states),
        self_keys=self_keys,
        self_values=self_values,
        slot_rows=slot_rows,
    )
    keys, values = _read_slots(queries, self_keys, self_values, self_bias)
    context = _attend(queries, ops.swapaxes(keys, 2, 3), values, self_bias)
    states = block.self_residual(states, multiply(context, weights.self_output))

    batch, heads, beams, depth = ops.shape(queries)
    queries = project(block.cross_residual.sublayer_input(states), weights.cross_query)
    queries = ops.reshape(queries, (batch, beams, heads, depth))
    queries = ops.swapaxes(queries, 1, 2)  # [B, H, K, D/H]
    context = _attend(queries, _transposed_keys(source), source.values, source_bias)
    states = block.cross_residual(states, multiply(context, weights.cross_output))

    inputs = block.feed_forward_residual.sublayer_input(states)
    update = feed_forward(block.feed_forward, weights.feed_forward, inputs)
    return block.feed_forward_residual(states, update), self_keys, self_values


def step_encoder_block(
    block: EncoderBlock,
    weights: BlockWeights,
    states: Any,
    *,
    self_keys: Any,
    self_values: Any,
    self_bias: Any,
    slot_rows: Any,
    source: SourceKeyValues,
    source_bias: Any,
) -> tuple[Any, Any, Any]:
    """Moves K hypotheses by one position through a block of a decoder-only network.

    One softmax goes over the source and the written tokens. Arguments and results are
    those of `step_decoder_block`.
    """
    queries, self_keys, self_values = _write_slots(
        block.attention,
        weights,
        block.attention_residual.sublayer_input(states),
        self_keys=self_keys,
        self_values=self_values,
        slot_rows=slot_rows,
    )
    keys, values = _read_slots(queries, self_keys, self_values, self_bias)
    source_scores = ops.matmul(queries, _transposed_keys(source))
    self_scores = ops.matmul(queries, ops.swapaxes(keys, 2, 3))
    scores = ops.concatenate(
        [
            ops.cast(source_scores, "float32") + source_bias,
            ops.cast(self_scores, "float32") + self_bias,
        ],
        axis=-1,
    )
    attention = ops.cast(ops.softmax(scores), values.dtype)  # [B, H, K, S + M]
    length = ops.shape(source_scores)[3]
    context = ops.matmul(attention[..., :length], source.values) + ops.matmul(
        attention[..., length:], values
    )
    update = multiply(_join_heads(context), weights.self_output)
    states = block.attention_residual(states, update)

    inputs = block.feed_forward_residual.sublayer_input(states)
    update = feed_forward(block.feed_forward, weights.feed_forward, inputs)
    return block.feed_forward_residual(states, update), self_keys, self_values


def _write_slots(
    attention: MultiHeadAttention,
    weights: BlockWeights,
    states: Any,
    *,
    self_keys: Any,
    self_values: Any,
    slot_rows: Any,
) -> tuple[Any, Any, Any]:
    """The queries [B, H, K, D/H] of states [B * K, D], and the keys and values of the
    block with those of the states in the slots of this step.
    """
    heads, depth = attention.heads, attention.head_width
    width = self_keys.shape[-1]  # K * D/H
    qkv = project(states, weights.self_qkv)
    qkv = ops.reshape(qkv, (-1, width // depth, 3, heads, depth))
    qkv = ops.transpose(qkv, (2, 0, 3, 1, 4))  # [3, B, H, K, D/H]
    queries, keys, values = ops.unstack(qkv, num=3)
    self_keys = write_rows(self_keys, slot_rows, ops.reshape(keys, (-1, width)))
    self_values = write_rows(self_values, slot_rows, ops.reshape(values, (-1, width)))
    return queries, self_keys, self_values


def _read_slots(
    queries: Any, self_keys: Any, self_values: Any, self_bias: Any
) -> tuple[Any, Any]:
    """The keys and values of all slots, each [B, H, M, D/H]."""
    batch, heads, _, depth = ops.shape(queries)
    shape = (batch, heads, ops.shape(self_bias)[-1], depth)
    return ops.reshape(self_keys, shape), ops.reshape(self_values, shape)


def _transposed_keys(source: SourceKeyValues) -> Any:
    """The keys of a source, [B, H, D/H, S]."""
    if _has_transposed_keys(source.keys):
        return source.keys
    return ops.swapaxes(source.keys, 2, 3)


def _attend(queries: Any, transposed_keys: Any, values: Any, bias: Any) -> Any:
    """Scaled dot-product attention (Vaswani et al. 2017, equation 1).

    Args:
      queries: [B, H, K, D/H], scaled already.
      transposed_keys: [B, H, D/H, S].
      values: [B, H, S, D/H].
      bias: float32, broadcast to [B, H, K, S].

    Returns:
      [B * K, H * D/H].
    """
    scores = ops.cast(ops.matmul(queries, transposed_keys), "float32") + bias
    attention = ops.cast(ops.softmax(scores), values.dtype)  # [B, H, K, S]
    return _join_heads(ops.matmul(attention, values))


def _join_heads(context: Any) -> Any:
    """[B, H, K, D/H] -> [B * K, H * D/H]."""
    batch, heads, beams, depth = ops.shape(context)
    return ops.reshape(ops.swapaxes(context, 1, 2), (batch * beams, heads * depth))
