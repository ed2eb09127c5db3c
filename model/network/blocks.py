"""The blocks of a Transformer: self-attention, cross-attention to the source in a
decoder, and the feed-forward network, each with its residual connection.
"""

from typing import Any

import keras

from precis.model.network.config import StackConfig
from precis.model.network.layers import FeedForward, MultiHeadAttention, Residual


class EncoderBlock(keras.layers.Layer):
    """Self-attention, then the feed-forward network.

    With a bias that masks later positions it is also a block of a decoder-only network.
    """

    def __init__(self, *, config: StackConfig, **kwargs: Any) -> None:
        # Without autocast: under mixed precision it would cast the float32 residual
        # stream.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        self.attention = MultiHeadAttention(config=config, name="attention")
        self.attention_residual = Residual(config=config, name="attention_residual")
        self.feed_forward = FeedForward(config=config, name="feed_forward")
        self.feed_forward_residual = Residual(
            config=config, name="feed_forward_residual"
        )

    def build(self, _: Any = None) -> None:
        for part in (
            self.attention,
            self.attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        ):
            part.build((None, None, self.width))
        self.built = True

    def call(
        self, states: Any, bias: Any, past: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Runs the block.

        Args:
          states: float32 [B, S, D].
          bias: float32, broadcast to [B, H, S, P + S]; MASKED where nothing may be
              read.
          past: keys and values that stand before the states, each [B, H, P, D/H]; None
              stands for P = 0.
          training: whether dropout is on.

        Returns:
          States [B, S, D], and the attention weights [B, H, S, P + S].
        """
        inputs = self.attention_residual.sublayer_input(states)
        update, weights = self.attention(inputs, inputs, bias, past=past)
        states = self.attention_residual(states, update, training=training)
        update = self.feed_forward(self.feed_forward_residual.sublayer_input(states))
        states = self.feed_forward_residual(states, update, training=training)
        return states, weights


class DecoderBlock(keras.layers.Layer):
    """Self-attention over the target, cross-attention to the source, then the
    feed-forward network.
    """

    def __init__(
        self, *, config: StackConfig, memory_width: int, **kwargs: Any
    ) -> None:
        # Without autocast, as in `EncoderBlock`.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        self.self_attention = MultiHeadAttention(config=config, name="self_attention")
        self.self_residual = Residual(config=config, name="self_residual")
        self.cross_attention = MultiHeadAttention(
            config=config, memory_width=memory_width, name="cross_attention"
        )
        self.cross_residual = Residual(config=config, name="cross_residual")
        self.feed_forward = FeedForward(config=config, name="feed_forward")
        self.feed_forward_residual = Residual(
            config=config, name="feed_forward_residual"
        )

    def build(self, _: Any = None) -> None:
        parts = (
            self.self_attention,
            self.self_residual,
            self.cross_attention,
            self.cross_residual,
            self.feed_forward,
            self.feed_forward_residual,
        )
        for part in parts:
            part.build((None, None, self.width))
        self.built = True

    def call(
        self,
        states: Any,
        memory: Any,
        target_bias: Any,
        source_bias: Any,
        training: bool = False,
    ) -> tuple[Any, Any, Any]:
        """Runs the block.

        Args:
          states: float32 [B, T, D].
          memory: [B, S, D], the encoder's states.
          target_bias: float32, broadcast to [B, H, T, T]; MASKED where a target
              position may not be read.
          source_bias: float32, broadcast to [B, H, T, S]; MASKED at padding.
          training: whether dropout is on.

        Returns:
          States [B, T, D], the weights of self-attention [B, H, T, T] and those of
          cross-attention [B, H, T, S].
        """
        inputs = self.self_residual.sublayer_input(states)
        update, self_weights = self.self_attention(inputs, inputs, target_bias)
        states = self.self_residual(states, update, training=training)
        inputs = self.cross_residual.sublayer_input(states)
        update, cross_weights = self.cross_attention(inputs, memory, source_bias)
        states = self.cross_residual(states, update, training=training)
        update = self.feed_forward(self.feed_forward_residual.sublayer_input(states))
        states = self.feed_forward_residual(states, update, training=training)
        return states, self_weights, cross_weights
