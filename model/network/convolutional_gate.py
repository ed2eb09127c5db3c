"""The convolutional gated unit of global encoding (Lin et al. 2018, section 3.2): dims
what a summary can do without.
"""

from typing import Any

import keras
from keras import ops

from precis.model.network.config import StackConfig
from precis.model.network.layers import Dropout, Linear, MultiHeadAttention

_WIDTHS = (1, 3, 5)  # of the convolutions


class ConvolutionalGate(keras.layers.Layer):
    """Encoder states times a gate from 0 to 1: convolutions of three widths side by
    side, self-attention over them, a sigmoid.

    A convolution of width 5 is two of width 3 behind each other, as in Inception. All
    of it in float32: it is small.
    """

    def __init__(self, *, width: int, dropout: float, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.width = width
        sizes = {
            "convolution_1": 1,
            "convolution_3": 3,
            "convolution_5_inner": 3,
            "convolution_5_outer": 3,
        }
        self.narrow, self.middle, self.wide_inner, self.wide_outer = (
            keras.layers.Conv1D(
                width,
                size,
                padding="same",
                activation="relu",
                name=name,
                dtype="float32",
            )
            for name, size in sizes.items()
        )
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
        self.dropout = Dropout(dropout, name="dropout", dtype="float32")

    def build(self, _: Any = None) -> None:
        shape = (None, None, self.width)
        for part in (
            self.narrow,
            self.middle,
            self.wide_inner,
            self.wide_outer,
            self.attention,
        ):
            part.build(shape)
        self.join.build((None, None, len(_WIDTHS) * self.width))
        self.built = True

    def call(self, states: Any, bias: Any, training: bool = False) -> Any:
        """[B, S, D] -> [B, S, D]; bias float32 [B, 1, 1, S], below 0 at padding, which
        no convolution sees.
        """
        is_text = ops.cast(bias[:, 0, 0, :, None] >= 0.0, "float32")  # [B, S, 1]
        seen = ops.cast(states, "float32") * is_text
        wide = self.wide_outer(self.wide_inner(seen) * is_text)
        joined = self.join(
            ops.concatenate([self.narrow(seen), self.middle(seen), wide], axis=-1)
        )
        joined = self.dropout(joined, training=training)
        gate, _ = self.attention(joined, joined, bias)
        return states * ops.cast(ops.sigmoid(gate), states.dtype)
