"""The encoder of a Transformer: BERT (Devlin et al. 2019) by itself, or the half of a
network of `transformer`.
"""

from typing import Any

import keras
from keras import ops

from precis.model.network.blocks import EncoderBlock
from precis.model.network.config import EncoderConfig, StackConfig, TransformerConfig
from precis.model.network.layers import make_norm, padding_mask, score_bias
from precis.model.network.positions import (
    PositionedInput,
    TokenEmbedding,
    make_relative,
)


class Encoder(keras.Model):
    """Token ids in, a state for each of them out; its weights have the names that they
    have in `Transformer`.

    Attributes:
      config: its shape.
    """

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        add_encoder(self, config)

    def build(self, _: Any = None) -> None:
        for part in (
            self.embedding,
            self.source_input,
            self.encoder_positions,
            *self.encoder,
            self.encoder_norm,
        ):
            if part is not None:
                part.build((None, None, self.config.width))
        self.built = True

    def call(self, tokens: Any, training: bool = False) -> Any:
        """int32 [B, S] -> float32 [B, S, D]; what stands at padding means nothing."""
        states, _, _ = read_tokens(self, tokens, training=training)
        return states


def add_encoder(
    network: Any,
    config: EncoderConfig | TransformerConfig,
    *,
    has_logits_bias: bool = False,
) -> None:
    """Gives a network the layers of an encoder: embedding, source_input,
    encoder_positions, encoder and encoder_norm.

    Args:
      network: a model under construction.
      config: its shape.
      has_logits_bias: whether the embedding is an output layer too and adds a number
          per piece.
    """
    stack: StackConfig = config
    network.embedding = TokenEmbedding(
        vocabulary_size=config.vocabulary_size,
        width=config.width,
        is_scaled=config.scaled_embedding,
        has_logits_bias=has_logits_bias,
        name="embedding",
    )
    network.source_input = PositionedInput(
        config=stack, max_tokens=config.max_source_tokens, name="source_input"
    )
    network.encoder_positions = make_relative(
        stack, is_bidirectional=True, name="encoder_positions"
    )
    network.encoder = [
        EncoderBlock(config=stack, name=f"encoder_{i}")
        for i in range(config.encoder_layers)
    ]
    network.encoder_norm = (
        make_norm(stack, name="encoder_norm") if config.norm_first else None
    )


def read_tokens(
    network: Any, tokens: Any, training: bool = False
) -> tuple[Any, Any, list[Any]]:
    """Runs the layers of `add_encoder`.

    Args:
      network: has them.
      tokens: int32 [B, S].
      training: whether dropout is on.

    Returns:
      States float32 [B, S, D], the bias of scores float32 [B, 1, 1, S] that hides
      padding, and the weights [B, H, S, S] of each block.
    """
    hidden = score_bias(padding_mask(tokens, network.config.pad_id))
    bias, seen = hidden, []
    if network.encoder_positions:
        positions = ops.arange(ops.shape(tokens)[1], dtype="int32")
        bias = bias + network.encoder_positions(positions, positions)
    states = network.source_input(network.embedding(tokens), training=training)
    for block in network.encoder:
        states, weights = block(states, bias, training=training)
        seen.append(weights)
    return (
        network.encoder_norm(states) if network.encoder_norm else states,
        hidden,
        seen,
    )
