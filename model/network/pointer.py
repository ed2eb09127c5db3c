"""The pointer-generator output (See, Liu and Manning 2017): each token is either
generated or copied from the source.
"""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.network.layers import log_norm, places

# Added to nothing, only a floor below which a probability is not logged: smaller than
# any float32 softmax says anything about.
LOWEST_PROBABILITY = 1e-30
COVERAGE_WEIGHT = "coverage_weight"  # the name of the weight that only coverage needs


class Reading(NamedTuple):
    """What the pointer read of the source for each of T tokens.

    Attributes:
      generate: p_gen, float32 [B, T, 1].
      copy: the copy distribution over source positions, float32 [B, T, S].
      source: int32 [B, S].
    """

    generate: Any
    copy: Any
    source: Any


class PointerGenerator(keras.layers.Layer):
    """Mixes a copy distribution over the source into the vocabulary distribution.

    P(w) = p_gen P_vocab(w) + (1 - p_gen) * sum of a_i over the source positions i that hold w       (equation 9)
    p_gen = sigmoid(w_c . context + w_s . state + w_x . input + b)                                  (equation 8)

    where a = softmax over the source of a scaled dot product of state and memory, and
    context = sum of a_i memory_i. Word pieces spell every word, so there is no extended
    vocabulary.

    With coverage (section 2.3), c_i = sum of a_i over the tokens before, times a number
    that is learned, is added to the scores: equation 11 of the paper without its hidden
        layer, as the scores here have none. The number begins at 0, so a network that
        was trained without
    coverage goes on from where it was.
    """

    def __init__(
        self,
        *,
        width: int,
        memory_width: int | None = None,
        has_coverage: bool = False,
        **kwargs: Any,
    ) -> None:
        # Not cast on the way in: under mixed precision the logits would lose their
        # float32.
        super().__init__(autocast=False, **kwargs)
        self.width, self.memory_width, self.has_coverage = (
            width,
            memory_width or width,
            has_coverage,
        )
        self.query = keras.layers.Dense(width, name="query")
        self.key = keras.layers.Dense(width, name="key")
        self.gate = keras.layers.Dense(1, name="gate", dtype="float32")

    def build(self, _: Any = None) -> None:
        self.query.build((None, None, self.width))
        self.key.build((None, None, self.memory_width))
        self.gate.build((None, None, 2 * self.width + self.memory_width))
        if self.has_coverage:
            self.coverage_weight = self.add_weight(
                name=COVERAGE_WEIGHT,
                shape=(),
                initializer="zeros",
                dtype="float32",
                autocast=False,
            )
        self.built = True

    def call(
        self, states: Any, inputs: Any, source: Any, memory: Any, source_bias: Any
    ) -> Reading:
        """What is read for each token of whole targets.

        Args:
          states: [B, T, D], the decoder's last states.
          inputs: [B, T, D], what entered the decoder: the embeddings of its input
              tokens.
          source: int32 [B, S].
          memory: [B, S, D].
          source_bias: float32 [B, 1, S], MASKED at padding.
        """
        scores = self._scores(states, self.key(memory), source_bias)
        copy = self._read_in_turn(scores) if self.has_coverage else ops.softmax(scores)
        return Reading(self._generate(copy, memory, states, inputs), copy, source)

    def start(self, source: Any, memory: Any, source_bias: Any) -> "PointerMemory":
        """What `step` reads of a source: computed once."""
        is_same = ops.cast(ops.equal(source[:, :, None], source[:, None]), "float32")
        return PointerMemory(source, memory, self.key(memory), source_bias, is_same)

    def step(
        self,
        logits: Any,
        states: Any,
        inputs: Any,
        past: "PointerMemory",
        coverage: Any,
    ) -> tuple[Any, Any]:
        """The mixture as unnormalised log-probabilities: a search has no time for a
        pass over the vocabulary.

        log P(w) = log p_gen + log P_vocab(w) for all that the source does not hold. So
        P / p_gen differs from P_vocab only at the tokens of the source, and only these
        logits are changed.

        Args:
          logits: float32 [B, K, V] of the generator.
          states, inputs: [B, K, D].
          past: of the source.
          coverage: float32 [B, K, S], the sum of what was read before, or () where
              nobody counts it.

        Returns:
          float32 [B, K, V], and the coverage with what was read now.
        """
        scores = self._scores(states, past.keys, past.source_bias)
        copy = ops.softmax(
            scores + self.coverage_weight * coverage if self.has_coverage else scores
        )
        generate = ops.maximum(
            self._generate(copy, past.memory, states, inputs), LOWEST_PROBABILITY
        )
        norm = log_norm(logits)
        batch, beams, _ = ops.shape(logits)
        tokens = ops.broadcast_to(
            past.source[:, None], (batch, beams, ops.shape(past.source)[1])
        )
        # Each position gets the mass of all positions that hold its token.
        copied = ops.matmul((1.0 - generate) * copy, past.is_same)  # [B, K, S]
        generated = generate * ops.exp(
            ops.take_along_axis(logits, tokens, axis=-1) - norm
        )
        mixed = (
            ops.log(ops.maximum(generated + copied, LOWEST_PROBABILITY))
            - ops.log(generate)
            + norm
        )
        logits = ops.scatter_update(
            logits, places(tokens), ops.reshape(mixed, (-1,)), reduction="max"
        )
        return logits, coverage if isinstance(coverage, tuple) else coverage + copy

    def _scores(self, states: Any, keys: Any, source_bias: Any) -> Any:
        """float32 [B, T, S]."""
        scores = ops.matmul(self.query(states), ops.swapaxes(keys, 1, 2)) * (
            1.0 / math.sqrt(self.width)
        )
        return ops.cast(scores, "float32") + source_bias

    def _read_in_turn(self, scores: Any) -> Any:
        """The copy distributions of scores [B, T, S] where each token's depends on
        those before it.
        """

        def read(coverage: Any, scores: Any) -> tuple[Any, Any]:
            copy = ops.softmax(scores + self.coverage_weight * coverage)
            return coverage + copy, copy

        _, copies = ops.scan(
            read, ops.zeros_like(scores[:, 0]), ops.swapaxes(scores, 0, 1)
        )
        return ops.swapaxes(copies, 0, 1)

    def _generate(self, copy: Any, memory: Any, states: Any, inputs: Any) -> Any:
        """p_gen, float32 [B, T, 1]."""
        context = ops.matmul(copy, ops.cast(memory, "float32"))  # [B, T, D]
        return ops.sigmoid(
            self.gate(
                ops.concatenate(
                    [context, ops.cast(states, "float32"), ops.cast(inputs, "float32")],
                    axis=-1,
                )
            )
        )


