"""A Transformer decoder: over whole targets, and as one step for all hypotheses of all
documents, the inner loop of every search.

The step computes the same formulas as `layers`, in a faster layout:
- the keys and values of a source are stored once per document, and its K hypotheses
  read them in one product;
- the keys and values of written tokens stay in the slots of a `KVCache`;
- once per search, kernels are cast to the computing dtype, the scale of the attention
  scores is multiplied into the query kernels, and the query, key and value kernels of a
  self-attention are joined.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from precis.model.backend import Tensor, ops, write_rows
from precis.model.cache import Cache, KVCache, open_slots, start_kv_cache
from precis.model.network.blocks import TransformerBlock
from precis.model.network.generator import AttentionMap, Generator
from precis.model.network.gradients import mix_values
from precis.model.network.layers import (
    LinearWeights,
    Memory,
    MultiHeadAttention,
    look_ahead_mask,
    multiply,
    place_heads,
    prepare_linear,
    project,
    score_bias,
)
from precis.model.network.positions import (
    PositionedInput,
    RelativePositions,
    rotation_at,
)


class BlockGenerator(Generator):
    """A network whose decoder is a stack of blocks; the constructors of subclasses set
    the attributes.

    Attributes:
      blocks: the blocks of the decoder, from the lowest to the highest.
      input_layer: the layer before the lowest block.
      relative_positions: the relative positions of the target, or None.
      last_norm: the norm after the highest block, or None.
    """

    blocks: Sequence[TransformerBlock]
    input_layer: PositionedInput
    relative_positions: RelativePositions | None
    last_norm: keras.layers.Layer | None

    def source_keys_values(self, memory: Memory) -> Sequence[tuple[Tensor, Tensor]]:
        """The keys and values of the source in each block, pairs of [B, H, S, D/H]."""
        raise NotImplementedError

    def first_position(self, source_mask: Tensor) -> Tensor:
        """The position of the start token, int32 [B, 1] or a number."""
        return 0

    def source_places(self, source_mask: Tensor) -> Tensor | None:
        """The positions of the source's tokens, int32 [1, S], if source and target are
        one sequence; otherwise None.
        """
        return None

    def views(
        self, self_bias: Tensor, source_mask: Tensor, queries: Tensor, keys: Tensor
    ) -> list[tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]]:
        """For each block, the biases of its scores over the target and over the source,
        each float32 [B or 1, H or 1, T or 1, S], and the rotation of its queries.

        Args:
          self_bias: the bias over the target, MASKED where nothing may be read.
          source_mask: bool [B, 1, 1, S].
          queries: the positions of the queries, int32 [..., T].
          keys: the positions of the target's tokens, int32 [..., S].
        """
        config, places = self.input_layer.config, self.source_places(source_mask)

        def with_places(bias: Tensor, keys: Tensor, is_local: bool) -> Tensor:
            if self.relative_positions:
                bias = bias + self.relative_positions(queries, keys)
            if is_local:
                distances = queries[..., :, None] - keys[..., None, :]
                bias = bias + score_bias(distances < config.window)[..., None, :, :]
            return bias

        def view(is_local: bool) -> tuple[Any, Any, Any]:
            source_bias = score_bias(source_mask)
            if places is not None:
                source_bias = with_places(source_bias, places, is_local)
            rotation = rotation_at(config, queries, is_local=is_local)
            return with_places(self_bias, keys, is_local), source_bias, rotation

        reach = config.reach or "g" * len(self.blocks)
        by_letter = {letter: view(letter == "l") for letter in sorted({*reach})}
        return [by_letter[letter] for letter in reach]

    def decode(
        self, target: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor, list[AttentionMap]]:
        """As in `Generator`."""
        length = ops.shape(target)[1]
        first = self.first_position(memory.mask)
        positions = first + ops.arange(length, dtype="int32")[None]  # [B or 1, T]
        mask_bias = score_bias(look_ahead_mask(length))
        views = self.views(mask_bias, memory.mask, positions, positions)
        past: Sequence[Any] = [None] * len(self.blocks)
        read = "target"
        if not self.blocks[0].cross_attention:
            past, read = self.source_keys_values(memory), "both"
        embedded = self.target_embedding(target)
        inputs = self.input_layer(embedded, positions, training=training)
        states, maps = inputs, []
        for layer, block in enumerate(self.blocks):
            self_bias, source_bias, rotation = views[layer]
            states, self_weights, cross_weights = block(
                states,
                join_biases(source_bias, self_bias) if past[layer] else self_bias,
                memory.states,
                source_bias,
                past=past[layer],
                rotation=rotation,
                training=training,
            )
            maps.append(AttentionMap("self", layer, self_weights, "target", read))
            if cross_weights is not None:
                maps.append(
                    AttentionMap("cross", layer, cross_weights, "target", "source")
                )
        return self.normed(states), inputs, maps

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """As in `Generator`."""
        attention_mask, kv_cache = start_kv_cache(
            [block.self_attention for block in self.blocks],
            batch=ops.shape(memory.source)[0],
            beams=beams,
            length=length,
        )
        return Cache(
            per_beam={"attention_mask": attention_mask},
            per_document={
                "kv_cache": kv_cache,
                "source": tuple(
                    arrange_source(*pair) for pair in self.source_keys_values(memory)
                ),
                "source_mask": memory.mask,
                "pointer": self.pointer.start(memory) if self.pointer else (),
            },
            shared={
                "blocks": tuple(prepare_block(block) for block in self.blocks),
                "output": self.prepare_output(),
            },
        )

    def step(self, tokens: Tensor, cache: Cache, index: Tensor) -> tuple[Tensor, Cache]:
        """As in `Generator`."""
        batch, beams = ops.shape(tokens)
        kv_cache = cache.per_document["kv_cache"]
        attention_mask, slot_rows = open_slots(
            cache.per_beam["attention_mask"], kv_cache, index
        )
        source_mask = cache.per_document["source_mask"]
        first = self.first_position(source_mask)
        positions = ops.reshape(first + index, (-1, 1))  # [B or 1, 1]
        self_bias = score_bias(attention_mask)[:, None]  # [B, 1, K, M]
        slots = first + kv_cache.positions  # [B, M]
        attention = self.blocks[0].self_attention
        if attention.kv_heads < attention.heads:  # The queries of a group are adjacent.
            groups = attention.heads // attention.kv_heads
            self_bias = ops.tile(self_bias, (1, 1, groups, 1))
        views = self.views(self_bias, source_mask, positions, slots)
        inputs = self.input_layer(self.target_embedding(tokens), positions)
        states = ops.reshape(inputs, (batch * beams, inputs.shape[-1]))
        self_keys, self_values = [], []
        for layer, block in enumerate(self.blocks):
            self_bias, source_bias, rotation = views[layer]
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
                rotation=rotation,
            )
            self_keys.append(keys)
            self_values.append(values)
        states = self.normed(states)
        states = ops.reshape(states, (batch, beams, inputs.shape[-1]))
        logits = self.step_output(states, inputs, cache)
        kv_cache = KVCache(tuple(self_keys), tuple(self_values), kv_cache.positions)
        return logits, Cache(
            per_beam={"attention_mask": attention_mask},
            per_document={**cache.per_document, "kv_cache": kv_cache},
            shared=cache.shared,
        )

    def normed(self, states: Tensor) -> Tensor:
        """The states of the highest block after the last norm, if there is one."""
        return self.last_norm(states) if self.last_norm else states


def join_biases(source_bias: Tensor, self_bias: Tensor) -> Tensor:
    """Joins biases of scores over the source and over the target, which broadcast to
    [B, H, T, S] and [B, H, T, T], to [B, H, T, S + T].
    """
    shape = ops.shape(source_bias[..., :1] + self_bias[..., :1])[:3]
    both = [
        ops.broadcast_to(bias, (*shape, ops.shape(bias)[3]))
        for bias in (source_bias, self_bias)
    ]
    return ops.concatenate(both, axis=3)


def prepare_block(block: TransformerBlock) -> dict[str, LinearWeights]:
    """The linear layers of a block by name, as `step_block` uses them."""
    dtype = block.compute_dtype
    attention, cross = block.self_attention, block.cross_attention
    weights = {
        "self_qkv": _prepare_qkv(attention, dtype),
        "self_output": prepare_linear(attention.output_projection, dtype),
        "inner": prepare_linear(block.feed_forward.inner, dtype),
        "outer": prepare_linear(block.feed_forward.outer, dtype),
    }
    if cross:
        scale = _query_scale(cross)
        weights["cross_query"] = prepare_linear(cross.query, dtype, scale=scale)
        weights["cross_output"] = prepare_linear(cross.output_projection, dtype)
    if block.feed_forward.gate:
        weights["gate"] = prepare_linear(block.feed_forward.gate, dtype)
    return weights


def _prepare_qkv(attention: MultiHeadAttention, dtype: Any) -> LinearWeights:
    """Query, key and value as one linear layer, D -> (H + 2 G) * D/H, in `dtype`."""
    parts = [
        prepare_linear(attention.query, dtype, scale=_query_scale(attention)),
        prepare_linear(attention.key, dtype),
        prepare_linear(attention.value, dtype),
    ]
    kernel = ops.concatenate([part.kernel for part in parts], axis=1)
    if not attention.query.use_bias:
        return LinearWeights(kernel, ())
    return LinearWeights(kernel, ops.concatenate([part.bias for part in parts], axis=0))


def _query_scale(attention: MultiHeadAttention) -> float:
    """The factor of prepared queries; 1 before a norm, as then scores are scaled."""
    return 1.0 if attention.query_norm else attention.scale


def arrange_source(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values [B, H, S, D/H] in the layout that is fastest in products with
    queries when the CPU cache is cold (oneDNN, AVX-512): float32 keys become
    [B, H, D/H, S].
    """
    return (ops.swapaxes(keys, 2, 3) if _is_float32(keys) else keys), values


