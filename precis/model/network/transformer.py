"""The Transformer encoder-decoder (Vaswani et al. 2017) with an optional
pointer-generator output (See et al. 2017).
"""

from collections.abc import Sequence
from typing import Any

import keras

from precis.model.backend import Tensor
from precis.model.network.blocks import make_stack
from precis.model.network.config import TransformerConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.decoder_step import BlockGenerator
from precis.model.network.encoder import add_encoder, read_tokens
from precis.model.network.generator import AttentionMap
from precis.model.network.layers import (
    Memory,
    build_parts,
    padding_mask,
    source_tokens,
)
from precis.model.network.positions import TokenEmbedding


class Transformer(BlockGenerator):
    """One network for every kind of encoder-decoder that `TransformerConfig` can
    describe: BART, PEGASUS and T5 among them.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        has_one_embedding = config.shared_embedding
        add_encoder(
            self,
            config,
            has_logits_bias=config.logits_bias and has_one_embedding,
            has_scaled_output=config.scaled_output and has_one_embedding,
        )
        decoder = config.decoder
        self.convolutional_gate = None
        if config.convolutional_gate:
            self.convolutional_gate = ConvolutionalGate(config)
        target_embedding = self.embedding
        if not has_one_embedding:
            target_embedding = TokenEmbedding(
                decoder, has_logits_bias=config.logits_bias, name="target_embedding"
            )
        stack = make_stack(
            decoder,
            names=("target_input", "decoder_positions", "decoder", "decoder_norm"),
            blocks=config.decoder_layers,
            # The target is one longer than its pieces: it begins with the start token.
            max_tokens=config.max_target_tokens + 1,
            memory_width=None if config.merged_attention else config.width,
        )
        self.input_layer, self.relative_positions, self.blocks, self.last_norm = stack
        self.add_output(
            target_embedding,
            memory_width=config.width,
            has_bias=decoder.biases,
            scale=decoder.width**-0.5 if config.scaled_output else 1.0,
        )

    def build(self, _: Any = None) -> None:
        encoder = [*self.encoder_parts(), self.embedding, self.convolutional_gate]
        build_parts(encoder, self.config.width)
        decoder = [self.input_layer, self.relative_positions, *self.blocks]
        build_parts([*decoder, self.last_norm], self.config.decoder.width)
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """As in `Generator`; without an embedding that the decoder uses too."""
        parts = [] if self.config.shared_embedding else [self.embedding]
        parts += [self.source_input, *self.encoder]
        optional = (self.encoder_positions, self.encoder_norm)
        return parts + [part for part in optional if part is not None]

    def encode_with_attention(
        self, source: Tensor, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`."""
        states, bias, weights = read_tokens(self, source, training=training)
        if self.convolutional_gate:
            states = self.convolutional_gate(states, bias, training=training)
        maps = [
            AttentionMap("encoder", layer, block_weights, "source", "source")
            for layer, block_weights in enumerate(weights)
            if block_weights is not None
        ]
        tokens = source_tokens(source, self.config.pad_id)
        return Memory(states, tokens, padding_mask(source)), maps

    def source_keys_values(self, memory: Memory) -> Sequence[tuple[Tensor, Tensor]]:
        """As in `BlockGenerator`."""
        return [
            (block.cross_attention or block.self_attention).keys_values(memory.states)
            for block in self.blocks
        ]
