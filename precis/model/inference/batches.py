"""Batches of documents of similar length, and the result of searching one batch.

This file does not import TensorFlow.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from precis.model.isolation import NAN, Failure
from precis.model.network.config import SOURCE_PADDING

# The maximum of padded source tokens times beams in a batch in float32, such as 16
# documents of 400 tokens with four beams. The memory and the work of a step grow with
# this product. With 16-bit numbers it is doubled: they take half the memory, and
# products with more rows are faster.
BATCH_BEAM_TOKENS = 25_600
# The maximum of documents times beams, so that the logits of many short documents fit
# in memory too.
MAX_BATCH_HYPOTHESES = 256
# oneDNN prepares a matrix product for each new shape. Source lengths from 1 to 512 make
# 512 shapes; padded to multiples of 16, they make 32, with 2 % more tokens at 400.
LENGTH_STEP = 16

# The stage of failures in a search.
SEARCH = "search"
NO_FINITE_SCORE = Failure(SEARCH, NAN, "the network gave no summary a finite score")


class Hypothesis(NamedTuple):
    """One hypothesis for a document.

    Attributes:
      tokens: the token ids, end token included.
      score: the log-probability divided by the length penalty; hypotheses are ranked
        by it.
      log_prob: the sum of the log-probabilities of its tokens.
      margin: its score minus the score of the next hypothesis in the beam; None for
        the last one. It is negative if the next one has a higher score but is ranked
        lower because it has no end token.
      min_log_prob: the log-probability of its least likely token.
      is_finished: whether it has an end token; False if it was cut off at the maximum
        length.
    """

    tokens: list[int]
    score: float
    log_prob: float
    margin: float | None
    min_log_prob: float = 0.0
    is_finished: bool = True


class Cost(NamedTuple):
    """The cost of summarizing one source.

    Attributes:
      prompt_tokens: the number of tokens read; None if a server does not say.
      written_tokens: the number of tokens of the best hypothesis, end token included;
        None as above.
      writing_seconds: the time of its request, or its share of the search time of a
        batch, by tokens.
    """

    prompt_tokens: int | None
    written_tokens: int | None
    writing_seconds: float


# Takes the hypotheses of a document. Returns 0 if one is short enough, otherwise the
# maximum number of tokens for a second search.
Shorter = Callable[[list[Hypothesis]], int]


class SearchedBatch(NamedTuple):
    """The result of searching one batch.

    Attributes:
      results: the hypotheses of each document, best first, or its failure.
      source_tokens: the number of source tokens of its documents, without padding.
      padded_tokens: the same with padding.
      started, ended: times in seconds, on a clock that all processes of this machine
        share.
    """

    results: list[Any]
    source_tokens: int
    padded_tokens: int
    started: float
    ended: float


class Searcher(Protocol):
    """Searches batches, with TensorFlow or CTranslate2."""

    def search_together(self, sources: Sequence[np.ndarray]) -> SearchedBatch:
        """Searches documents as one batch.

        Args:
          sources: int32 [S] each, cut at the network's source length.

        Returns:
          The hypotheses of each document; a failure if a score is not finite or there
          are no hypotheses. If all hypotheses are too long, shorter ones follow them.
        """
        ...


def shared_costs(batch: SearchedBatch, lengths: Sequence[int]) -> list[Cost]:
    """The cost of each document of a batch; time is shared in proportion to tokens.

    Args:
      batch: the searched batch.
      lengths: the number of source tokens of each document; for a batch with a single
        document, the count in `batch` is used instead.
    """
    if len(lengths) == 1:
        lengths = [batch.source_tokens]
    written = [
        0 if isinstance(ranked, Failure) or not ranked else len(ranked[0].tokens)
        for ranked in batch.results
    ]
    rate = (batch.ended - batch.started) / max(1, sum(lengths) + sum(written))
    return [
        Cost(read or None, count or None, rate * (read + count))
        for read, count in zip(lengths, written, strict=True)
    ]


def padded_length(lengths: Sequence[int], max_source_tokens: int) -> int:
    """The length that the sources of a batch are padded to.

    It is a multiple of LENGTH_STEP, but at most `max_source_tokens`.
    """
    return min(max_source_tokens, -(-max(1, *lengths) // LENGTH_STEP) * LENGTH_STEP)


def pad_sources(sources: Sequence[np.ndarray], max_source_tokens: int) -> np.ndarray:
    """Makes a batch, int32 [B, S], of sources, int32 [S], with `padded_length`."""
    length = padded_length(list(map(len, sources)), max_source_tokens)
    padded = np.full((len(sources), length), SOURCE_PADDING, np.int32)
    for row, source in zip(padded, sources, strict=True):
        row[: len(source)] = source
    return padded


def batches_by_length(
    lengths: Sequence[int],
    *,
    beams: int,
    max_source_tokens: int,
    precision: str = "float32",
) -> list[list[int]]:
    """Groups documents of similar length into batches, the longest documents first.

    A batch holds as many padded documents as fit BATCH_BEAM_TOKENS, or twice as many
    with 16-bit numbers, so all batches are about the same work. As the longest
    documents come first, memory runs out at once or not at all. The last batch holds
    the rest and is often the smallest, so that processes end at about the same time.

    Args:
      lengths: the number of source tokens of each document.
      beams: the beam width.
      max_source_tokens: the maximum number of source tokens that the network reads.
      precision: the precision that the network computes in.

    Returns:
      The positions of the documents of each batch.
    """
    room = BATCH_BEAM_TOKENS * (2 if precision.startswith("mixed_") else 1)

    def size(longest: int) -> int:
        by_tokens = room // (beams * padded_length([longest], max_source_tokens))
        return min(MAX_BATCH_HYPOTHESES // beams, by_tokens)

    return group_by_length(lengths, size)


def group_by_length(
    lengths: Sequence[int], size: Callable[[int], int]
) -> list[list[int]]:
    """Groups items of similar length, the longest first.

    Args:
      lengths: the length of each item.
      size: takes the length of the longest item of a group and returns how many items
        fit; at least one is used.

    Returns:
      The positions of the items of each group.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    groups: list[list[int]] = []
    while order:
        count = max(1, size(lengths[order[0]]))
        groups.append(order[:count])
        order = order[count:]
    return groups


