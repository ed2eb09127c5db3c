"""The encoder of a Transformer by itself: BERT (Devlin et al. 2019), or the encoder half of a network of `transformer`."""

from typing import Any

import keras

from model.config import EncoderConfig
from model.network.layers import EncoderBlock, PositionedInput, TokenEmbedding, padding_mask


class Encoder(keras.Model):
    """Token ids in, a state for each of them out.

    Its weights have the names that they have in `Transformer`. Nothing is kept between the parts, so they can be run one by one, the lower
    ones once and for all and the upper ones in every step of a training:

        states, mask = encoder.embed(tokens), encoder.mask(tokens)
        for block in encoder.blocks:
            states = block(states, mask)

    Attributes:
      config: its shape.
      blocks: the encoder blocks, lowest first.
    """

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.embedding = TokenEmbedding(
            vocabulary_size=config.vocabulary_size,
            width=config.width,
            is_scaled=config.scaled_embedding,
            has_logits_bias=False,
            name="embedding",
        )
        self.source_input = PositionedInput(config=config, max_tokens=config.max_source_tokens, name="source_input")
        self.blocks = [EncoderBlock(config=config, name=f"encoder_{i}") for i in range(config.encoder_layers)]

    def build(self, _: Any = None) -> None:
        parts: list[keras.layers.Layer] = [self.embedding, self.source_input, *self.blocks]
        for part in parts:
            part.build((None, None, self.config.width))
        self.built = True

    def call(self, tokens: Any, training: bool = False) -> Any:
        """int32 [B, S] -> float32 [B, S, D]; what stands at padding means nothing."""
        states, mask = self.embed(tokens, training=training), self.mask(tokens)
        for block in self.blocks:
            states = block(states, mask, training=training)
        return states

    def embed(self, tokens: Any, training: bool = False) -> Any:
        """What enters the first block: int32 [B, S] -> float32 [B, S, D]."""
        return self.source_input(self.embedding(tokens), training=training)

    def mask(self, tokens: Any) -> Any:
        """Which positions the blocks may read: int32 [B, S] -> bool [B, 1, 1, S]."""
        return padding_mask(tokens, self.config.pad_id)
