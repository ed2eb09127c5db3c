"""A decoder-only language model: source, start token and summary are one sequence, and
each token attends to itself and the tokens before it.

    source      7 8 9 .        start token and summary   S a b      . padding, masked
    positions   0 1 2                                    3 4 5

The source is encoded once. Its keys and values are stored once per document, and all
hypotheses read them.
"""

from collections.abc import Sequence
from typing import Any

import keras

from precis.model.backend import Tensor, ops
from precis.model.cache import PROMPT, Cache
from precis.model.network.blocks import make_stack
from precis.model.network.config import SOURCE_PADDING, DecoderOnlyConfig
from precis.model.network.decoder_step import BlockGenerator
from precis.model.network.generator import AttentionMap
from precis.model.network.layers import (
    Memory,
    build_parts,
    look_ahead_mask,
    padding_mask,
    score_bias,
    source_tokens,
)
from precis.model.network.positions import TokenEmbedding


class DecoderOnly(BlockGenerator):
    """One stack of blocks for source and summary (Radford et al. 2018)."""

    config: DecoderOnlyConfig

    def __init__(self, config: DecoderOnlyConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        stack = config.decoder
        self.embedding = TokenEmbedding(stack, name="embedding")
        # The start token is between source and summary.
        max_tokens = config.max_source_tokens + config.max_target_tokens + 1
        names = ("input_layer", "relative_positions", "block", "last_norm")
        self.input_layer, self.relative_positions, self.blocks, self.last_norm = (
            make_stack(stack, names=names, blocks=config.layers, max_tokens=max_tokens)
        )
        self.add_output(self.embedding, memory_width=stack.width, has_bias=stack.biases)

    def build(self, _: Any = None) -> None:
        parts = [self.embedding, self.input_layer, self.relative_positions]
        build_parts([*parts, *self.blocks, self.last_norm], self.config.width)
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """No layers, as the decoder uses all of them."""
        return []

    def encode_with_attention(
        self, source: Tensor, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`; `decoder_inputs` of the memory are the keys and values of
        the source in each block, pairs of [B, H, S, D/H].
        """
        length = ops.shape(source)[1]
        mask = padding_mask(source)
        tokens = source_tokens(source, self.config.pad_id)
        positions = ops.arange(length, dtype="int32")
        visible = ops.logical_and(look_ahead_mask(length), mask)  # [B, 1, S, S]
        views = self.views(score_bias(visible), mask, positions, positions)
        embedded = self.embedding(tokens)
        states = self.input_layer(embedded, positions, training=training)
        keys_values, maps = [], []
        for layer, block in enumerate(self.blocks):
            bias, _, rotation = views[layer]
            inputs = block.self_residual.sublayer_input(states)
            keys_values.append(block.self_attention.keys_values(inputs, rotation))
            states, weights, _ = block(
                states, bias, rotation=rotation, training=training
            )
            maps.append(AttentionMap("encoder", layer, weights, "source", "source"))
        if self.config.continues_source:  # The target begins with the last token.
            nothing = ops.zeros_like(mask[..., :1])
            mask = ops.concatenate([mask[..., 1:], nothing], axis=-1)
        return Memory(self.normed(states), tokens, mask, tuple(keys_values)), maps

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """As in `Generator`; a prompt that is continued is kept, aligned to the right.

        source  7 8 9 -1   ->   -1 7 8 9
        """
        cache = super().start(memory, beams, length)
        if not self.config.continues_source:
            return cache
        count = ops.shape(memory.source)[1]
        places = ops.arange(1 - count, 1, dtype="int32")
        places = places + self.first_position(memory.mask)  # [B, S], below 0 in front
        prompt = ops.take_along_axis(memory.source, ops.maximum(places, 0), axis=1)
        prompt = ops.where(places < 0, SOURCE_PADDING, prompt)
        return cache._replace(per_document={**cache.per_document, PROMPT: prompt})

    def source_keys_values(self, memory: Memory) -> Sequence[tuple[Tensor, Tensor]]:
        """As in `BlockGenerator`."""
        return memory.decoder_inputs

    def first_position(self, source_mask: Tensor) -> Tensor:
        """As in `BlockGenerator`: the number of tokens of each source."""
        return ops.sum(ops.cast(source_mask[:, 0, 0], "int32"), axis=1)[:, None]

    def source_places(self, source_mask: Tensor) -> Tensor:
        """As in `BlockGenerator`."""
        return ops.arange(ops.shape(source_mask)[3], dtype="int32")[None]