def _is_float32(keys: Tensor) -> bool:
    return keras.backend.standardize_dtype(keys.dtype) == "float32"


def step_block(
    block: TransformerBlock,
    weights: Mapping[str, LinearWeights],
    states: Tensor,
    *,
    self_keys: Tensor,
    self_values: Tensor,
    self_bias: Tensor,
    slot_rows: Tensor,
    source: tuple[Tensor, Tensor],
    source_bias: Tensor,
    rotation: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs one block for the next token of K hypotheses. Without cross-attention, one
    softmax covers the source and the written tokens.

    Args:
      block: the block, for its norms and its activation.
      weights: the linear layers of the block, from `prepare_block`.
      states: float32 [B * K, D].
      self_keys: the block's part of the `KVCache`; overwritten in place.
      self_values: as the keys.
      self_bias: float32, broadcast to [B, H, K, M], MASKED at slots that a hypothesis
          may not read; the slots of this step may be read.
      slot_rows: int32 [B * G], the rows of keys and values that hold the slots of this
          step.
      source: keys and values of the source, from `arrange_source`.
      source_bias: float32, broadcast to [B, H, K, S], MASKED at padding.
      rotation: the rotation of queries and keys in self-attention, as in `place_heads`.

    Returns:
      float32 [B * K, D], and the keys and the values with the slots of this step.
    """
    attention = block.self_attention
    heads, depth = attention.heads, attention.head_width
    kv_heads = attention.kv_heads
    width = self_keys.shape[-1]  # K * D/H
    qkv = project(block.self_residual.sublayer_input(states), weights["self_qkv"])
    qkv = ops.reshape(qkv, (-1, width // depth, heads + 2 * kv_heads, depth))
    qkv = ops.transpose(qkv, (0, 2, 1, 3))  # [B, H + 2 G, K, D/H]
    queries, keys, values = ops.split(qkv, [heads, heads + kv_heads], axis=1)
    queries = place_heads(queries, attention.query_norm, rotation)
    keys = place_heads(keys, attention.key_norm, rotation)
    self_keys = write_rows(self_keys, slot_rows, ops.reshape(keys, (-1, width)))
    self_values = write_rows(self_values, slot_rows, ops.reshape(values, (-1, width)))

    batch, _, beams, _ = ops.shape(queries)
    slots = (batch, kv_heads, ops.shape(self_bias)[-1], depth)
    keys, values = ops.reshape(self_keys, slots), ops.reshape(self_values, slots)
    of_written = (ops.swapaxes(keys, 2, 3), values, self_bias)
    keys, values = source
    keys = keys if _is_float32(keys) else ops.swapaxes(keys, 2, 3)  # [B, H, D/H, S]
    of_source = (keys, values, source_bias)
    read = [of_written] if block.cross_attention else [of_source, of_written]
    # The prepared query weights include the scale, unless queries have a norm.
    context = _attend(queries, read, attention)
    update = multiply(context, weights["self_output"])
    states = block.self_residual(states, update)

    if block.cross_attention:
        inputs = block.cross_residual.sublayer_input(states)
        queries = project(inputs, weights["cross_query"])
        queries = ops.reshape(queries, (batch, beams, heads, depth))
        queries = ops.swapaxes(queries, 1, 2)  # [B, H, K, D/H]
        queries = place_heads(queries, block.cross_attention.query_norm, None)
        context = _attend(queries, [of_source], block.cross_attention)
        update = multiply(context, weights["cross_output"])
        states = block.cross_residual(states, update)

    inputs = block.feed_forward_residual.sublayer_input(states)
    inner = block.feed_forward.activation(project(inputs, weights["inner"]))
    if block.feed_forward.gate:
        inner = inner * project(inputs, weights["gate"])
    update = multiply(inner, weights["outer"])
    return block.feed_forward_residual(states, update), self_keys, self_values


def _attend(
    queries: Tensor,
    read: Sequence[tuple[Tensor, Tensor, Tensor]],
    attention: MultiHeadAttention,
) -> Tensor:
    """The mixed values of queries [B, H, K, D/H], as [B * K, H * D/H]; the queries of a
    group read their head of keys and values in one product. `read` is as `parts` in
    `mix_values`.
    """
    batch, heads, beams, depth = ops.shape(queries)
    grouped = (batch, attention.kv_heads, heads // attention.kv_heads * beams, depth)
    scale = attention.scale if attention.query_norm else 1.0
    context, _ = mix_values(ops.reshape(queries, grouped), read, scale)
    context = ops.reshape(context, (batch, heads, beams, depth))
    return ops.reshape(ops.swapaxes(context, 1, 2), (batch * beams, heads * depth))
