"""Documents in batches of similar length, and what the search of a batch gives. Knows
nothing of TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple

# Padded source tokens times beams of a batch, over all its documents: 16 documents of
# 400 tokens at four beams. The memory and the work of a step both grow with that
# product.
BATCH_BEAM_TOKENS = 25_600
# Documents times beams, so that the logits of many short documents fit as well.
MAX_BATCH_HYPOTHESES = 256
# oneDNN prepares every product anew for shapes that it has not seen. Sources of every
# length from 1 to 512 make 512 shapes, padded up to a multiple of this they make 32,
# for 2 % more tokens at 400.
LENGTH_STEP = 16


class Hypothesis(NamedTuple):
    """One hypothesis for a document.

    Attributes:
      tokens: up to and with the end token.
      score: what hypotheses are ranked by, its log-probability over the length penalty.
      log_prob: the sum of its tokens' log-probabilities.
      margin: its score less that of the next one in the beam; None where there is no
        next one. Below zero where the next one scores more and is ranked behind for
        want of an end.
    """

    tokens: list[int]
    score: float
    log_prob: float
    margin: float | None


class SearchedBatch(NamedTuple):
    """The search of one batch.

    Attributes:
      found: the hypotheses of each document, best first.
      source_tokens: tokens of its documents.
      padded_tokens: the same with padding.
      started, ended: seconds of a clock that all processes of this machine share.
    """

    found: list[list[Hypothesis]]
    source_tokens: int
    padded_tokens: int
    started: float
    ended: float


def padded_length(lengths: Sequence[int], limit: int) -> int:
    """The length that the sources of a batch are padded to; no more than the network
    reads.
    """
    return min(limit, -(-max(1, *lengths) // LENGTH_STEP) * LENGTH_STEP)


def batches_by_length(
    lengths: Sequence[int], *, beams: int, limit: int
) -> list[list[int]]:
    """Positions of documents in batches of similar length, those of the longest
    documents first.

    A batch is as many documents as fit BATCH_BEAM_TOKENS when each is padded. All
    batches are about the same work; the longest documents come first, so that memory
    runs out at once or not at all, and the rest, the smallest batch, comes last, so
    that processes end together.

    Args:
      lengths: source tokens of each document.
      beams: hypotheses of each.
      limit: source tokens that the network reads.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    while order:
        fitting = BATCH_BEAM_TOKENS // (
            beams * padded_length([lengths[order[0]]], limit)
        )
        size = max(1, min(MAX_BATCH_HYPOTHESES // beams, fitting))
        batches.append(order[:size])
        order = order[size:]
    return batches


def in_order(
    batches: Sequence[Sequence[int]], searched: Sequence[SearchedBatch]
) -> list[list[Hypothesis]]:
    """The hypotheses of each document, in the order of the documents."""
    found: list[list[Hypothesis]] = [[] for _ in range(sum(map(len, batches)))]
    for rows, batch in zip(batches, searched, strict=True):
        for row, ranked in zip(rows, batch.found, strict=True):
            found[row] = ranked
    return found