class PointerMemory(NamedTuple):
    """What the pointer reads of a source at each step.

    Attributes:
      source: int32 [B, S].
      memory, keys: [B, S, D].
      source_bias: float32 [B, 1, S].
      is_same: float32 [B, S, S], 1 where two positions hold the same token.
    """

    source: Any
    memory: Any
    keys: Any
    source_bias: Any
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
    copied = spread((1.0 - generate) * copy, source, vocabulary.shape[-1])
    return ops.log(ops.maximum(generate * vocabulary + copied, LOWEST_PROBABILITY))


def spread(values: Any, source: Any, vocabulary_size: int) -> Any:
    """What stands at source positions, float32 [B, T, S], summed at their tokens, [B,
    T, V]; zero elsewhere. The source is int32 [B, S].
    """
    batch, steps, length = ops.shape(values)
    rows = ops.broadcast_to(ops.arange(batch)[:, None], (batch, length))  # [B, S]
    targets = ops.reshape(
        ops.stack([rows, ops.cast(source, "int32")], axis=-1), (batch * length, 2)
    )
    # All steps of a source position go to one row of the vocabulary axis, so the
    # scatter moves whole rows of T values.
    values = ops.reshape(ops.swapaxes(values, 1, 2), (batch * length, steps))
    return ops.swapaxes(
        ops.scatter(targets, values, (batch, vocabulary_size, steps)), 1, 2
    )


def coverage_loss(copy: Any) -> Any:
    """What is read again: the sum over the source of min(a_i, c_i) (equation 12),
    float32 [B, T] of copy distributions [B, T, S].
    """
    return ops.sum(ops.minimum(copy, ops.cumsum(copy, axis=1) - copy), axis=-1)


def coverage_penalty(coverage: Any, source_bias: Any) -> Any:
    """The sum over the source of log(min(coverage, 1)) (Wu et al. 2016, equation 14),
    at most 0.

    Args:
      coverage: float32 [B, K, S].
      source_bias: float32 [B, 1, S], MASKED at padding, which does not count.

    Returns:
      float32 [B, K].
    """
    logs = ops.log(ops.clip(coverage, LOWEST_PROBABILITY, 1.0))
    return ops.sum(ops.where(source_bias < 0.0, 0.0, logs), axis=-1)
