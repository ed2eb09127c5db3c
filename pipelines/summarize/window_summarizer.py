"""Windows of documents -> summary rows, for the command and the transform alike.

A document that fails in one of the stages costs only its own row: it becomes a dead
letter.

    extract    sentences and keyphrases are chosen
    encode     the body becomes token ids
    search     the network writes summaries
    finish     the summaries are measured, and one is shown
    write      the row becomes a row of an Arrow table

The documents of a window are searched in the order of their lengths, and their rows
come in the order of the documents. While the last batches of a window are searched,
those of the next one wait already, so that no search process is idle.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa

from precis.model.extractive.expected import ExpectedReference
from precis.model.inference.batches import SearchedBatch
from precis.model.inference.isolated_search import SEARCH
from precis.model.inference.passages import BEST_SENTENCES, EncodedDocument
from precis.model.inference.process_limits import compute_on_one_thread, count_processes
from precis.model.inference.worker_pool import SearchPool
from precis.model.isolation import Failure, attempt, isolate
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.pipelines.options.summarize import WRITE_SENTENCES
from precis.pipelines.run.failure_watch import FailureWatch
from precis.pipelines.summarize.document_windows import DocumentWindow
from precis.pipelines.summarize.extractive_summaries import EXTRACT, neural_scores
from precis.pipelines.summarize.long_documents import (
    ENCODE,
    encode_documents,
    is_too_long,
    merge_passages,
)
from precis.pipelines.summarize.model_handles import Handle, Unshared
from precis.pipelines.summarize.scoring_models import open_scoring_models
from precis.pipelines.summarize.sentence_writing import (
    compose,
    encode_best_sentences,
)
from precis.pipelines.summarize.summarized_windows import (
    SummarizedWindow,
    one_ahead,
    sort_out,
)
from precis.pipelines.summarize.summary_rows import (
    PartialRow,
    ScoringModels,
    SourceDocument,
    SummaryRow,
    draft_rows,
    finish_row,
)
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.tables.window_tables import WRITE, isolated_table

if TYPE_CHECKING:  # They import TensorFlow.
    from precis.model.inference.bulk_summarizer import BulkSummarizer, PendingWindow
    from precis.model.inference.summarizer import Summary

FINISH = "finish"
# Takes a window, how much of it is searched, and the batch that was searched last.
OnSearched = Callable[[DocumentWindow, float, SearchedBatch], None]


class _StartedWindow(NamedTuple):
    """A window whose search has begun.

    Attributes:
      window: the documents.
      scores: `neural_scores` of the documents.
      sources: the sources of each document, or why there are none; None for a short
          document, and without a network.
      search: the search of those with sources; None without a network.
    """

    window: DocumentWindow
    scores: Sequence[np.ndarray | Failure | None]
    sources: Sequence[EncodedDocument | Failure | None]
    search: "PendingWindow | None"


class WindowSummarizer:
    """Summarizes windows of documents; every thread of a worker has its own copy.

    The copies of a process share the models, which `load` opens.
    """

    def __init__(
        self,
        settings: SummarySettings,
        handle: Callable[[], Handle] = Unshared,
        *,
        starts_early: bool = False,
    ) -> None:
        """Stores its arguments.

        Args:
          settings: of the summaries.
          handle: makes what the copies share models by.
          starts_early: whether search processes start before there is a window, as
            there will be much to search.
        """
        self._settings = settings
        self._starts_early = starts_early
        self._shared_bulk = handle()
        self._shared_models = handle()
        self._bulk: BulkSummarizer | None = None
        self._models = ScoringModels()
        self._watch = FailureWatch()

    def load(self) -> None:
        """Opens the bundles, once per process.

        Raises:
          UsageError: the rows must not depend on the number of threads, and TensorFlow
            has begun with several.
          DataError: a bundle is damaged or holds another model than the settings say.
        """
        options = self._settings.options
        if options.bundle:
            self._bulk = self._shared_bulk.acquire(self._open_bulk)
            self._bulk.pool.retain()
        if options.extractive_bundle:
            import_tensorflow()
        if options.batch_invariant and (options.bundle or options.extractive_bundle):
            compute_on_one_thread()
        self._models = self._shared_models.acquire(
            lambda: open_scoring_models(self._settings)
        )

    def close(self) -> None:
        """Ends the search processes when no copy in this process needs them."""
        if self._bulk is not None:
            self._bulk.pool.release()
            self._bulk = None

    def _open_bulk(self) -> "BulkSummarizer":
        processes = count_processes(self._settings.options.search_processes)
        pool = SearchPool(self._settings.search, processes=processes)
        if self._starts_early and processes > 1:
            pool.start()
        # This process imports TensorFlow beside them.
        import_tensorflow()
        from precis.model.inference.bulk_summarizer import BulkSummarizer

        try:
            return BulkSummarizer(pool)
        except BaseException:
            pool.close()
            raise

    def summarize(
        self,
        windows: Iterable[DocumentWindow],
        on_searched: OnSearched = lambda *_: None,
    ) -> Iterator[SummarizedWindow]:
        """Summarizes windows, in order.

        Args:
          windows: the documents.
          on_searched: takes a window, how much of it is searched, from 0 to 1, and the
            last batch; it is called after each batch.

        Raises:
          JobError: every document so far failed in the same stage and way.
        """
        for started in one_ahead(self._start(windows)):
            documents = started.window.documents
            rows = self._rows(started, on_searched)
            articles = [document.article for document in documents]
            batches = started.search.searched if started.search else []
            yield sort_out(
                SummarizedWindow(started.window, [], batches, [], articles), rows
            )

    def table(
        self,
        summarized: SummarizedWindow,
        rows: Sequence[Mapping[str, Any]],
        schema: pa.Schema = SUMMARY_SCHEMA,
    ) -> tuple[pa.Table, SummarizedWindow]:
        """Converts the rows of a window to an Arrow table.

        Args:
          summarized: the window.
          rows: all columns of each of its rows.
          schema: of the table.

        Returns:
          The table, and the window with dead letters in place of rows that do not fit
          the schema or hold numbers that are not finite.

        Raises:
          JobError: as `summarize`.
        """
        table, failures = isolated_table(rows, schema)
        results = [
            failure or row
            for failure, row in zip(failures, summarized.rows, strict=True)
        ]
        self._watch.check(WRITE, results)
        return table, sort_out(summarized, results)

    def _start(self, windows: Iterable[DocumentWindow]) -> Iterator[_StartedWindow]:
        """Begins to search each window.

        The first window with anything to search, nearly always the largest, decides for
        all of them whether they are searched in processes. So that depends on the
        documents alone, and is the same after an interruption.
        """
        in_processes = None
        for window in windows:
            scores = neural_scores(
                [document.article for document in window.documents],
                self._models.neural,
            )
            if self._bulk is None:
                no_sources = [None] * len(window.documents)
                yield _StartedWindow(window, scores, no_sources, None)
                continue
            sources = self._encode(window.documents, scores, self._bulk)
            ids = [
                passage
                for source in sources
                if _is_encoded(source)
                for passage in source.passages
            ]
            if in_processes is None and ids:
                in_processes = self._bulk.pays_for_processes(ids)
            search = self._bulk.begin(ids, in_processes=bool(in_processes))
            yield _StartedWindow(window, scores, sources, search)

    def _encode(
        self,
        documents: Sequence[SourceDocument],
        scores: Sequence[np.ndarray | Failure | None],
        bulk: "BulkSummarizer",
    ) -> list[EncodedDocument | Failure | None]:
        """The sources of the documents that are not short and did not fail."""
        is_read = [
            not (document.is_short or isinstance(document_scores, Failure))
            for document, document_scores in zip(documents, scores, strict=True)
        ]
        encode = (
            encode_best_sentences
            if self._settings.options.write == WRITE_SENTENCES
            else encode_documents
        )
        encoded = isolate(
            list(itertools.compress(zip(documents, scores, strict=True), is_read)),
            lambda group: encode(
                group,
                bulk.source_tokenizer,
                max_source_tokens=bulk.max_source_tokens,
                options=self._settings.options,
                models=self._models,
            ),
            stage=ENCODE,
        )
        # Documents that the user rejects are no sign of a defect.
        self._watch.check(
            ENCODE, [None if is_too_long(result) else result for result in encoded]
        )
        remaining = iter(encoded)
        return [next(remaining) if is_one else None for is_one in is_read]

    def _rows(
        self,
        started: _StartedWindow,
        on_searched: OnSearched,
    ) -> list[SummaryRow | Failure]:
        """The row of each document of a window, or its failure."""
        # Made before the summaries are waited for.
        drafts = draft_rows(
            started.window.documents, started.scores, self._settings, self._models
        )
        self._watch.check(EXTRACT, drafts)
        searched: Iterator[list[Summary] | Failure] = iter(())
        search = started.search
        if search is not None:
            summaries_of_all = search.summaries(
                lambda part: on_searched(started.window, part, search.searched[-1])
            )
            self._watch.check(SEARCH, summaries_of_all)
            searched = iter(summaries_of_all)
        rows = []
        for document, draft, source in zip(
            started.window.documents, drafts, started.sources, strict=True
        ):
            count = len(source.passages) if _is_encoded(source) else 0
            passages = list(itertools.islice(searched, count))
            rows.append(self._row(document.article, draft, source, passages))
        self._watch.check(FINISH, rows)
        return rows

    def _row(
        self,
        article: Article,
        draft: PartialRow | Failure,
        source: EncodedDocument | Failure | None,
        passages: "Sequence[list[Summary] | Failure]",
    ) -> SummaryRow | Failure:
        """The row of a document, or the first of its failures."""
        if isinstance(draft, Failure):
            return draft
        if isinstance(source, Failure):
            return source
        summaries_of_all = []
        for summaries in passages:
            if isinstance(summaries, Failure):
                return summaries
            summaries_of_all.append(summaries)
        return attempt(
            draft,
            lambda partial: finish_row(
                partial,
                source,
                self._summaries(article, source, summaries_of_all, partial.expected),
                self._settings,
            ),
            stage=FINISH,
        )

    def _summaries(
        self,
        article: Article,
        source: EncodedDocument | None,
        passages: "Sequence[Sequence[Summary]]",
        expected: ExpectedReference | None,
    ) -> "Sequence[Summary] | None":
        """The summaries of a document from those of its passages."""
        options = self._settings.options
        if source is None or source.method != BEST_SENTENCES:
            return merge_passages(passages, merged_length=options.merged_length)
        most = self._settings.selection.most
        return compose(article, source, passages, expected, most=most) or None


def _is_encoded(
    source: EncodedDocument | Failure | None,
) -> TypeGuard[EncodedDocument]:
    """Whether there are token ids to search."""
    return isinstance(source, EncodedDocument)
