"""Searches that fail for documents with certain tokens, in a search process.

This file imports no TensorFlow, so that a process starts quickly.
"""

import os
import signal
import time
from collections.abc import Sequence

import numpy as np

from precis.model.inference import worker_pool
from precis.model.inference.batches import Hypothesis, SearchedBatch
from precis.model.inference.worker_pool import ModelSearch

KILLS = 14
FAILS = 13


def has(token: int, sources: Sequence[np.ndarray]) -> bool:
    return any(token in source for source in sources)


def echo(search: ModelSearch, sources: list[np.ndarray]) -> SearchedBatch:
    """Each source as its own summary, without a network."""
    now = time.monotonic()
    results = [[Hypothesis(source.tolist(), 0.0, 0.0, None)] for source in sources]
    return SearchedBatch(results, 0, 0, now, now)


def load_nothing(search: ModelSearch) -> None:
    """In place of loading the bundle."""


def die(*_: object) -> None:
    """A process that cannot load the bundle."""
    os.kill(os.getpid(), signal.SIGKILL)


def search_batch(search: ModelSearch, sources: list[np.ndarray]) -> SearchedBatch:
    """A real search; the memory of the process suffices for two documents."""
    import tensorflow as tf

    searcher = worker_pool._process_searcher(search)
    search_together = type(searcher).search_together

    def poisoned(sources: Sequence[np.ndarray]) -> SearchedBatch:
        if has(KILLS, sources):
            os.kill(os.getpid(), signal.SIGKILL)
        if len(sources) > 2:
            raise tf.errors.ResourceExhaustedError(None, None, f"OOM: {sources}")
        if has(FAILS, sources):
            raise tf.errors.InvalidArgumentError(None, None, f"wrong: {sources}")
        return search_together(searcher, sources)

    searcher.search_together = poisoned  # type: ignore[method-assign]
    return worker_pool._search_batch(search, sources)
