"""The selector, a network that scores sentences, after BertSumExt (Liu and Lapata 2019,
section 3.2).

Sentence vectors and features become states, Transformer layers let each sentence attend
to the others, and a linear layer gives the logit that the sentence has the oracle
label. The vectors come from a frozen, already trained encoder.
"""

import functools
from typing import Any

import keras

from precis.model.backend import Tensor, ops
from precis.model.extractive.features import FEATURE_COUNT, LARGEST_FEATURE
from precis.model.network.blocks import TransformerBlock
from precis.model.network.config import SelectorConfig
from precis.model.network.layers import (
    ACTIVATION_FUNCTIONS,
    Linear,
    build_parts,
    make_norm,
    score_bias,
)


class Selector(keras.Model):
    """Maps vectors and features of sentences to a logit per sentence. Always float32.

    Attributes:
      config: its shape.
      feature_mean, feature_scale: float32 [F]; scaled features are (features - mean) *
          scale. Set once, from the training articles.
    """

    def __init__(self, config: SelectorConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.activation = ACTIVATION_FUNCTIONS[config.activation]
        self.feature_inner = Linear(config.width, name="feature_inner")
        self.feature_outer = Linear(config.width, name="feature_outer")
        self.vector_input = None
        if config.vector_width:
            self.vector_input = Linear(config.width, name="vector_input")
        self.vector_dropout = keras.layers.Dropout(
            config.dropout, name="vector_dropout"
        )
        self.norm = make_norm(config.stack, name="norm")
        self.blocks = [
            TransformerBlock(config=config.stack, name=f"block_{number}")
            for number in range(config.layers)
        ]
        self.output_layer = Linear(1, name="output_layer")

    def build(self, _: Any = None) -> None:
        width = self.config.width
        scaling = functools.partial(
            self.add_weight, shape=(FEATURE_COUNT,), trainable=False
        )
        self.feature_mean = scaling(name="feature_mean", initializer="zeros")
        self.feature_scale = scaling(name="feature_scale", initializer="ones")
        self.positions = self.add_weight(
            name="positions",
            shape=(self.config.max_sentences, width),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        build_parts([self.feature_inner], FEATURE_COUNT)
        build_parts([self.feature_outer], width)
        build_parts([self.vector_input], self.config.vector_width)
        build_parts([self.norm, *self.blocks, self.output_layer], width)
        self.built = True

    def call(
        self, vectors: Tensor, features: Tensor, places: Tensor, training: bool = False
    ) -> Tensor:
        """The logit of each sentence.

        Args:
          vectors: float32 [B, N, D]; D may be 0.
          features: float32 [B, N, F].
          places: int32 [B, N], the position of each sentence in its document; -1 at
              padding.
          training: whether dropout is on.

        Returns:
          float32 [B, N].
        """
        scaled = (features - self.feature_mean) * self.feature_scale
        scaled = ops.clip(scaled, -LARGEST_FEATURE, LARGEST_FEATURE)
        states = self.feature_outer(self.activation(self.feature_inner(scaled)))
        if self.vector_input is not None:
            dropped = self.vector_dropout(vectors, training=training)
            states = states + self.vector_input(dropped)
        # Sentences after the last learned position use that position.
        rows = ops.clip(places, 0, self.config.max_sentences - 1)
        states = self.norm(states + ops.take(self.positions, rows, axis=0))
        bias = score_bias((places >= 0)[:, None, None, :])
        for block in self.blocks:
            states, _, _ = block(states, bias, training=training)
        return self.output_layer(states)[..., 0]
