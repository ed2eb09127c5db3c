"""Searches that fail for documents with certain tokens, in a search process.

This file imports no TensorFlow, so that a process starts quickly.
"""

import functools
import os
import signal
import time
from collections.abc import Callable, Sequence

import numpy as np

from precis.model.inference import bulk_summarizer
from precis.model.inference.batches import Hypothesis, SearchedBatch
from precis.model.inference.bulk_summarizer import ModelSearch

KILLS = 14
FAILS = 13
_load_search = bulk_summarizer.load_search


def has(token: int, sources: Sequence[np.ndarray]) -> bool:
    return any(token in source for source in sources)


def echo(sources: Sequence[np.ndarray]) -> SearchedBatch:
    """Each source as its own summary, without a network."""
    now = time.monotonic()
    results = [[Hypothesis(source.tolist(), 0.0, 0.0, None)] for source in sources]
    return SearchedBatch(results, 0, 0, now, now)


def load_search(search: ModelSearch) -> Callable[[Sequence[np.ndarray]], SearchedBatch]:
    """A real search; the memory of the process suffices for two documents."""
    import tensorflow as tf

    searcher = _load_search(search).args[0]
    search_together = searcher.search_together

    def poisoned(sources: Sequence[np.ndarray]) -> SearchedBatch:
        if has(KILLS, sources):
            os.kill(os.getpid(), signal.SIGKILL)
        if len(sources) > 2:
            raise tf.errors.ResourceExhaustedError(None, None, f"OOM: {sources}")
        if has(FAILS, sources):
            raise tf.errors.InvalidArgumentError(None, None, f"wrong: {sources}")
        return search_together(sources)

    searcher.search_together = poisoned
    return functools.partial(bulk_summarizer._search_batch, searcher)
