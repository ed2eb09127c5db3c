"""A decoder-only language model: source, start token and summary are one sequence, and
each token attends to itself and the tokens before it.

    source      7 8 9 .        start token and summary   S a b      . padding, masked
    positions   0 1 2                                    3 4 5

The source is encoded once. Its keys and values are stored once per document, and all
hypotheses read them.
"""

from typing import Any

import keras
from keras import ops

from precis.model.cache import Cache, open_slots, start_kv_cache
from precis.model.network.blocks import EncoderBlock
from precis.model.network.config import DecoderOnlyConfig
from precis.model.network.decoder_step import (
    arrange_source,
    step_blocks,
    step_encoder_block,
)
from precis.model.network.generator import AttentionMap, Generator, Memory
from precis.model.network.layers import (
    look_ahead_mask,
    make_norm,
    padding_mask,
    score_bias,
    source_tokens,
)
from precis.model.network.positions import (
    PositionedInput,
    TokenEmbedding,
    make_relative_positions,
)
from precis.model.network.prepared_weights import prepare_encoder_block


class DecoderOnly(Generator):
    """One stack of blocks for source and summary (Radford et al. 2018)."""

    config: DecoderOnlyConfig

    def __init__(self, config: DecoderOnlyConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        stack = config.decoder
        self.embedding = TokenEmbedding(
            vocabulary_size=stack.vocabulary_size,
            width=stack.width,
            is_scaled=stack.scaled_embedding,
            name="embedding",
        )
        # The start token stands between source and summary.
        max_tokens = config.max_source_tokens + config.max_target_tokens + 1
        self.input_layer = PositionedInput(
            config=stack, max_tokens=max_tokens, name="input_layer"
        )
        self.relative_positions = make_relative_positions(
            stack, is_bidirectional=False, name="relative_positions"
        )
        self.blocks = [
            EncoderBlock(config=stack, name=f"block_{i}") for i in range(config.layers)
        ]
        self.last_norm = (
            make_norm(stack, name="last_norm") if stack.norm_first else None
        )
        self.add_output(self.embedding, memory_width=stack.width, has_bias=stack.biases)

    def build(self, _: Any = None) -> None:
        for part in (
            self.embedding,
            self.input_layer,
            self.relative_positions,
            *self.blocks,
            self.last_norm,
        ):
            if part is not None:
                part.build((None, None, self.config.width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """None: the decoder uses every layer."""
        return []

    def encode_with_attention(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`; the decoder inputs of the memory are the keys and values
        of the source in each block, pairs of [B, H, S, D/H].
        """
        length = ops.shape(source)[1]
        mask = padding_mask(source)
        tokens = source_tokens(source, self.config.pad_id)
        positions = ops.arange(length, dtype="int32")
        visible = ops.logical_and(look_ahead_mask(length), mask)  # [B, 1, S, S]
        bias = score_bias(visible) + self._relative_bias(positions, positions)
        states = self.input_layer(self.embedding(tokens), training=training)
        keys_values, maps = [], []
        for layer, block in enumerate(self.blocks):
            inputs = block.attention_residual.sublayer_input(states)
            keys_values.append(block.attention.keys_values(inputs))
            states, weights = block(states, bias, training=training)
            maps.append(AttentionMap("encoder", layer, weights, "source", "source"))
        states = self._norm_last(states)
        return Memory(states, tokens, mask, tuple(keys_values)), maps

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """As in `Generator`."""
        length = ops.shape(target)[1]
        first = source_lengths(memory.mask)[:, None]  # [B, 1]
        positions = first + ops.arange(length, dtype="int32")[None]  # [B, T]
        bias = self._target_bias(positions, memory.mask)
        inputs = self.input_layer(self.embedding(target), positions, training=training)
        states, maps = inputs, []
        for layer, block in enumerate(self.blocks):
            past = memory.decoder_inputs[layer]
            states, weights = block(states, bias, past=past, training=training)
            maps.append(AttentionMap("self", layer, weights, "target", "both"))
        return self._norm_last(states), inputs, maps

    def start(
        self, memory: Memory, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache:
        """As in `Generator`."""
        attention_mask, kv_cache = start_kv_cache(
            [block.attention for block in self.blocks],
            batch=ops.shape(memory.source)[0],
            beams=beams,
            length=length,
        )
        coverage = self.start_coverage(memory, beams, counts_coverage=counts_coverage)
        return Cache(
            per_beam={"attention_mask": attention_mask, "coverage": coverage},
            per_document={
                "kv_cache": kv_cache,
                "source": tuple(arrange_source(*kv) for kv in memory.decoder_inputs),
                "source_mask": memory.mask,
                "source_lengths": source_lengths(memory.mask),
                "pointer": self.start_pointer(memory),
            },
            shared={
                "blocks": tuple(prepare_encoder_block(block) for block in self.blocks),
                "output": self.prepare_output(),
            },
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """As in `Generator`."""
        batch, beams = ops.shape(tokens)
        width = self.config.width
        kv_cache = cache.per_document["kv_cache"]
        attention_mask, slot_rows = open_slots(
            cache.per_beam["attention_mask"], kv_cache, index
        )
        first = cache.per_document["source_lengths"][:, None]  # [B, 1]
        positions = first + index  # [B, 1]
        self_bias = score_bias(attention_mask)[:, None] + self._relative_bias(
            positions, first + kv_cache.positions
        )
        source_mask = cache.per_document["source_mask"]
        source_positions = ops.arange(ops.shape(source_mask)[3], dtype="int32")[None]
        source_bias = score_bias(source_mask) + self._relative_bias(
            positions, source_positions
        )

        inputs = self.input_layer.at(self.embedding(tokens), positions)  # [B, K, D]
        states = ops.reshape(inputs, (batch * beams, width))
        states, kv_cache = step_blocks(
            step_encoder_block,
            self.blocks,
            states,
            cache,
            self_bias=self_bias,
            slot_rows=slot_rows,
            source_bias=source_bias,
        )
        states = ops.reshape(self._norm_last(states), (batch, beams, width))
        logits, coverage = self.step_output(states, inputs, cache)
        return logits, Cache(
            per_beam={"attention_mask": attention_mask, "coverage": coverage},
            per_document={**cache.per_document, "kv_cache": kv_cache},
            shared=cache.shared,
        )

    def _target_bias(self, positions: Any, source_mask: Any) -> Any:
        """What is added to the scores of whole targets over source and target.

        Args:
          positions: int32 [B, T], of the targets.
          source_mask: bool [B, 1, 1, S].

        Returns:
          float32 [B, 1 or H, T, S + T].
        """
        batch, length = ops.shape(positions)
        source_positions = ops.arange(ops.shape(source_mask)[3], dtype="int32")[None]
        source_bias = score_bias(source_mask) + self._relative_bias(
            positions, source_positions
        )
        target_bias = score_bias(look_ahead_mask(length)) + self._relative_bias(
            positions, positions
        )
        heads = max(source_bias.shape[1], target_bias.shape[1])
        whole = [
            ops.broadcast_to(bias, (batch, heads, length, ops.shape(bias)[3]))
            for bias in (source_bias, target_bias)
        ]
        return ops.concatenate(whole, axis=3)

    def _relative_bias(self, queries: Any, keys: Any) -> Any:
        """What is added to the scores of queries at some positions over keys at others,
        [..., H, T, S]; 0 where positions are not relative.
        """
        if not self.relative_positions:
            return 0.0
        return self.relative_positions(queries, keys)

    def _norm_last(self, states: Any) -> Any:
        return self.last_norm(states) if self.last_norm else states


def source_lengths(mask: Any) -> Any:
    """The tokens of each source, int32 [B], counted in its mask, bool [B, 1, 1, S]."""
    return ops.sum(ops.cast(mask[:, 0, 0], "int32"), axis=1)
