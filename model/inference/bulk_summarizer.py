"""Summaries of windows of documents, searched in this process or in several.

A window is some hundred documents of a corpus. It is searched in batches of similar
length: in the processes of a `SearchPool` where there is enough work for them, else in
this process.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.bundle.network_bundle import open_bundle
from precis.model.inference.batches import (
    SEARCH,
    Hypothesis,
    SearchedBatch,
    batches_by_length,
    restore_order,
)
from precis.model.inference.summarizer import Summary, distinct_summaries
from precis.model.inference.worker_pool import (
    SearchPool,
    check_model,
    load_searcher,
    search_isolated,
)
from precis.model.isolation import Failure, attempt

if TYPE_CHECKING:
    from precis.model.inference.searcher import Searcher

# A process needs some seconds before it can search. In that time, this process searches
# a smaller number of batches than this.
POOL_BATCHES = 4


class BulkSummarizer:
    """Summarizes many documents with a bundle; may be used from several threads.

    Attributes:
      tokenizer: the bundle's tokenizer of summaries.
      source_tokenizer: the bundle's tokenizer of sources.
      max_source_tokens: source tokens that the network reads.
      pool: the search processes.
    """

    def __init__(self, pool: SearchPool) -> None:
        """Opens the bundle of a pool, but does not read its weights.

        Raises:
          UsageError: the folder is no complete bundle.
          DataError: the bundle is damaged or holds another model.
        """
        search = pool.search
        contents = open_bundle(search.bundle)
        check_model(search.bundle, contents.model_id, search.model_id)
        self.tokenizer = contents.tokenizer
        self.source_tokenizer = contents.source_tokenizer
        self.max_source_tokens = contents.config.max_source_tokens
        self.pool = pool
        self._search = search
        self._lock = threading.Lock()
        self._searcher: Searcher | None = None

    def pays_for_processes(self, sources: Sequence[np.ndarray]) -> bool:
        """Whether a window is so much work that search processes are worth their start.

        Args:
          sources: int32 [S] each.
        """
        # Batches of single documents would say nothing about the amount of work.
        batches = self._batches(sources, batch_invariant=False)
        return self.pool.processes > 1 and len(batches) >= POOL_BATCHES

    def begin(
        self, sources: Sequence[np.ndarray], *, in_processes: bool
    ) -> "PendingWindow":
        """Begins to search a window.

        Args:
          sources: int32 [S] each, cut at the network's source length.
          in_processes: whether to search in the processes of the pool. Without them,
            the search begins when the summaries are asked for.
        """
        batches = self._batches(sources, batch_invariant=self._search.batch_invariant)
        return PendingWindow(self, sources, batches, in_processes=in_processes)

    def search_here(self, sources: list[np.ndarray]) -> SearchedBatch:
        """Searches a batch in this process; the first call loads the weights."""
        with self._lock:
            if self._searcher is None:
                self._searcher = load_searcher(self._search)
        return search_isolated(sources, self._searcher.search_together)

    def _batches(
        self, sources: Sequence[np.ndarray], *, batch_invariant: bool
    ) -> list[list[int]]:
        """The positions of the documents of each batch of a window."""
        return batches_by_length(
            [len(source) for source in sources],
            beams=self._search.config.beam_width,
            limit=self.max_source_tokens,
            precision=self._search.precision,
            batch_invariant=batch_invariant,
        )


class PendingWindow:
    """Documents whose search has begun.

    Attributes:
      searched: the result of each batch, available after `summaries`.
    """

    def __init__(
        self,
        bulk: BulkSummarizer,
        sources: Sequence[np.ndarray],
        batches: list[list[int]],
        *,
        in_processes: bool,
    ) -> None:
        self.searched: list[SearchedBatch] = []
        self._bulk = bulk
        self._batches = batches
        parts = [[sources[row] for row in rows] for rows in batches]
        # Each gives the result of a batch when it is called.
        self._searches: list[Callable[[], SearchedBatch]] = [
            bulk.pool.submit(part).result
            if in_processes
            else functools.partial(bulk.search_here, part)
            for part in parts
        ]

    def summaries(
        self, on_searched: Callable[[float], None] = lambda part: None
    ) -> list[list[Summary] | Failure]:
        """Waits for the search.

        Args:
          on_searched: takes how much of the window is searched, from 0 to 1; it is
            called after each batch.

        Returns:
          The n best summaries of each document, in the order of the documents; fewer
          where fewer can be written. A failure in place of them where the document
          cannot be searched.

        Raises:
          PrecisError: the bundle cannot be loaded, or search processes die whatever
            they do.
        """
        self.searched = []
        documents = sum(map(len, self._batches))
        searched_documents = 0
        for search in self._searches:
            self.searched.append(search())
            searched_documents += len(self.searched[-1].results)
            on_searched(searched_documents / documents)
        return [
            result
            if isinstance(result, Failure)
            else attempt(result, self._decode, stage=SEARCH)
            for result in restore_order(self._batches, self.searched)
        ]

    def _decode(self, ranked: list[Hypothesis]) -> list[Summary]:
        return distinct_summaries(ranked, self._bulk.tokenizer)
