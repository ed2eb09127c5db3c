"""Token embeddings and positions: the input of the first block, and the biases that
relative positions add to attention scores.
"""

import math
from typing import Any

import keras
import numpy as np

from precis.model.backend import Tensor, ops
from precis.model.network.config import RecurrentConfig, StackConfig
from precis.model.network.layers import Dropout, make_norm


def sinusoidal_positions(
    length: int, width: int, *, in_halves: bool = False
) -> np.ndarray:
    """Sinusoidal position codes (Vaswani et al. 2017, section 3.5), float32
    [length, width].

    PE[pos, 2i]     = sin(pos / 10000^(2i/D))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i/D))

    In halves, all sines come before all cosines; an odd width has one more sine.
    """
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    codes = np.stack([np.sin(angles), np.cos(angles)], axis=1 if in_halves else -1)
    return codes.reshape(length, -1)[:, :width].astype("float32")


def rotation_at(
    config: StackConfig, positions: Tensor, *, is_local: bool = False
) -> tuple[Tensor, Tensor] | None:
    """The rotation of queries and keys at some positions, for `place_heads`; None if
    positions are not rotary.

    The angle of value i of either half of a head is pos / theta^(2i / (D/H)).

    Args:
      config: the shape of the stack.
      positions: int32 [..., T].
      is_local: whether to use the theta of the blocks that read a window.

    Returns:
      Cosines and sines, float32 [..., 1, T, D/H].
    """
    if config.positions != "rotary":
        return None
    # Rounded as in PyTorch, because errors grow with the position.
    depth = config.width_of_head
    exponents = (np.arange(0, depth, 2, dtype="float32") / depth).astype("float64")
    theta = config.local_rotary_base if is_local else config.rotary_base
    frequencies = 1 / (theta**exponents).astype("float32")
    if config.rotary_scaling:
        factor, low, high, length = config.rotary_scaling
        turns = frequencies * length / (2 * math.pi)
        kept = np.clip((turns - low) / (high - low), 0, 1)
        frequencies = frequencies * (kept + (1 - kept) / factor)
    positions = ops.cast(positions[..., None, :, None], "float32")
    angles = positions * np.tile(frequencies.astype("float32"), 2)
    return ops.cos(angles), ops.sin(angles)


class TokenEmbedding(keras.layers.Layer):
    """Token embeddings and the tied output layer, which is the transposed table. Always
    float32.
    """

    def __init__(
        self,
        config: StackConfig | RecurrentConfig,
        *,
        has_logits_bias: bool = False,
        has_scaled_output: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.vocabulary_size, self.width = config.vocabulary_size, config.width
        self.has_logits_bias = has_logits_bias
        self.scale = math.sqrt(self.width) if config.scaled_embedding else 1.0
        # With standard deviation D^-0.5, the values of a scaled embedding are about as
        # large as position codes, and tied logits are about 1. A scaled output includes
        # this factor already (Raffel et al. 2020).
        self.deviation = 1.0 if has_scaled_output else self.width**-0.5

    def build(self, _: Any = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary_size, self.width),
            initializer=keras.initializers.RandomNormal(stddev=self.deviation),
        )
        self.logits_bias = None
        if self.has_logits_bias:
            # Without autocast: a network in another precision would cast the bias when
            # it calls `logits`.
            self.logits_bias = self.add_weight(
                name="logits_bias",
                shape=(self.vocabulary_size,),
                initializer="zeros",
                autocast=False,
            )
        self.built = True

    def call(self, ids: Tensor) -> Tensor:
        """Maps ids int32 [...] to float32 [..., D], times sqrt(D) if scaled."""
        return ops.take(self.table, ids, axis=0) * self.scale

    def logits(self, states: Tensor, dtype: Any) -> Tensor:
        """The tied output layer: states [..., D] times the transposed table, multiplied
        in `dtype`, float32 [..., V].
        """
        table = ops.transpose(ops.cast(self.table, dtype))  # [D, V]
        logits = ops.cast(ops.matmul(ops.cast(states, dtype), table), "float32")
        return logits if self.logits_bias is None else logits + self.logits_bias


