"""The pointer-generator output (See, Liu and Manning 2017): each token is either
generated from the vocabulary or copied from the source.

The names are from the paper: a is the attention distribution over the source, the
probabilities of copying each position; p_gen is the probability of generating, and
P_vocab the generator's distribution over the vocabulary.
"""

import math
from typing import Any, NamedTuple

import keras

from precis.model.backend import Tensor, ops
from precis.model.logits import (
    log_norm,
    logit_places,
    read_places,
    write_places,
)
from precis.model.network.layers import Memory

# The lower limit of probabilities before a logarithm, smaller than any probability that
# a float32 softmax can distinguish from zero.
LOWEST_PROBABILITY = 1e-30


class PointerOutput(NamedTuple):
    """The output of the pointer for the T tokens of a target.

    Attributes:
      p_gen: the probability of generating, float32 [B, T, 1].
      copy_probabilities: a, the probability of each source position if the token is
          copied, float32 [B, T, S].
      source: int32 [B, S].
    """

    p_gen: Tensor
    copy_probabilities: Tensor
    source: Tensor


class Prediction(NamedTuple):
    """The prediction of next tokens with teacher forcing, in the parts that a loss
    needs: it does not join them to a distribution over the vocabulary.

    Attributes:
      logits: the generator's logits, float32 [B, T, V].
      pointer_output: the output of the pointer; None for a network without a pointer.
    """

    logits: Tensor
    pointer_output: PointerOutput | None


class PointerSource(NamedTuple):
    """The tensors of a source that every step of the pointer reads.

    Attributes:
      tokens: int32 [B, U], the distinct tokens of each source; if a source has fewer
          than U, some are repeated.
      holds: float32 [B, S, U], 1 if a position holds a token.
      memory, keys: [B, S, D].
      source_bias: float32 [B, 1, S], MASKED at padding.
    """

    tokens: Tensor
    holds: Tensor
    memory: Tensor
    keys: Tensor
    source_bias: Tensor


class PointerGenerator(keras.layers.Layer):
    """Mixes copies of source tokens into the distribution over the vocabulary.

    P(w)  = p_gen P_vocab(w) + (1 - p_gen) sum of a_i over i with w_i = w   (equation 9)
    p_gen = sigmoid(w_h . context + w_s . state + w_x . input + b)          (equation 8)

    Here a is the softmax of a scaled dot product of state and memory, and the context
    is the sum of a_i memory_i. Word pieces spell every word, so no extended vocabulary
    is needed.
    """

    def __init__(self, *, width: int, memory_width: int, **kwargs: Any) -> None:
        # Without autocast: under mixed precision it would cast the float32 logits.
        super().__init__(autocast=False, **kwargs)
        self.width, self.memory_width = width, memory_width
        self.query = keras.layers.Dense(width, name="query")
        self.key = keras.layers.Dense(width, name="key")
        self.gate = keras.layers.Dense(1, name="gate", dtype="float32")

    def build(self, _: Any = None) -> None:
        self.query.build((None, None, self.width))
        self.key.build((None, None, self.memory_width))
        self.gate.build((None, None, 2 * self.width + self.memory_width))
        self.built = True

    def call(self, states: Tensor, inputs: Tensor, memory: Memory) -> PointerOutput:
        """Computes p_gen and the copy probabilities of whole targets.

        Args:
          states: [B, T, D], the decoder's last states.
          inputs: [B, T, D], the embeddings of the decoder's input tokens.
          memory: the encoded sources.
        """
        scores = self._scores(states, self.key(memory.states), memory.source_bias)
        copy_probabilities = ops.softmax(scores)
        p_gen = self._p_gen(copy_probabilities, memory.states, states, inputs)
        return PointerOutput(p_gen, copy_probabilities, memory.source)

    def start(self, memory: Memory) -> PointerSource:
        """Computes what every `step` reads of a source, once per search."""
        source, tokens = memory.source, different_tokens(memory.source)
        holds = ops.cast(ops.equal(source[:, :, None], tokens[:, None]), "float32")
        keys = self.key(memory.states)
        return PointerSource(tokens, holds, memory.states, keys, memory.source_bias)

    def step(
        self,
        logits: Tensor,
        states: Tensor,
        inputs: Tensor,
        past: PointerSource,
    ) -> Tensor:
        """The mixture for one token of each hypothesis, as unnormalised
        log-probabilities.

        If the mixture is divided by p_gen, P_vocab(w) stays unchanged for every token
        that is not in the source. So only the logits of the source's tokens are
        changed, without a further pass over the vocabulary.

        Args:
          logits: the generator's logits, float32 [B, K, V].
          states, inputs: [B, K, D].
          past: the tensors of the source.

        Returns:
          float32 [B, K, V].
        """
        scores = self._scores(states, past.keys, past.source_bias)
        copy_probabilities = ops.softmax(scores)  # [B, K, S]
        p_gen = ops.maximum(
            self._p_gen(copy_probabilities, past.memory, states, inputs),
            LOWEST_PROBABILITY,
        )
        norm = log_norm(logits)
        copied = ops.matmul((1.0 - p_gen) * copy_probabilities, past.holds)
        places = logit_places(logits, past.tokens[:, None])
        logits_of_tokens = read_places(logits, places)  # [B, K, U]
        generated = p_gen * ops.exp(logits_of_tokens - norm)
        mixed = ops.log(ops.maximum(generated + copied, LOWEST_PROBABILITY))
        mixed = mixed - ops.log(p_gen) + norm
        mixed = ops.maximum(mixed, logits_of_tokens)
        return write_places(logits, places, mixed)

    def _scores(self, states: Tensor, keys: Tensor, source_bias: Tensor) -> Tensor:
        """Masked scores of source positions, float32 [B, T, S]."""
        scale = 1.0 / math.sqrt(self.width)
        scores = ops.matmul(self.query(states), ops.swapaxes(keys, 1, 2)) * scale
        return ops.cast(scores, "float32") + source_bias

    def _p_gen(
        self, copy_probabilities: Tensor, memory: Tensor, states: Tensor, inputs: Tensor
    ) -> Tensor:
        """p_gen (equation 8), float32 [B, T, 1]."""
        context = ops.matmul(copy_probabilities, ops.cast(memory, "float32"))
        parts = [context, ops.cast(states, "float32"), ops.cast(inputs, "float32")]
        return ops.sigmoid(self.gate(ops.concatenate(parts, axis=-1)))