def restore_order(
    batches: Sequence[Sequence[int]], searched: Sequence[SearchedBatch]
) -> list[Any]:
    """Puts the results of batches back into the order of the documents.

        batches    [2, 0]  [1]
        searched   c  a    b       ->  a b c

    Args:
      batches: the positions of the documents of each batch.
      searched: the result of each batch.
    """
    restored: list[Any] = [None] * sum(map(len, batches))
    for rows, batch in zip(batches, searched, strict=True):
        for row, result in zip(rows, batch.results, strict=True):
            restored[row] = result
    return restored


def shorter_bounds(
    results: Sequence[list[Hypothesis] | Failure],
    shorter: Shorter | None,
) -> dict[int, int]:
    """The rows of documents that are searched again, with the maximum number of tokens.

    Args:
      results: the hypotheses of each document of a batch, or its failure.
      shorter: as in `TensorFlowSearcher`.
    """
    if shorter is None:
        return {}
    tokens = [0 if isinstance(each, Failure) else shorter(each) for each in results]
    # One token would be only the end token.
    return {row: count for row, count in enumerate(tokens) if count > 1}


def join_batches(parts: Sequence[SearchedBatch]) -> SearchedBatch:
    """Joins the results of the parts of a batch."""
    return SearchedBatch(
        [result for part in parts for result in part.results],
        sum(part.source_tokens for part in parts),
        sum(part.padded_tokens for part in parts),
        min((part.started for part in parts), default=0.0),
        max((part.ended for part in parts), default=0.0),
    )