class PositionedInput(keras.layers.Layer):
    """The input of the first block: embeddings plus position codes, a norm with
    `embedding_norm`, then dropout. Always float32.
    """

    def __init__(self, *, config: StackConfig, max_tokens: int, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.config = config
        self.max_tokens = max_tokens
        self.norm = make_norm(config, name="norm") if config.embedding_norm else None
        self.dropout = Dropout(config.dropout, name="dropout", dtype="float32")

    def build(self, _: Any = None) -> None:
        kind = self.config.positions
        self.positions: Any = None  # none with relative and rotary positions
        if kind == "learned":
            self.positions = self.add_weight(
                name="positions",
                shape=(self.max_tokens, self.config.width),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
            )
        elif kind.startswith("sinusoidal"):
            self.positions = sinusoidal_positions(
                self.max_tokens,
                self.config.width,
                in_halves=kind == "sinusoidal_halves",
            )
        if self.norm:
            self.norm.build((None, None, self.config.width))
        self.built = True

    def call(
        self, embedded: Tensor, positions: Tensor, training: bool = False
    ) -> Tensor:
        """Adds positions to embedded tokens.

        Args:
          embedded: float32 [..., D].
          positions: int32, broadcast to [...], the position of each token.
          training: whether dropout is on.

        Returns:
          float32 [..., D].
        """
        if self.positions is not None:
            codes = ops.convert_to_tensor(self.positions)  # [max_tokens, D]
            embedded = embedded + ops.take(codes, positions, axis=0)
        if self.norm:
            embedded = self.norm(embedded)
        return self.dropout(embedded, training=training)


class RelativePositions(keras.layers.Layer):
    """A learned bias for each head and each distance between query and key, added to
    scores (Raffel et al. 2020, section 2.1). Always float32.

    Distances share buckets: half of the buckets hold one distance each, the others
    ranges of distances that grow logarithmically. A bidirectional stack has half of the
    buckets for each direction.
    """

    def __init__(
        self, *, config: StackConfig, is_bidirectional: bool, **kwargs: Any
    ) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.config = config
        self.longest = config.relative_distance
        self.buckets = relative_buckets(
            np.arange(-self.longest, self.longest + 1),
            buckets=config.relative_buckets,
            longest=self.longest,
            is_bidirectional=is_bidirectional,
        )  # of distance -longest, ..., longest

    def build(self, _: Any = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.config.relative_buckets, self.config.heads),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        self.built = True

    def call(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The bias of attention scores.

        Args:
          queries: positions of the queries, int32 [..., T].
          keys: positions of the keys, int32 [..., S].

        Returns:
          float32 [..., H, T, S].
        """
        distances = keys[..., None, :] - queries[..., :, None]
        distances = ops.clip(distances, -self.longest, self.longest)
        buckets = ops.take(
            ops.convert_to_tensor(self.buckets), distances + self.longest
        )
        biases = ops.take(self.table, buckets, axis=0)  # [..., T, S, H]
        return ops.moveaxis(biases, -1, -3)


def relative_buckets(
    distances: np.ndarray, *, buckets: int, longest: int, is_bidirectional: bool
) -> np.ndarray:
    """The bucket of each distance, which is the key's position minus the query's.

    With 8 buckets and a longest distance of 12, in one direction:

        distance  0  -1  -2  -3  -4  -5  -6  -7  -8  -9  -10  -11  -12
        bucket    0   1   2   3   4   4   5   6   6   6    7    7    7

    Args:
      distances: int64 of any shape.
      buckets: the total number of buckets.
      longest: the maximum distance; all larger distances share its bucket.
      is_bidirectional: whether keys to the right have separate buckets; otherwise they
          share the bucket of distance 0.

    Returns:
      int32 of the same shape.
    """
    first_bucket = np.zeros_like(distances)
    if is_bidirectional:
        buckets //= 2
        first_bucket = np.where(distances > 0, buckets, 0)
        distances = np.abs(distances)
    else:
        distances = np.maximum(-distances, 0)
    exact = buckets // 2  # buckets that hold one distance each
    # In float32 as in T5, because rounding decides the bucket of border distances.
    ratio = np.log(
        np.maximum(distances, 1).astype("float32") / np.float32(exact)
    ) / np.float32(math.log(longest / exact))
    logarithmic = exact + (ratio * (buckets - exact)).astype("int64")
    logarithmic = np.minimum(logarithmic, buckets - 1)
    bucket = first_bucket + np.where(distances < exact, distances, logarithmic)
    return bucket.astype("int32")
