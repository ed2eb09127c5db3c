"""The encoder of a Transformer: alone, as in BERT (Devlin et al. 2019), or as the part
of `transformer.py` that reads the source.
"""

from typing import Any

import keras

from precis.model.backend import Tensor, ops
from precis.model.network.blocks import make_stack
from precis.model.network.config import (
    ClassifierConfig,
    EncoderConfig,
    TransformerConfig,
)
from precis.model.network.layers import (
    Linear,
    build_parts,
    padding_mask,
    score_bias,
    source_tokens,
)
from precis.model.network.positions import TokenEmbedding, rotation_at


class Encoder(keras.Model):
    """Maps token ids to states; its weights have the same names as in `Transformer`.

    Attributes:
      config: its shape.
    """

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        add_encoder(self, config)

    def build(self, _: Any = None) -> None:
        parts = [self.embedding, self.source_input, self.encoder_positions]
        build_parts([*parts, *self.encoder, self.encoder_norm], self.config.width)
        self.built = True

    def call(self, tokens: Tensor, training: bool = False) -> Tensor:
        """Maps ids int32 [B, S] to states float32 [B, S, D].

        SOURCE_PADDING fills short rows; the states there have no meaning.
        """
        states, _, _ = read_tokens(self, tokens, training=training)
        return states


class Classifier(Encoder):
    """Labels a text, or a pair of texts that a separator joins (Devlin et al. 2019)."""

    def __init__(self, config: ClassifierConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.label_inner = Linear(config.width, name="label_inner")
        self.label_outer = Linear(config.labels, name="label_outer")

    def build(self, _: Any = None) -> None:
        build_parts([self.label_inner, self.label_outer], self.config.width)
        super().build()

    def call(self, tokens: Tensor, training: bool = False) -> Tensor:
        """Maps ids int32 [B, S] to the logits of the labels, float32 [B, L].

        They are computed from the state of the first token.
        """
        first = super().call(tokens, training=training)[:, 0]
        return self.label_outer(ops.tanh(self.label_inner(first)))


def add_encoder(
    network: Any, config: EncoderConfig | TransformerConfig, **output: bool
) -> None:
    """Sets the layers of an encoder on a network: embedding, source_input,
    encoder_positions, encoder and encoder_norm.

    Args:
      network: a model under construction.
      config: its shape.
      **output: of the embedding, where it is an output layer too.
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
      source: int32 [B, S]; SOURCE_PADDING fills short rows.
      training: whether dropout is on.

    Returns:
      States float32 [B, S, D], the bias float32 [B, 1, 1, S] that masks padding, and
      the attention weights [B, H, S, S] of each block, None of those with a `reach`.
    """
    padding_bias = score_bias(padding_mask(source))
    bias = padding_bias
    attention_weights = []
    config, length = network.config, ops.shape(source)[1]
    positions = ops.arange(length, dtype="int32")
    rotation = rotation_at(config, positions)
    local_rotation = rotation_at(config, positions, is_local=True)
    # By the letters of `reach`.
    views = {
        "": (rotation, None),
        "g": (rotation, (length, length)),
        "l": (local_rotation, ((config.window - 1) // 2, config.window // 2)),
    }
    if network.encoder_positions:
        bias = bias + network.encoder_positions(positions, positions)
    tokens = source_tokens(source, config.pad_id)
    states = network.source_input(network.embedding(tokens), training=training)
    for number, block in enumerate(network.encoder):
        rotation, window = views[config.reach[number : number + 1]]
        states, weights, _ = block(
            states, bias, rotation=rotation, window=window, training=training
        )
        attention_weights.append(weights)
    if network.encoder_norm:
        states = network.encoder_norm(states)
    return states, padding_bias, attention_weights
