"""The pointer-generator output (See, Liu and Manning 2017): each token is either generated or copied from the source."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from model.network.layers import log_norm, masked_softmax, places

# Added to nothing, only a floor below which a probability is not logged: smaller than any float32 softmax says anything about.
LOWEST_PROBABILITY = 1e-30


class PointerGenerator(keras.layers.Layer):
    """Mixes a copy distribution over the source into the vocabulary distribution.

    P(w) = p_gen P_vocab(w) + (1 - p_gen) * sum of a_i over the source positions i that hold w       (equation 9)
    p_gen = sigmoid(w_c . context + w_s . state + w_x . input + b)                                  (equation 8)

    where a = softmax over the source of a scaled dot product of state and memory, and context = sum of a_i memory_i. Word pieces spell
    every word, so there is no extended vocabulary.
    """

    def __init__(self, *, width: int, **kwargs: Any) -> None:
        # Not cast on the way in: under mixed precision the logits would lose their float32.
        super().__init__(autocast=False, **kwargs)
        self.width = width
        self.query = keras.layers.Dense(width, name="query")
        self.key = keras.layers.Dense(width, name="key")
        self.gate = keras.layers.Dense(1, name="gate", dtype="float32")

    def build(self, _: Any = None) -> None:
        self.query.build((None, None, self.width))
        self.key.build((None, None, self.width))
        self.gate.build((None, None, 3 * self.width))
        self.built = True

    def keys(self, memory: Any) -> Any:
        """The copy keys [B, S, D] of a memory [B, S, D]: computed once, read at every step."""
        return self.key(memory)

    def call(self, logits: Any, states: Any, inputs: Any, source: Any, memory: Any, keys: Any, source_mask: Any) -> Any:
        """Log-probabilities of the mixture.

        Args:
          logits: float32 [B, T, V] of the generator.
          states: [B, T, D], the decoder's last states.
          inputs: [B, T, D], the embeddings of the decoder's input tokens.
          source: int32 [B, S], the source's ids.
          memory, keys: [B, S, D].
          source_mask: bool [B, 1, S].

        Returns:
          float32 [B, T, V]; exp of it sums to one.
        """
        generate, copy = self._read(states, inputs, memory, keys, source_mask)
        return mix(generate, ops.softmax(logits), copy, source)

    def start(self, source: Any, memory: Any, source_mask: Any) -> "PointerMemory":
        """What `step` reads of a source: computed once."""
        is_same = ops.cast(ops.equal(source[:, :, None], source[:, None]), "float32")
        return PointerMemory(source, memory, self.keys(memory), source_mask, is_same)

    def step(self, logits: Any, states: Any, inputs: Any, past: "PointerMemory") -> Any:
        """The mixture as unnormalised log-probabilities: a search has no time for a pass over the vocabulary.

        log P(w) = log p_gen + log P_vocab(w) for all that the source does not hold. So P / p_gen differs from P_vocab only at the tokens of
        the source, and only these logits are changed.

        Args:
          logits: float32 [B, K, V] of the generator.
          states, inputs: [B, K, D].
          past: of the source.

        Returns:
          float32 [B, K, V].
        """
        generate, copy = self._read(states, inputs, past.memory, past.keys, past.source_mask)
        generate = ops.maximum(generate, LOWEST_PROBABILITY)
        norm = log_norm(logits)
        batch, beams, _ = ops.shape(logits)
        tokens = ops.broadcast_to(past.source[:, None], (batch, beams, ops.shape(past.source)[1]))
        # Each position gets the mass of all positions that hold its token.
        copied = ops.matmul((1.0 - generate) * copy, past.is_same)  # [B, K, S]
        generated = generate * ops.exp(ops.take_along_axis(logits, tokens, axis=-1) - norm)
        mixed = ops.log(ops.maximum(generated + copied, LOWEST_PROBABILITY)) - ops.log(generate) + norm
        return ops.scatter_update(logits, places(tokens), ops.reshape(mixed, (-1,)), reduction="max")

    def _read(self, states: Any, inputs: Any, memory: Any, keys: Any, source_mask: Any) -> tuple[Any, Any]:
        """p_gen [B, T, 1] and the copy distribution [B, T, S], float32."""
        scores = ops.matmul(self.query(states), ops.swapaxes(keys, 1, 2)) * (1.0 / math.sqrt(self.width))  # [B, T, S]
        copy = masked_softmax(scores, source_mask)  # [B, T, S]
        context = ops.matmul(copy, ops.cast(memory, "float32"))  # [B, T, D]
        read = ops.concatenate([context, ops.cast(states, "float32"), ops.cast(inputs, "float32")], axis=-1)
        return ops.sigmoid(self.gate(read)), copy


class PointerMemory(NamedTuple):
    """What the pointer reads of a source at each step.

    Attributes:
      source: int32 [B, S].
      memory, keys: [B, S, D].
      source_mask: bool [B, 1, S].
      is_same: float32 [B, S, S], 1 where two positions hold the same token.
    """

    source: Any
    memory: Any
    keys: Any
    source_mask: Any
    is_same: Any


def mix(generate: Any, vocabulary: Any, copy: Any, source: Any) -> Any:
    """log(p_gen P_vocab + (1 - p_gen) P_copy).

    Args:
      generate: p_gen, float32 [B, T, 1].
      vocabulary: P_vocab, float32 [B, T, V].
      copy: the copy distribution over source positions, float32 [B, T, S].
      source: int32 [B, S].

    Returns:
      float32 [B, T, V].
    """
    batch, steps, length = ops.shape(copy)
    rows = ops.broadcast_to(ops.arange(batch)[:, None], (batch, length))  # [B, S]
    targets = ops.reshape(ops.stack([rows, ops.cast(source, "int32")], axis=-1), (batch * length, 2))
    # All steps of a source position go to one row of the vocabulary axis, so the scatter moves whole rows of T values.
    mass = ops.reshape(ops.swapaxes((1.0 - generate) * copy, 1, 2), (batch * length, steps))
    copied = ops.swapaxes(ops.scatter(targets, mass, (batch, vocabulary.shape[-1], steps)), 1, 2)  # [B, T, V]
    return ops.log(ops.maximum(generate * vocabulary + copied, LOWEST_PROBABILITY))
