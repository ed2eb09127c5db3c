"""The search of batches in which a document that fails costs only its own result.

    16 documents   out of memory      ->  8 and 8; later batches of that length begin
                                          with 8
    16 documents   another exception  ->  8 and 8
    1 document     any of the two     ->  a failure instead of hypotheses

This file does not import TensorFlow.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.inference.batches import SearchedBatch, padded_length
from precis.model.isolation import (
    NOT_OF_A_DOCUMENT,
    OUT_OF_MEMORY,
    PROCESS_DIED,
    Failure,
    failure_of,
)

SEARCH = "search"


class Batch(NamedTuple):
    """Documents that are searched together.

    Attributes:
      sources: int32 [S] each.
      is_suspect: whether a search process died of the documents, among others perhaps.
    """

    sources: list[np.ndarray]
    is_suspect: bool = False


class BatchError(Exception):
    """A batch could not be searched; can be sent to another process."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class IsolatedSearch:
    """Searches batches, in halves where that fails; several threads may use it."""

    def __init__(self) -> None:
        # The most documents of a padded length that fit in memory, where it ran out.
        self._most_documents: dict[int, int] = {}

    def search(
        self, batch: Batch, attempt: Callable[[Batch], SearchedBatch]
    ) -> SearchedBatch:
        """Searches a batch.

        Args:
          batch: the documents.
          attempt: searches a part of the batch. It raises `BatchError` or the exception
            of the search; those of NOT_OF_A_DOCUMENT are passed on.

        Returns:
          The result, with a failure for each document that cannot be searched.
        """
        lengths = [len(source) for source in batch.sources]
        padded = padded_length(lengths, limit=sys.maxsize)
        is_suspect = batch.is_suspect
        if len(lengths) <= self._most_documents.get(padded, len(lengths)):
            try:
                return attempt(batch)
            except NOT_OF_A_DOCUMENT:
                raise
            except BatchError as error:
                failure = error.failure
            except Exception as error:
                failure = failure_of(error, SEARCH)
            if len(lengths) == 1:
                return _failed_batch(lengths[0], padded, failure)
            if failure.reason == OUT_OF_MEMORY:
                self._most_documents[padded] = len(lengths) - len(lengths) // 2
            is_suspect = failure.reason == PROCESS_DIED
        middle = len(lengths) // 2
        parts = (batch.sources[:middle], batch.sources[middle:])
        return _join([self.search(Batch(part, is_suspect), attempt) for part in parts])


def _failed_batch(
    source_tokens: int, padded_tokens: int, failure: Failure
) -> SearchedBatch:
    """The result of a document that could not be searched."""
    now = time.monotonic()
    return SearchedBatch([[]], source_tokens, padded_tokens, now, now, {0: failure})


def _join(parts: Sequence[SearchedBatch]) -> SearchedBatch:
    """The results of the parts of a batch as one result."""
    failures: dict[int, Failure] = {}
    first = 0
    for part in parts:
        failures.update({first + row: part.failures[row] for row in part.failures})
        first += len(part.hypotheses)
    return SearchedBatch(
        [ranked for part in parts for ranked in part.hypotheses],
        sum(part.source_tokens for part in parts),
        sum(part.padded_tokens for part in parts),
        min(part.started for part in parts),
        max(part.ended for part in parts),
        failures,
    )
