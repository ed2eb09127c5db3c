"""The Transformer encoder-decoder (Vaswani et al. 2017) with an optional
pointer-generator output (See et al. 2017).
"""

from typing import Any

import keras
from keras import ops

from precis.model.cache import Cache, open_slots, start_kv_cache
from precis.model.network.blocks import DecoderBlock
from precis.model.network.config import TransformerConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.decoder_step import (
    arrange_source,
    step_blocks,
    step_decoder_block,
)
from precis.model.network.encoder import add_encoder, read_tokens
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
from precis.model.network.prepared_weights import prepare_decoder_block


class Transformer(Generator):
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
            self.convolutional_gate = ConvolutionalGate(
                width=config.width, dropout=config.dropout, name="convolutional_gate"
            )
        target_embedding = self.embedding
        if not config.shared_embedding:
            target_embedding = TokenEmbedding(
                vocabulary_size=decoder.vocabulary_size,
                width=decoder.width,
                is_scaled=decoder.scaled_embedding,
                has_logits_bias=config.logits_bias,
                name="target_embedding",
            )
        # The target is one longer than its pieces: it begins with the start token.
        self.target_input = PositionedInput(
            config=decoder, max_tokens=config.max_target_tokens + 1, name="target_input"
        )
        self.decoder_positions = make_relative_positions(
            decoder, is_bidirectional=False, name="decoder_positions"
        )
        self.decoder = [
            DecoderBlock(config=decoder, memory_width=config.width, name=f"decoder_{i}")
            for i in range(config.decoder_layers)
        ]
        self.decoder_norm = (
            make_norm(decoder, name="decoder_norm") if decoder.norm_first else None
        )
        scale = decoder.width**-0.5 if config.scaled_output else 1.0
        self.add_output(
            target_embedding,
            memory_width=config.width,
            has_bias=decoder.biases,
            scale=scale,
        )

    def build(self, _: Any = None) -> None:
        for part in (*self.encoder_parts(), self.embedding, self.convolutional_gate):
            if part is not None and not part.built:
                part.build((None, None, self.config.width))
        for part in (
            self.target_input,
            self.decoder_positions,
            *self.decoder,
            self.decoder_norm,
        ):
            if part is not None:
                part.build((None, None, self.config.decoder.width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """As in `Generator`; without an embedding that the decoder uses too."""
        parts = [] if self.config.shared_embedding else [self.embedding]
        parts += [self.source_input, *self.encoder]
        optional = (self.encoder_positions, self.encoder_norm)
        return parts + [part for part in optional if part is not None]

    def encode_with_attention(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`."""
        states, bias, weights = read_tokens(self, source, training=training)
        if self.convolutional_gate:
            states = self.convolutional_gate(states, bias, training=training)
        maps = [
            AttentionMap("encoder", layer, block_weights, "source", "source")
            for layer, block_weights in enumerate(weights)
        ]
        tokens = source_tokens(source, self.config.pad_id)
        return Memory(states, tokens, padding_mask(source)), maps

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """As in `Generator`."""
        inputs = self.target_input(self.target_embedding(target), training=training)
        length = ops.shape(target)[1]
        self_bias = score_bias(look_ahead_mask(length))
        if self.decoder_positions:
            positions = ops.arange(length, dtype="int32")
            self_bias = self_bias + self.decoder_positions(positions, positions)
        source_bias = score_bias(memory.mask)
        states, maps = inputs, []
        for layer, block in enumerate(self.decoder):
            states, self_weights, cross_weights = block(
                states, memory.states, self_bias, source_bias, training=training
            )
            maps += [
                AttentionMap("self", layer, self_weights, "target", "target"),
                AttentionMap("cross", layer, cross_weights, "target", "source"),
            ]
        return self._norm_last(states), inputs, maps

    def start(
        self, memory: Memory, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache:
        """As in `Generator`."""
        attention_mask, kv_cache = start_kv_cache(
            [block.self_attention for block in self.decoder],
            batch=ops.shape(memory.source)[0],
            beams=beams,
            length=length,
        )
        source = tuple(
            arrange_source(*block.cross_attention.keys_values(memory.states))
            for block in self.decoder
        )
        coverage = self.start_coverage(memory, beams, counts_coverage=counts_coverage)
        return Cache(
            per_beam={"attention_mask": attention_mask, "coverage": coverage},
            per_document={
                "kv_cache": kv_cache,
                "source": source,
                "source_mask": memory.mask,
                "pointer": self.start_pointer(memory),
            },
            shared={
                "blocks": tuple(prepare_decoder_block(block) for block in self.decoder),
                "output": self.prepare_output(),
            },
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """As in `Generator`."""
        batch, beams = ops.shape(tokens)
        width = self.config.decoder.width
        kv_cache = cache.per_document["kv_cache"]
        attention_mask, slot_rows = open_slots(
            cache.per_beam["attention_mask"], kv_cache, index
        )
        self_bias = score_bias(attention_mask)[:, None]  # [B, 1, K, M]
        if self.decoder_positions:
            position = ops.reshape(index, (1, 1))
            self_bias = self_bias + self.decoder_positions(position, kv_cache.positions)
        source_bias = score_bias(cache.per_document["source_mask"])

        inputs = self.target_input.at(self.target_embedding(tokens), index)  # [B, K, D]
        states = ops.reshape(inputs, (batch * beams, width))
        states, kv_cache = step_blocks(
            step_decoder_block,
            self.decoder,
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

    def _norm_last(self, states: Any) -> Any:
        return self.decoder_norm(states) if self.decoder_norm else states
