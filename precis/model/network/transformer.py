"""The Transformer (Vaswani et al. 2017): an encoder, as in BERT (Devlin et al. 2019),
and an encoder-decoder with an optional pointer-generator output (See et al. 2017).
"""

from collections.abc import Sequence
from typing import Any

import keras

from precis.model.backend import Tensor, ops
from precis.model.network.blocks import make_stack
from precis.model.network.config import EncoderConfig, TransformerConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.decoder_step import BlockGenerator
from precis.model.network.generator import AttentionMap
from precis.model.network.layers import (
    Linear,
    Memory,
    build_parts,
    padding_mask,
    score_bias,
    source_tokens,
)
from precis.model.network.positions import TokenEmbedding, rotation_at


class Encoder(keras.Model):
    """Maps token ids to states or, with `labels`, a text or a pair of texts to logits
    of labels (Devlin et al. 2019). Its weights are named as in `Transformer`.

    Attributes:
      config: its shape.
    """

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        add_encoder(self, config)
        self.head = []
        if config.labels:
            self.head = [
                Linear(config.width, name="label_inner"),
                Linear(config.labels, name="label_outer"),
            ]

    def build(self, _: Any = None) -> None:
        parts = [self.embedding, self.source_input, self.encoder_positions]
        parts += [*self.encoder, self.encoder_norm, *self.head]
        build_parts(parts, self.config.width)
        self.built = True

    def call(self, tokens: Tensor, training: bool = False) -> Tensor:
        """Maps ids int32 [B, S], padded with SOURCE_PADDING, to states float32
        [B, S, D], which are meaningless at padding; or to logits of labels, float32
        [B, L], computed from the state of the first token.
        """
        states, _, _ = read_tokens(self, tokens, training=training)
        if not self.head:
            return states
        inner, outer = self.head
        return outer(ops.tanh(inner(states[:, 0])))


def add_encoder(
    network: Any, config: EncoderConfig | TransformerConfig, **output: bool
) -> None:
    """Sets the layers of an encoder on a network: embedding, source_input,
    encoder_positions, encoder and encoder_norm.

    Args:
      network: a model under construction.
      config: its shape.
      **output: arguments of the embedding as an output layer.
    """
    network.embedding = TokenEmbedding(config, name="embedding", **output)
    (
        network.source_input,
        network.encoder_positions,
        network.encoder,
        network.encoder_norm,
    ) = make_stack(
        config,
        names=("source_input", "encoder_positions", "encoder", "encoder_norm"),
        blocks=config.encoder_layers,
        max_tokens=config.max_source_tokens,
        is_bidirectional=True,
    )


def read_tokens(
    network: Any, source: Tensor, training: bool = False
) -> tuple[Tensor, Tensor, list[Tensor | None]]:
    """Runs the layers of `add_encoder`.

    Args:
      network: the network with these layers.
      source: int32 [B, S], padded with SOURCE_PADDING.
      training: whether dropout is on.

    Returns:
      States float32 [B, S, D], the bias float32 [B, 1, 1, S] that masks padding, and
      the attention weights [B, H, S, S] of each block, None if it has a `reach`.
    """
    padding_bias = score_bias(padding_mask(source))
    bias = padding_bias
    attention_weights = []
    config, length = network.config, ops.shape(source)[1]
    positions = ops.arange(length, dtype="int32")
    rotation = rotation_at(config, positions)
    local_rotation = rotation_at(config, positions, is_local=True)
    # The rotation and the window of a block by its letter in `reach`.
    views = {
        "": (rotation, None),
        "g": (rotation, (length, length)),
        "l": (local_rotation, ((config.window - 1) // 2, config.window // 2)),
    }
    if network.encoder_positions:
        bias = bias + network.encoder_positions(positions, positions)
    tokens = source_tokens(source, config.pad_id)
    embedded = network.embedding(tokens)
    states = network.source_input(embedded, positions, training=training)
    for number, block in enumerate(network.encoder):
        rotation, window = views[config.reach[number : number + 1]]
        states, weights, _ = block(
            states, bias, rotation=rotation, window=window, training=training
        )
        attention_weights.append(weights)
    if network.encoder_norm:
        states = network.encoder_norm(states)
    return states, padding_bias, attention_weights


class Transformer(BlockGenerator):
    """An encoder-decoder of any kind that `TransformerConfig` can describe, such as
    BART, PEGASUS and T5.
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
            # One more, for the start token.
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
        """As in `Generator`; without an embedding that is shared with the decoder."""
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
