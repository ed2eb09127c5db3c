"""Windows of documents -> summary rows, for the command and the transform alike.

The documents of a window are searched in the order of their lengths, and their rows
come in the order of the documents. While the last batches of a window are searched,
those of the next one wait already, so that no search process is idle.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from apache_beam.utils.shared import Shared

from precis.model.errors import DataError
from precis.model.inference.batches import SearchedBatch
from precis.model.inference.worker_pool import ModelSearch, count_processes
from precis.model.text.article import Article
from precis.model.tokenization.source import EncodedSource, encode_sources
from precis.pipelines.corpus.task import EmptyArticle, Position, Unreadable
from precis.pipelines.dead_letters import (
    DeadLetter,
    empty_article_letter,
    unreadable_letter,
)
from precis.pipelines.summary_rows import (
    ScoringModels,
    SourceDocument,
    SummaryRow,
    draft_rows,
    finish_row,
    source_document,
)
from precis.pipelines.summary_settings import SummarySettings

if TYPE_CHECKING:  # They import TensorFlow.
    from precis.model.inference.bulk_summarizer import BulkSummarizer, PendingWindow

ItemT = TypeVar("ItemT")


class DocumentWindow(NamedTuple):
    """Some hundred documents that follow each other.

    Attributes:
      documents: those that can be summarized.
      letters: the dead letters of the others.
      records: how many records were read, those of the dead letters included.
      position: how far the task is read with the window; there only in a command.
    """

    documents: list[SourceDocument]
    letters: list[DeadLetter]
    records: int
    position: Position = Position()


class SummarizedWindow(NamedTuple):
    """A window and its result.

    Attributes:
      window: the documents.
      rows: one of each document, in the same order.
      batches: what was searched; empty without a network.
    """

    window: DocumentWindow
    rows: list[SummaryRow]
    batches: list[SearchedBatch]


class _StartedWindow(NamedTuple):
    """A window whose search has begun.

    Attributes:
      window: the documents.
      sources: the token ids of those that are searched: all that are not short.
      search: their search; None without a network.
    """

    window: DocumentWindow
    sources: list[EncodedSource]
    search: "PendingWindow | None"


def read_windows(
    records: Iterable[Article | EmptyArticle | Unreadable], settings: SummarySettings
) -> Iterator[DocumentWindow]:
    """Cuts the records of a task into windows; the last one may be empty."""
    documents: list[SourceDocument] = []
    letters: list[DeadLetter] = []
    record_count = 0
    for record in records:
        if isinstance(record, Unreadable):
            record_count += record.records
            letters.append(unreadable_letter(record))
            continue
        record_count += 1
        if isinstance(record, EmptyArticle):
            letters.append(empty_article_letter(record))
        else:
            documents.append(
                source_document(record, settings.fallback.min_source_words)
            )
        if len(documents) == settings.options.window_documents:
            yield DocumentWindow(documents, letters, record_count)
            documents = []
            letters = []
            record_count = 0
    yield DocumentWindow(documents, letters, record_count)


class WindowSummarizer:
    """Summarizes windows of documents; every thread of a worker has its own copy.

    The copies of a process share the models, which `load` opens.
    """

    def __init__(self, settings: SummarySettings) -> None:
        self._settings = settings
        self._shared_bulk = Shared()
        self._shared_models = Shared()
        self._bulk: BulkSummarizer | None = None
        self._models = ScoringModels()

    def load(self) -> None:
        """Opens the bundles, once per process.

        Raises:
          DataError: a bundle is damaged or holds another model than the settings say.
        """
        self._models = self._shared_models.acquire(self._open_models)
        if self._settings.options.bundle:
            self._bulk = self._shared_bulk.acquire(self._open_bulk)
            self._bulk.pool.retain()

    def close(self) -> None:
        """Ends the search processes when no copy in this process needs them."""
        if self._bulk is not None:
            self._bulk.pool.release()
            self._bulk = None

    def _open_bulk(self) -> "BulkSummarizer":
        from precis.model.inference.bulk_summarizer import BulkSummarizer

        options = self._settings.options
        search = ModelSearch(
            options.bundle,
            str(self._settings.model_ids["model_id"]),
            options.precision,
            self._settings.decoding,
        )
        processes = count_processes(options.search_processes)
        return BulkSummarizer(search, processes=processes)

    def _open_models(self) -> ScoringModels:
        options = self._settings.options
        neural = None
        keyphrases = None
        if options.extractive_bundle:
            from precis.model.inference.sentence_scorer import load_scorer

            neural = load_scorer(options.extractive_bundle)
            expected = self._settings.model_ids["extractive_model_id"]
            _check_unchanged(options.extractive_bundle, neural.model_id, expected)
        if options.keyphrase_bundle:
            from precis.model.keyphrases.classifier import KeyphraseModel

            keyphrases = KeyphraseModel.load(options.keyphrase_bundle)
            expected = self._settings.model_ids["keyphrase_model_id"]
            _check_unchanged(options.keyphrase_bundle, keyphrases.model_id, expected)
        return ScoringModels(neural, keyphrases)

    def summarize(
        self,
        windows: Iterable[DocumentWindow],
        on_searched: Callable[[DocumentWindow, float], None] = lambda *_: None,
    ) -> Iterator[SummarizedWindow]:
        """Summarizes windows, in order.

        Args:
          windows: the documents.
          on_searched: takes a window and how much of it is searched, from 0 to 1; it is
            called after each batch.
        """
        for started in one_ahead(self._start(windows)):
            rows = list(self._rows(started, on_searched))
            batches = started.search.searched if started.search else []
            yield SummarizedWindow(started.window, rows, batches)

    def _start(self, windows: Iterable[DocumentWindow]) -> Iterator[_StartedWindow]:
        """Begins to search each window.

        The first window with anything to search, nearly always the largest, decides for
        all of them whether they are searched in processes. So that depends on the
        documents alone, and is the same after an interruption.
        """
        in_processes = None
        for window in windows:
            if self._bulk is None:
                yield _StartedWindow(window, [], None)
                continue
            sources = self._encode(window, self._bulk)
            ids = [source.ids for source in sources]
            if in_processes is None and ids:
                in_processes = self._bulk.pays_for_processes(ids)
            search = self._bulk.begin(ids, in_processes=bool(in_processes))
            yield _StartedWindow(window, sources, search)

    def _encode(
        self, window: DocumentWindow, bulk: "BulkSummarizer"
    ) -> list[EncodedSource]:
        """The token ids of the documents that are not short."""
        prefix = self._settings.options.task_prefix
        return encode_sources(
            bulk.source_tokenizer,
            [
                prefix + document.article.body
                for document in window.documents
                if not document.is_short
            ],
            max_source_tokens=bulk.max_source_tokens,
        )

    def _rows(
        self,
        started: _StartedWindow,
        on_searched: Callable[[DocumentWindow, float], None],
    ) -> Iterator[SummaryRow]:
        """The rows of a window, in the order of the documents."""
        # Made before the summaries are waited for.
        drafts = draft_rows(started.window.documents, self._settings, self._models)
        if started.search is None:
            for draft in drafts:
                yield finish_row(draft, None, None, self._settings)
            return
        summaries_of_all = started.search.summaries(
            lambda part: on_searched(started.window, part)
        )
        searched = zip(started.sources, summaries_of_all, strict=True)
        for draft in drafts:
            source, summaries = (None, None) if draft.is_short else next(searched)
            yield finish_row(draft, source, summaries, self._settings)


def _check_unchanged(folder: str, model_id: str, expected: str | None) -> None:
    """Refuses a bundle that was replaced after the job began."""
    if model_id != expected:
        raise DataError(
            f"{folder} holds model {model_id} now, and this job began with {expected}; "
            "put that model back, or begin anew with another --output"
        )


def one_ahead(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yields each item when the next one has been made."""
    iterator = iter(items)
    try:
        current = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield current
        current = following
    yield current
