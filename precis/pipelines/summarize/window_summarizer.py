"""Turns articles into summary rows, for the command, the transform and a single text.

A document that fails in a stage loses only its row: it becomes a dead letter.

    extract    sentences and keyphrases are chosen
    encode     the body becomes token ids
    search     the network writes summaries
    finish     the summaries are measured, and one is shown
    check      the claim checker scores how well the document supports them
    write      the row becomes a row of an Arrow table

The documents of a window are searched in order of length, and their rows come in corpus
order. The next window is queued while the last batches of a window are searched, so
that no search process is idle.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model import files
from precis.model.bundle.address import bundle_folder, parse_address
from precis.model.errors import JobError
from precis.model.extractive.config import NEURAL
from precis.model.extractive.references import ExpectedReference
from precis.model.extractive.terms import READ_TOGETHER, Terms
from precis.model.inference.batches import SEARCH, SearchedBatch
from precis.model.inference.bulk_summarizer import BulkSummarizer, check_model
from precis.model.inference.passages import EncodedDocument
from precis.model.inference.writer import PendingWindow, Writer
from precis.model.isolation import PENDING, Failure, ResultT, attempt, isolate
from precis.model.processes import count_processes
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetter, document_letter
from precis.pipelines.corpus.task import Position
from precis.pipelines.run.result_files import TASKS_FOLDER
from precis.pipelines.summarize.document_encoder import ENCODE, DocumentEncoder
from precis.pipelines.summarize.extractive_summaries import (
    EXTRACT,
    find_article_terms,
    neural_scores,
)
from precis.pipelines.summarize.options import WRITE_SENTENCES
from precis.pipelines.summarize.summary_rows import Models, SummaryRow, run_columns
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.output_writing import WRITE, isolated_table
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

if TYPE_CHECKING:  # From the extra `endpoint`.
    from precis.model.inference.endpoint import Endpoint

FINISH = "finish"
CHECK = "check"
JOURNAL_FILE = "answers.sqlite"
# The most tokens that the template of a chat adds to a prompt.
_TEMPLATE_TOKENS = 128
# A window of long documents ends early, because the sources and words of all its
# documents are in memory together.
WINDOW_CHARACTERS = 8_000_000
# The job ends if this many documents fail in the same way before any succeeds.
MOST_FIRST_FAILURES = 32
# The scores of a document's sentences, and its expected reference.
_Scored = tuple[np.ndarray, ExpectedReference | None]
# Arguments: the position after a window, the share of the window that is searched (0 to
# 1), and the batch that was searched last.
OnSearched = Callable[[Position, float, SearchedBatch], None]


class Window(NamedTuple):
    """Some hundred consecutive documents, with their rows or failures.

    Attributes:
      documents: the rows of the documents, each with its columns or its failure.
      position: where the reader of the task was after the last document.
      batches: the batches that were searched; empty without a network.
    """

    documents: Sequence[SummaryRow]
    position: Position
    batches: Sequence[SearchedBatch] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The columns of each row."""
        return [each.columns for each in self.documents if each.failure is None]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters of the documents that failed."""
        return [
            document_letter(each.article, each.failure)
            for each in self.documents
            if each.failure is not None
        ]


class WindowSummarizer:
    """Summarizes articles in windows; every thread of a worker has a copy of it."""

    def __init__(
        self,
        settings: SummarySettings,
        *,
        run_id: str = "",
        share: Callable[[Callable[[], Any]], Any] = lambda make: make(),
    ) -> None:
        """Stores its arguments.

        Args:
          settings: how to summarize.
          run_id: the value of the column `run_id`.
          share: opens the models once per process, with a function that it is given;
              `Shared.acquire` of Beam, which takes seconds to import.
        """
        self._settings = settings
        self._columns = run_columns(settings, run_id=run_id)
        self._share = share
        self._models = Models()
        self._passed: set[str] = set()  # stages that a document has passed
        self._first_failures: Counter[tuple[str, str]] = Counter()

    def load(self) -> None:
        """Opens the bundles, once per process.

        Raises:
          UsageError: a bundle is incomplete or of the wrong kind.
          DataError: a bundle is damaged, or its model differs from the settings.
        """
        self._models = self._share(lambda: open_models(self._settings))
        if self._models.bulk is not None:
            self._models.bulk.retain()

    def close(self) -> None:
        """Ends the search processes if no other copy in this process needs them."""
        if self._models.bulk is not None:
            self._models.bulk.release()
        self._models = Models()

    def summarize(
        self,
        articles: Iterable[Article],
        position: Callable[[], Position] = Position,
        on_searched: OnSearched = lambda *_: None,
    ) -> Iterator[Window]:
        """Summarizes articles, in order.

        Args:
          articles: the articles of a task.
          position: returns the current position of their reader.
          on_searched: called after each batch.

        Raises:
          JobError: every document so far failed in the same stage and way.
        """
        waiting = None
        # Start the search of a window before waiting for the window before it.
        for started in chain(self._start(articles, position), [None]):
            if waiting is not None:
                yield self._finish(*waiting, on_searched)
            waiting = started

    def table(
        self,
        window: Window,
        schema: pa.Schema = SUMMARY_SCHEMA,
    ) -> pa.Table:
        """Converts the rows of a window to an Arrow table.

        A row that does not fit the schema, or holds a number that is not finite, is
        left out, and its document gets a failure.

        Args:
          window: the rows of the documents.
          schema: the schema of the table.

        Raises:
          JobError: as `summarize`.
        """
        rows = [each for each in window.documents if each.failure is None]
        table, failures = isolated_table([row.columns for row in rows], schema)
        for row, failure in zip(rows, failures, strict=True):
            row.failure = failure
        self._check(WRITE, rows)
        return table

    def _start(
        self, articles: Iterable[Article], position: Callable[[], Position]
    ) -> Iterator[tuple[Window, PendingWindow | None]]:
        """Starts the search of each window; yields the window and its search."""
        settings, models, bulk = self._settings, self._models, self._models.bulk
        for cut in cut_article_windows(articles, settings.options.window_documents):
            rows = [SummaryRow(article, settings, models) for article in cut]
            window = Window(rows, position())
            if settings.options.write == WRITE_SENTENCES:
                self._score(rows)
            search = None
            if bulk is not None:
                read = [row for row in rows if not row.is_short]
                search = bulk.begin(self._sources(read))
            yield window, search

    def _score(self, rows: Sequence[SummaryRow]) -> None:
        """Scores the sentences of the documents that the selector has to read, and
        predicts their references if it has learned to.
        """
        if (selector := self._models.selector) is None:
            return
        importance = selector.importance

        def score(rows: Sequence[SummaryRow]) -> Sequence[_Scored]:
            articles = [row.article for row in rows]
            scores = neural_scores(articles, selector, [row.terms for row in rows])
            if importance is None:
                return [(of_row, None) for of_row in scores]
            texts = [article.sentence_texts for article in articles]
            languages = [article.language for article in articles]
            expected = importance.expect_references(texts, scores, languages)
            return list(zip(scores, expected, strict=True))

        is_rewritten = self._settings.options.write == WRITE_SENTENCES
        read = [row for row in rows if is_rewritten or NEURAL in row.methods]
        for row, scored in _together(read, score, EXTRACT):
            row.scores, row.expected = scored

    def _encode(self, rows: Sequence[SummaryRow]) -> list[EncodedDocument]:
        """Encodes documents as sources of the network."""
        bulk = self._models.bulk
        assert bulk is not None
        encoded: list[EncodedDocument] = []
        options = self._settings.options
        for row in rows:
            row.room = row.room or bulk.room(row.article.body)
        for room, group in groupby(rows, lambda row: row.room):
            encoder = DocumentEncoder(bulk.source_tokenizer, room, options)
            read = [(row.article, row.scores) for row in group]
            encoded += encoder.encode(*zip(*read, strict=True))
        return encoded

    def _finish(
        self, window: Window, search: PendingWindow | None, on_searched: OnSearched
    ) -> Window:
        """Completes the rows of a window when its search ends."""
        settings, rows = self._settings, window.documents
        for start in range(0, len(rows), READ_TOGETHER):
            group = rows[start : start + READ_TOGETHER]
            for row, terms in _together(group, self._read_words, EXTRACT):
                row.terms = terms
            if settings.options.write != WRITE_SENTENCES:
                self._score(group)
            _each(group, SummaryRow.extract, EXTRACT)
        self._check(EXTRACT, rows)
        batches: Sequence[SearchedBatch] = ()
        if search is not None:
            batches = self._take(
                rows, search, lambda *done: on_searched(window.position, *done)
            )
            self._check(SEARCH, [row for row in rows if row.sources])
        _each(rows, SummaryRow.finish, FINISH)
        self._check(FINISH, rows)
        _each(rows, SummaryRow.check_support, CHECK)
        self._check(CHECK, rows)
        for row in rows:
            row.columns |= self._columns
        return window._replace(batches=batches)

    def _take(
        self,
        rows: Sequence[SummaryRow],
        search: PendingWindow,
        on_searched: Callable[[float, SearchedBatch], None],
    ) -> Sequence[SearchedBatch]:
        """Gives rows their summaries. Where a server refused a passage as too long,
        cuts the document into shorter passages and searches it again.
        """
        summaries = search.summaries(
            lambda share: on_searched(share, search.searched[-1])
        )
        priced = zip(summaries, search.costs, strict=True)
        for row in rows:
            row.take_summaries(islice(priced, len(row.sources)))
        rows = [row for row in rows if row.can_be_cut_again()]
        if not rows:
            return search.searched
        bulk: Any = self._models.bulk
        bulk.say_once(
            "precis summarize: the server rejects prompts as too long, so they are cut "
            "shorter; set --context_tokens to its context"
        )
        again = bulk.begin(self._sources(rows))
        return [*search.searched, *self._take(rows, again, on_searched)]

    def _sources(self, rows: Sequence[SummaryRow]) -> list[np.ndarray]:
        """Encodes rows; returns the passages of the rows that did not fail."""
        for row, source in _together(rows, self._encode, ENCODE):
            row.source = source
        self._check(ENCODE, rows)
        return [passage for row in rows for passage in row.sources]

    def _read_words(self, rows: Sequence[SummaryRow]) -> Sequence[Terms | None]:
        articles = [row.article for row in rows]
        return find_article_terms(articles, self._settings.options.methods)

    def _check(self, stage: str, rows: Sequence[SummaryRow]) -> None:
        """Stops the job if a stage fails for every document. A corpus of fewer than
        MOST_FIRST_FAILURES documents ends with dead letters only.

        Raises:
          JobError: MOST_FIRST_FAILURES documents failed in the stage with the same kind
              of error, and none passed it.
        """
        if stage in self._passed or any(row.failure is None for row in rows):
            self._passed.add(stage)
            return
        failures = [row.failure for row in rows if row.failure is not None]
        for failure in failures:
            if failure.stage != stage or failure.reason == PENDING:
                continue
            kind = failure.error_class or failure.reason
            self._first_failures[stage, kind] += 1
            if self._first_failures[stage, kind] == MOST_FIRST_FAILURES:
                raise JobError(
                    f"the first {MOST_FIRST_FAILURES} documents all failed in the "
                    f"stage {stage} with {kind} ({failure.detail}), so the cause is "
                    "not a document; remove the cause and run the command again"
                )


def _each(
    rows: Iterable[SummaryRow], step: Callable[[SummaryRow], None], stage: str
) -> None:
    """Runs a step on each row that has not failed."""
    for row in rows:
        if row.failure is None:
            row.failure = attempt(row, step, stage=stage)


def _together(
    rows: Iterable[SummaryRow],
    work: Callable[[Sequence[SummaryRow]], Sequence[ResultT]],
    stage: str,
) -> Iterator[tuple[SummaryRow, ResultT]]:
    """Calls `work` on the rows that have not failed, or on halves of them if it fails;
    yields each row with its result.
    """
    rows = [row for row in rows if row.failure is None]
    for row, result in zip(rows, isolate(rows, work, stage=stage), strict=True):
        if isinstance(result, Failure):
            row.failure = result
        else:
            yield row, result


def open_endpoint(settings: SummarySettings) -> "Endpoint":
    """Opens the endpoint that writes. A job on this machine journals its answers."""
    from precis.model.inference.chat_client import ChatClient
    from precis.model.inference.endpoint import Endpoint

    options = settings.options
    tasks = files.join(options.output, TASKS_FOLDER)
    is_kept = "://" not in tasks and files.exists(tasks)
    journal = settings.journal or (files.join(tasks, JOURNAL_FILE) if is_kept else "")
    url, model = parse_address(options.bundle)
    parameters = {**settings.parameters, "model": model}
    client: Any = ChatClient(
        url, parameters, options.requests, options.request_timeout, journal
    )
    if options.is_batch:
        from precis.model.inference.batch_client import BatchClient

        answers = "" if options.requests_to else options.answers_from
        client = BatchClient(client, options.request_timeout / 100, answers)
    tokens = options.context_tokens - _TEMPLATE_TOKENS
    tokens -= settings.decoding.max_summary_tokens
    return Endpoint(client, settings.instruction, tokens, settings.selection.limit)


def open_models(settings: SummarySettings) -> Models:
    """Opens the bundles of a run.

    Args:
      settings: how to summarize.

    Raises:
      UsageError, DataError: as `WindowSummarizer.load`.
    """
    options, ids = settings.options, settings.model_ids
    bulk: Writer | None = None
    selector = keyphrases = checker = None
    if settings.reads_vectors or options.checker:
        import_tensorflow()  # The search processes import it themselves.
    if options.is_endpoint:
        bulk = open_endpoint(settings)
    elif options.bundle:
        processes = count_processes(options.search_processes)
        bulk = BulkSummarizer(settings.search, processes=processes)
    if options.selector:
        from precis.model.inference.selector_bundle import load_selector

        folder = bundle_folder(options.selector)
        selector = load_selector(folder)
        check_model(folder, selector.model_id, ids["extractive_model_id"])
    if options.keyphrase_bundle:
        from precis.model.keyphrases.classifier import KeyphraseModel

        keyphrases = KeyphraseModel.load(options.keyphrase_bundle)
        expected = ids["keyphrase_model_id"]
        check_model(options.keyphrase_bundle, keyphrases.model_id, expected)
    if options.checker:
        from precis.model.inference.claim_checker import ClaimChecker

        checker = ClaimChecker(options.checker)
        check_model(options.checker, checker.model_id, ids["checker_model_id"])
    return Models(bulk, selector, keyphrases, checker)


def cut_article_windows(
    articles: Iterable[Article], most: int
) -> Iterator[list[Article]]:
    """Cuts the articles of a task into windows of at most `most` documents.

    A window also ends when it reaches WINDOW_CHARACTERS.
    """
    window: list[Article] = []
    characters = 0
    for article in articles:
        window.append(article)
        characters += len(article.body)
        if len(window) == most or characters >= WINDOW_CHARACTERS:
            yield window
            window = []
            characters = 0
    if window:
        yield window
