"""The block of a Transformer: self-attention, cross-attention to the source in a
decoder that has one, and the feed-forward network, each with its residual connection.
"""

from typing import Any

import keras

from precis.model.network.config import StackConfig
from precis.model.network.layers import (
    FeedForward,
    MultiHeadAttention,
    Residual,
    build_parts,
)


class Block(keras.layers.Layer):
    """A block of an encoder, of a decoder or of a decoder-only network.

    Attributes:
      cross_attention: to a memory; None in an encoder and in a decoder-only network.
    """

    def __init__(
        self, *, config: StackConfig, memory_width: int | None = None, **kwargs: Any
    ) -> None:
        """Makes the layers; without `memory_width` there is no cross-attention."""
        # Without autocast: under mixed precision it would cast the float32 residual
        # stream.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        # The paths of weights have these names.
        attention, residual = "attention", "attention_residual"
        if memory_width:
            attention, residual = "self_attention", "self_residual"
        self.self_attention = MultiHeadAttention(config=config, name=attention)
        self.self_residual = Residual(config=config, name=residual)
        self.cross_attention = None
        if memory_width:
            self.cross_attention = MultiHeadAttention(
                config=config, memory_width=memory_width, name="cross_attention"
            )
            self.cross_residual = Residual(config=config, name="cross_residual")
        self.feed_forward = FeedForward(config=config, name="feed_forward")
        self.feed_forward_residual = Residual(
            config=config, name="feed_forward_residual"
        )

    def build(self, _: Any = None) -> None:
        parts = [self.self_attention, self.self_residual]
        if self.cross_attention:
            parts += [self.cross_attention, self.cross_residual]
        build_parts([*parts, self.feed_forward, self.feed_forward_residual], self.width)
        self.built = True

    def call(
        self,
        states: Any,
        bias: Any,
        memory: Any = None,
        memory_bias: Any = None,
        past: Any = None,
        training: bool = False,
    ) -> tuple[Any, Any, Any]:
        """Runs the block.

        Args:
          states: float32 [B, T, D].
          bias: float32, broadcast to [B, H, T, P + T]; MASKED where nothing may be
              read.
          memory: [B, S, D], what the cross-attention reads.
          memory_bias: float32, broadcast to [B, H, T, S]; MASKED at padding.
          past: keys and values that stand before the states, each [B, H, P, D/H]; None
              stands for P = 0.
          training: whether dropout is on.

        Returns:
          States [B, T, D], the weights of self-attention [B, H, T, P + T] and those of
          cross-attention [B, H, T, S], None without one.
        """
        inputs = self.self_residual.sublayer_input(states)
        update, weights = self.self_attention(inputs, inputs, bias, past=past)
        states = self.self_residual(states, update, training=training)
        cross_weights = None
        if self.cross_attention:
            inputs = self.cross_residual.sublayer_input(states)
            update, cross_weights = self.cross_attention(inputs, memory, memory_bias)
            states = self.cross_residual(states, update, training=training)
        update = self.feed_forward(self.feed_forward_residual.sublayer_input(states))
        states = self.feed_forward_residual(states, update, training=training)
        return states, weights, cross_weights
