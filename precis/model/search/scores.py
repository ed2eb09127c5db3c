"""Scores of next tokens, the search for the best of them, and the length penalty."""

import math
from typing import NamedTuple

from precis.model.backend import Tensor, ops
from precis.model.search.config import CANDIDATE_BLOCK, SearchConfig

# The log-probability of a forbidden token. Finite, so that sums stay free of NaN; far
# below every real log-probability.
LOWEST_SCORE = -1e9


class NextTokenScores(NamedTuple):
    """Log-probabilities of the next tokens, log P(v) = logits[v] - norm. The difference
    is computed only for the tokens that are chosen.

    Attributes:
      logits: float32 [B, K, V], LOWEST_SCORE or below for forbidden tokens.
      norm: float32 [B, K, 1], log(sum(exp(logits))) before constraints are applied.
    """

    logits: Tensor
    norm: Tensor


def is_possible(log_probs: Tensor) -> Tensor:
    """Whether hypotheses are free of forbidden tokens, bool of the same shape."""
    return log_probs > LOWEST_SCORE / 2


def length_penalty(length: Tensor, config: SearchConfig) -> Tensor:
    """`SearchConfig.length_divisor` of int32 lengths, float32 of the same shape."""
    return config.length_divisor(ops.cast(length, "float32"))


# The preferred block size. The nearest divisor of the vocabulary size is used, if it is
# within a factor of 4.
BLOCK = CANDIDATE_BLOCK


def top_tokens(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest scores of each row and their token ids; of equal scores, the
    smaller id comes first.

    Only the `count` blocks with the largest maxima are searched: these maxima alone are
    `count` scores that no score of another block exceeds.

    Args:
      scores: float32 [B, K, V]. If V is unknown when the graph is traced, it must be a
          multiple of BLOCK and at least BLOCK * count.
      count: at least 1.

    Returns:
      float32 [B, K, count], in descending order, and int32 [B, K, count]. If the
      vocabulary is smaller, the last scores are -inf.
    """
    size = scores.shape[-1]
    if size is None:
        return _top_of_blocks(scores, count, ops.shape(scores)[-1], BLOCK)
    if size < count:
        scores = ops.pad(
            scores, [[0, 0], [0, 0], [0, count - size]], constant_values=-math.inf
        )
        size = count
    block = _block_size(size)
    if size // block < 2 * count:
        values, ids = ops.top_k(scores, k=count)
        return values, ops.cast(ids, "int32")
    return _top_of_blocks(scores, count, size, block)


def _top_of_blocks(
    scores: Tensor, count: int, size: Tensor, block: int
) -> tuple[Tensor, Tensor]:
    """Does `top_tokens` in blocks, for a vocabulary of `size` tokens."""
    batch, beams = ops.shape(scores)[:2]
    blocks = ops.reshape(scores, (batch * beams, size // block, block))
    _, best = ops.top_k(ops.max(blocks, axis=-1), k=count)
    # Sorted in vocabulary order, so that equal scores stay in the order of their ids.
    best = ops.sort(ops.cast(best, "int32"), axis=-1)  # [B * K, count]
    rows = ops.arange(batch * beams, dtype="int32")[:, None] * (size // block) + best
    held = ops.take(ops.reshape(blocks, (-1, block)), rows, axis=0)
    held = ops.reshape(held, (batch * beams, count * block))
    values, places = ops.top_k(held, k=count)
    places = ops.cast(places, "int32")
    ids = ops.take_along_axis(best, places // block, axis=-1) * block + places % block
    shape = (batch, beams, count)
    return ops.reshape(values, shape), ops.reshape(ids, shape)


def _block_size(size: int) -> int:
    """The divisor of the vocabulary size nearest to BLOCK, or the vocabulary size if
    none is near.
    """
    sizes = range(BLOCK // 4, 4 * BLOCK + 1)
    divisors = [block for block in sizes if size % block == 0]
    return min(divisors, key=lambda block: abs(math.log(block / BLOCK)), default=size)
