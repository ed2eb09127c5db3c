"""The Transformer block, and stacks of blocks. A block has self-attention, perhaps
cross-attention to the source, and a feed-forward network, each with a residual
connection.
"""

from typing import Any

import keras

from precis.model.backend import Tensor
from precis.model.network.config import StackConfig
from precis.model.network.layers import (
    FeedForward,
    MultiHeadAttention,
    Residual,
    build_parts,
    make_norm,
)
from precis.model.network.positions import PositionedInput, RelativePositions


class TransformerBlock(keras.layers.Layer):
    """A block of an encoder, of a decoder or of a decoder-only network.

    Attributes:
      cross_attention: the attention to a memory; None without `memory_width`.
    """

    def __init__(
        self,
        *,
        config: StackConfig,
        memory_width: int | None = None,
        has_attention_norm: bool = True,
        **kwargs: Any,
    ) -> None:
        """Makes the layers; without `memory_width` there is no cross-attention."""
        # Without autocast: under mixed precision it would cast the float32 residual
        # stream.
        super().__init__(autocast=False, **kwargs)
        self.width = config.width
        # These names are part of the paths of weights.
        attention, residual = "attention", "attention_residual"
        if memory_width:
            attention, residual = "self_attention", "self_residual"
        self.self_attention = MultiHeadAttention(config=config, name=attention)
        self.self_residual = Residual(
            config=config, has_norm=has_attention_norm, name=residual
        )
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
        states: Tensor,
        bias: Tensor,
        memory: Tensor = None,
        memory_bias: Tensor = None,
        past: tuple[Tensor, Tensor] | None = None,
        rotation: tuple[Tensor, Tensor] | None = None,
        window: Any = None,
        training: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Runs the block.

        Args:
          states: float32 [B, T, D].
          bias: float32, broadcast to [B, H, T, P + T]; MASKED where nothing may be
              read.
          memory: [B, S, D], the memory that cross-attention reads.
          memory_bias: float32, broadcast to [B, H, T, S]; MASKED at padding.
          past: earlier keys and values, each [B, H, P, D/H]; None means P = 0.
          rotation: the rotation of queries and keys in self-attention, as in
              `place_heads`.
          window: the window of self-attention, as in `attend_within`.
          training: whether dropout is on.

        Returns:
          States [B, T, D]; the weights of self-attention [B, H, T, P + T], None with a
          window; the weights of cross-attention [B, H, T, S], None without it.
        """
        inputs = self.self_residual.sublayer_input(states)
        update, weights = self.self_attention(
            inputs, inputs, bias, past=past, rotation=rotation, window=window
        )
        states = self.self_residual(states, update, training=training)
        cross_weights = None
        if self.cross_attention:
            inputs = self.cross_residual.sublayer_input(states)
            update, cross_weights = self.cross_attention(inputs, memory, memory_bias)
            states = self.cross_residual(states, update, training=training)
        update = self.feed_forward(self.feed_forward_residual.sublayer_input(states))
        states = self.feed_forward_residual(states, update, training=training)
        return states, weights, cross_weights


def make_stack(
    config: StackConfig,
    *,
    names: tuple[str, str, str, str],
    blocks: int,
    max_tokens: int,
    memory_width: int | None = None,
    is_bidirectional: bool = False,
) -> tuple[PositionedInput, RelativePositions | None, list[TransformerBlock], Any]:
    """Makes the layers of a stack: the input of the lowest block, relative positions or
    None, the blocks from the lowest to the highest, and the last norm or None.

    Args:
      config: the shape of the stack.
      names: the names of these layers; the number of a block is appended to its name.
      blocks: the number of blocks.
      max_tokens: the length of the longest row.
      memory_width: as in `TransformerBlock`.
      is_bidirectional: whether tokens read later tokens.
    """
    of_input, of_positions, of_block, of_norm = names
    input_layer = PositionedInput(config=config, max_tokens=max_tokens, name=of_input)
    relative = None
    if config.positions == "relative":
        relative = RelativePositions(
            config=config, is_bidirectional=is_bidirectional, name=of_positions
        )
    stack = [
        TransformerBlock(
            config=config,
            memory_width=memory_width,
            has_attention_norm=number > 0 or config.first_norm,
            name=f"{of_block}_{number}",
        )
        for number in range(blocks)
    ]
    norm = make_norm(config, name=of_norm) if config.norm_first else None
    return input_layer, relative, stack, norm