def different_tokens(source: Tensor) -> Tensor:
    """The distinct tokens of sources, int32 [B, S] -> [B, U], in order of occurrence.

    U is the largest number of distinct tokens in a source.
    """
    length = ops.shape(source)[1]
    positions = ops.arange(length, dtype="int32")
    is_same = ops.equal(source[:, :, None], source[:, None])  # [B, S, S]
    is_before = positions < positions[:, None]
    is_first = ops.logical_not(ops.any(ops.logical_and(is_same, is_before), axis=-1))
    count = ops.max(ops.sum(ops.cast(is_first, "int32"), axis=1), initial=0)
    # First occurrences, then repetitions.
    order = ops.argsort(ops.where(is_first, positions, positions + length), axis=1)
    return ops.take_along_axis(source, order[:, :count], axis=1)


def log_probs(prediction: Prediction) -> Tensor:
    """Unnormalised log-probabilities of a prediction, float32 [B, T, V]; with a
    pointer, of the mixture p_gen P_vocab + (1 - p_gen) P_copy (equation 9).
    """
    if prediction.pointer_output is None:
        return prediction.logits
    p_gen, copy_probabilities, source = prediction.pointer_output
    generated = p_gen * ops.softmax(prediction.logits)
    copied = scatter_to_vocabulary(
        (1.0 - p_gen) * copy_probabilities, source, generated.shape[-1]
    )
    return ops.log(ops.maximum(generated + copied, LOWEST_PROBABILITY))


def scatter_to_vocabulary(
    values: Tensor, source: Tensor, vocabulary_size: int
) -> Tensor:
    """Sums values at source positions by the token at the position.

    source 5 7 5, values 0.5 0.3 0.2  ->  0.7 at token 5, 0.3 at token 7, 0 elsewhere

    Args:
      values: float32 [B, T, S].
      source: int32 [B, S].
      vocabulary_size: V.

    Returns:
      float32 [B, T, V].
    """
    batch, steps, length = ops.shape(values)
    rows = ops.broadcast_to(ops.arange(batch)[:, None], (batch, length))  # [B, S]
    targets = ops.reshape(
        ops.stack([rows, ops.cast(source, "int32")], axis=-1), (batch * length, 2)
    )
    # All steps of a source position go to the same token, so the scatter moves whole
    # rows of T values.
    values = ops.reshape(ops.swapaxes(values, 1, 2), (batch * length, steps))
    by_token = ops.scatter(targets, values, (batch, vocabulary_size, steps))
    return ops.swapaxes(by_token, 1, 2)
