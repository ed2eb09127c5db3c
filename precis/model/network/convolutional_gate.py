"""The convolutional gated unit of global encoding (Lin et al. 2018, section 3.2), which
scales down the encoder states that a summary does not need.
"""

import functools

import keras

from precis.model.backend import Tensor, ops
from precis.model.network.config import RecurrentConfig, StackConfig
from precis.model.network.layers import (
    Dropout,
    Linear,
    MultiHeadAttention,
    build_parts,
)


class ConvolutionalGate(keras.layers.Layer):
    """Multiplies encoder states by a gate from 0 to 1.

    gate = sigmoid(self-attention(dropout(join(conv_1, conv_3, conv_5))))

    The convolutions of widths 1, 3 and 5 read the states in parallel; the one of width
    5 is two of width 3 in sequence, as in Inception. The gate is small and therefore
    always float32.
    """

    def __init__(self, config: StackConfig | RecurrentConfig) -> None:
        super().__init__(dtype="float32", name="convolutional_gate")
        self.width = width = config.width
        convolution = functools.partial(
            keras.layers.Conv1D,
            width,
            padding="same",
            activation="relu",
            dtype="float32",
        )
        self.narrow = convolution(1, name="convolution_1")
        self.middle = convolution(3, name="convolution_3")
        self.wide_inner = convolution(3, name="convolution_5_inner")
        self.wide_outer = convolution(3, name="convolution_5_outer")
        self.join = Linear(width, name="join", dtype="float32")
        stack = StackConfig(
            vocabulary_size=1,
            pad_id=0,
            width=width,
            feed_forward=width,
            heads=1,
            positions="learned",
        )
        self.attention = MultiHeadAttention(
            config=stack, name="attention", dtype="float32"
        )
        self.dropout = Dropout(config.dropout, name="dropout", dtype="float32")

    def build(self, _: Tensor = None) -> None:
        convolutions = [self.narrow, self.middle, self.wide_inner, self.wide_outer]
        build_parts([*convolutions, self.attention], self.width)
        self.join.build((None, None, 3 * self.width))
        self.built = True

    def call(self, states: Tensor, bias: Tensor, training: bool = False) -> Tensor:
        """Scales encoder states.

        Args:
          states: [B, S, D].
          bias: float32 [B, 1, 1, S], below 0 at padding, where states are set to 0.
          training: whether dropout is on.

        Returns:
          [B, S, D] of the states' dtype.
        """
        is_text = ops.cast(bias[:, 0, 0, :, None] >= 0.0, "float32")  # [B, S, 1]
        text = ops.cast(states, "float32") * is_text
        narrow = self.narrow(text)
        middle = self.middle(text)
        wide = self.wide_outer(self.wide_inner(text) * is_text)
        joined = self.join(ops.concatenate([narrow, middle, wide], axis=-1))
        joined = self.dropout(joined, training=training)
        gate, _ = self.attention(joined, joined, bias)
        return states * ops.cast(ops.sigmoid(gate), states.dtype)
