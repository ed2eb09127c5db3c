"""Where a token stands, as the networks see it: embeddings with position codes, and
numbers for the distance between two positions.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from precis.model.network.config import StackConfig
from precis.model.network.layers import Dropout, make_norm


def sinusoidal_positions(
    length: int, width: int, *, in_halves: bool = False
) -> np.ndarray:
    """Sine and cosine position codes, float32 [length, width] (Vaswani et al. 2017,
    section 3.5).

    PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(pos / 10000^(2i/D)); in
    halves, all sines stand before all cosines.
    """
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    codes = np.stack([np.sin(angles), np.cos(angles)], axis=1 if in_halves else -1)
    return codes.reshape(length, width).astype("float32")


class TokenEmbedding(keras.layers.Layer):
    """Token embeddings; read backwards, the tied output layer. Always float32."""

    def __init__(
        self,
        *,
        vocabulary_size: int,
        width: int,
        is_scaled: bool,
        has_logits_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.vocabulary_size, self.width, self.has_logits_bias = (
            vocabulary_size,
            width,
            has_logits_bias,
        )
        self.scale = math.sqrt(width) if is_scaled else 1.0

    def build(self, _: Any = None) -> None:
        # Standard deviation D^-0.5 makes a scaled embedding as large as a position
        # code, and tied logits about 1.
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary_size, self.width),
            initializer=keras.initializers.RandomNormal(stddev=self.width**-0.5),
        )
        self.logits_bias = None
        if self.has_logits_bias:
            # `logits` is called by a network that may compute in another precision;
            # autocast would bring it there.
            self.logits_bias = self.add_weight(
                name="logits_bias",
                shape=(self.vocabulary_size,),
                initializer="zeros",
                autocast=False,
            )
        self.built = True

    def call(self, ids: Any) -> Any:
        """int32 [...] -> float32 [..., D], times sqrt(D) if scaled."""
        return ops.take(self.table, ids, axis=0) * self.scale

    def logits(self, states: Any, dtype: Any) -> Any:
        """States [..., D] times the table transposed, multiplied in `dtype`, float32
        [..., V].
        """
        logits = ops.cast(
            ops.matmul(
                ops.cast(states, dtype), ops.transpose(ops.cast(self.table, dtype))
            ),
            "float32",
        )
        return logits if self.logits_bias is None else logits + self.logits_bias


class PositionedInput(keras.layers.Layer):
    """What enters the first block: embeddings plus positions, normed if so configured,
    then dropout. Always float32.
    """

    def __init__(self, *, config: StackConfig, max_tokens: int, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.config, self.max_tokens = config, max_tokens
        self.norm = make_norm(config, name="norm") if config.embedding_norm else None
        self.dropout = Dropout(config.dropout, name="dropout", dtype="float32")

    def build(self, _: Any = None) -> None:
        kind, shape = self.config.positions, (self.max_tokens, self.config.width)
        self.positions: Any = None  # relative positions are numbers added to scores
        if kind == "learned":
            self.positions = self.add_weight(
                name="positions",
                shape=shape,
                initializer=keras.initializers.RandomNormal(stddev=0.02),
            )
        elif kind.startswith("sinusoidal"):
            self.positions = sinusoidal_positions(
                *shape, in_halves=kind == "sinusoidal_halves"
            )
        if self.norm:
            self.norm.build((None, None, self.config.width))
        self.built = True

    def call(self, embedded: Any, positions: Any = None, training: bool = False) -> Any:
        """Whole rows: [B, T, D] -> [B, T, D]; each begins at position 0 unless
        positions int32 [B, T] say where its tokens stand.
        """
        if positions is not None:
            return self.dropout(self.at(embedded, positions), training=training)
        if self.positions is not None:
            embedded = (
                embedded
                + ops.convert_to_tensor(self.positions)[: ops.shape(embedded)[1]]
            )
        return self.dropout(self._normed(embedded), training=training)

    def at(self, embedded: Any, positions: Any) -> Any:
        """Tokens [..., D] at positions int32, which are broadcast to [...]; without
        dropout.
        """
        if self.positions is not None:
            embedded = embedded + ops.take(
                ops.convert_to_tensor(self.positions), positions, axis=0
            )
        return self._normed(embedded)

    def _normed(self, states: Any) -> Any:
        return self.norm(states) if self.norm else states


class RelativePositions(keras.layers.Layer):
    """A number for each head and each distance between query and key, added to scores
    (Raffel et al. 2020, section 2.1). Always float32.

    Distances share buckets: half of them are for one distance each, the others grow
        logarithmically up to the longest. A stack that
    reads in both directions has half of the buckets for each direction.
    """

    def __init__(
        self, *, config: StackConfig, is_bidirectional: bool, **kwargs: Any
    ) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.config, self.longest = config, config.relative_distance
        distances = np.arange(-self.longest, self.longest + 1)
        self.buckets = relative_buckets(
            distances,
            buckets=config.relative_buckets,
            longest=self.longest,
            is_bidirectional=is_bidirectional,
        )

    def build(self, _: Any = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.config.relative_buckets, self.config.heads),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        self.built = True

    def call(self, queries: Any, keys: Any) -> Any:
        """What is added to scores: positions int32 [..., T] and [..., S] -> float32
        [..., H, T, S].
        """
        distances = (
            ops.clip(
                keys[..., None, :] - queries[..., :, None], -self.longest, self.longest
            )
            + self.longest
        )
        numbers = ops.take(
            self.table, ops.take(ops.convert_to_tensor(self.buckets), distances), axis=0
        )  # [..., T, S, H]
        return ops.moveaxis(numbers, -1, -3)


def relative_buckets(
    distances: np.ndarray, *, buckets: int, longest: int, is_bidirectional: bool
) -> np.ndarray:
    """The bucket of each distance, int32 of the same shape; a distance is the key's
    position less the query's.
    """
    first = np.zeros_like(distances)
    if is_bidirectional:
        buckets //= 2
        first = np.where(distances > 0, buckets, 0)
        distances = np.abs(distances)
    else:
        distances = np.maximum(-distances, 0)
    exact = buckets // 2
    ratio = np.log(
        np.maximum(distances, 1).astype("float32") / np.float32(exact)
    ) / np.float32(math.log(longest / exact))
    shared = exact + (ratio * (buckets - exact)).astype("int64")
    return (
        first + np.where(distances < exact, distances, np.minimum(shared, buckets - 1))
    ).astype("int32")


def make_relative(
    config: StackConfig, *, is_bidirectional: bool, name: str
) -> RelativePositions | None:
    """The numbers of a stack with relative positions; None for another."""
    return (
        RelativePositions(config=config, is_bidirectional=is_bidirectional, name=name)
        if config.positions == "relative"
        else None
    )
