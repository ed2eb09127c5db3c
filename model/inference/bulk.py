"""Windows of documents in, ranked summaries out: searches in processes where that pays,
else in this one.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from precis.model.bundle.network_bundle import open_bundle
from precis.model.inference.batches import SearchedBatch, batches_by_length, in_order
from precis.model.inference.summarizer import Summary, distinct_summaries
from precis.model.inference.worker_pool import (
    Search,
    SearchPool,
    check_model,
    load_searcher,
)
from precis.model.search.config import check_coverage

if TYPE_CHECKING:
    from precis.model.inference.searcher import Searcher

# A process needs some seconds before it can search; fewer batches than this are done by
# then.
POOL_BATCHES = 4


class BulkSummarizer:
    """Summarizes many documents with a bundle; may be used from several threads.

    Attributes:
      source_tokenizer: the bundle's, of sources.
      max_source_tokens: what the network reads of a document.
    """

    def __init__(self, search: Search, *, processes: int) -> None:
        """Reads the bundle without its weights.

        Raises:
          UsageError: the folder is no complete bundle.
          DataError: the bundle is damaged or holds another model.
        """
        contents = open_bundle(search.bundle)
        check_model(search, contents.model_id)
        check_coverage(search.config, has_pointer=contents.config.pointer)
        self.source_tokenizer, self.max_source_tokens = (
            contents.source_tokenizer,
            contents.config.max_source_tokens,
        )
        self.tokenizer = contents.tokenizer
        self._search, self._processes = search, processes
        self._lock = threading.Lock()
        self._searcher: Searcher | None = None
        self.pool = SearchPool(search, processes=processes)

    def batches(self, sources: Sequence[np.ndarray]) -> list[list[int]]:
        """Positions of the documents of a window, batch after batch."""
        lengths = [min(len(source), self.max_source_tokens) for source in sources]
        return batches_by_length(
            lengths, beams=self._search.config.beam_width, limit=self.max_source_tokens
        )

    def pays_for_processes(self, sources: Sequence[np.ndarray]) -> bool:
        """Whether a window is work enough for processes of its own."""
        return self._processes > 1 and len(self.batches(sources)) >= POOL_BATCHES

    def begin(self, sources: Sequence[np.ndarray], *, in_processes: bool) -> "Window":
        """Begins to search a window; one that is searched in this process waits until
        its result is asked for.

        Args:
          sources: int32 [S] each, as the tokenizer gives them; cut at what the network
              reads.
          in_processes: whether to search in further processes.
        """
        cut = [
            self.source_tokenizer.cut(source, self.max_source_tokens)
            for source in sources
        ]
        return Window(self, cut, self.batches(cut), in_processes=in_processes)

    def search_here(self, sources: list[np.ndarray]) -> SearchedBatch:
        """Searches a batch in this process, which loads the weights for the first one."""
        with self._lock:
            if self._searcher is None:
                self._searcher = load_searcher(self._search)
        return self._searcher.search_together(sources)


class Window:
    """Documents whose search has begun.

    Attributes:
      searched: the batches, once `summaries` was called.
    """

    def __init__(
        self,
        bulk: BulkSummarizer,
        sources: list[np.ndarray],
        batches: list[list[int]],
        *,
        in_processes: bool,
    ) -> None:
        self._bulk, self._batches = bulk, batches
        self._sources = [[sources[row] for row in rows] for rows in batches]
        self._futures: list[Future[SearchedBatch]] = (
            [bulk.pool.submit(batch) for batch in self._sources] if in_processes else []
        )
        self.searched: list[SearchedBatch] = []

    def summaries(self) -> list[list[Summary]]:
        """The n best summaries of each document, in the order of the documents; fewer
        where fewer can be written.

        Raises:
          PrecisError: the search failed.
        """
        self.searched = list(self._results())
        return [
            distinct_summaries(ranked, self._bulk.tokenizer)
            for ranked in in_order(self._batches, self.searched)
        ]

    def _results(self) -> Iterator[SearchedBatch]:
        if self._futures:
            yield from map(self._bulk.pool.result, self._futures)
        else:
            yield from map(self._bulk.search_here, self._sources)
