"""Articles -> summary rows, for the command, the transform and a single text alike.

A document that fails in one of the stages costs only its own row: it becomes a dead
letter.

    extract    sentences and keyphrases are chosen
    encode     the body becomes token ids
    search     the network writes summaries
    finish     the summaries are measured, and one is shown
    check      a checker says how far the document supports them
    write      the row becomes a row of an Arrow table

The documents of a window are searched in the order of their lengths, and their rows
come in the order of the documents. While the last batches of a window are searched,
those of the next one wait already, so that no search process is idle.
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
from precis.model.extractive.terms import READ_TOGETHER, Terms
from precis.model.inference.batches import SEARCH, SearchedBatch
from precis.model.inference.bulk_summarizer import BulkSummarizer, check_model
from precis.model.inference.passages import EncodedDocument
from precis.model.inference.writer import PendingWindow, Writer
from precis.model.isolation import Failure, ResultT, attempt, isolate
from precis.model.processes import count_processes
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetter, document_letter
from precis.pipelines.corpus.task import Position
from precis.pipelines.run.result_files import TASKS_FOLDER
from precis.pipelines.summarize.document_encoder import ENCODE, DocumentEncoder
from precis.pipelines.summarize.extractive_summaries import (
    EXTRACT,
    neural_scores,
    read_words,
)
from precis.pipelines.summarize.options import WRITE_SENTENCES
from precis.pipelines.summarize.summary_rows import Models, SummaryRow, run_columns
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.output_writing import WRITE, isolated_table
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

if TYPE_CHECKING:  # Of the extra `endpoint`.
    from precis.model.inference.endpoint import Endpoint

FINISH = "finish"
CHECK = "check"
JOURNAL_FILE = "answers.sqlite"
# The template of the chat, at most.
_TEMPLATE_TOKENS = 128
# A window of long documents ends before it has window_documents of them: their
# sources and words are in memory together.
WINDOW_CHARACTERS = 8_000_000
# A defect that concerns every document ends the job after so many of them.
MOST_FIRST_FAILURES = 32
# Takes the position behind a window, how much of it is searched, from 0 to 1, and the
# batch that was searched last.
OnSearched = Callable[[Position, float, SearchedBatch], None]


class Window(NamedTuple):
    """Some hundred documents that follow each other, and what became of them.

    Attributes:
      documents: each with its columns, or the failure that costs its row.
      position: how far the reader of a task was, behind the last document.
      batches: what was searched; empty without a network.
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
    """Summarizes articles in windows; every thread of a worker has its own copy."""

    def __init__(
        self,
        settings: SummarySettings,
        *,
        run_id: str = "",
        share: Callable[[Callable[[], Any]], Any] = lambda make: make(),
    ) -> None:
        """Stores its arguments.

        Args:
          settings: of the summaries.
          run_id: the column `run_id`.
          share: takes what opens the models, and gives those that the copies of a
            process share; `Shared.acquire` of Beam, which takes seconds to import.
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
          UsageError: a bundle is not complete or of another kind.
          DataError: a bundle is damaged or holds another model than the settings say.
        """
        self._models = self._share(lambda: open_models(self._settings))
        if self._models.bulk is not None:
            self._models.bulk.retain()

    def close(self) -> None:
        """Ends the search processes when no copy in this process needs them."""
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
          articles: those of a task.
          position: how far they are read.
          on_searched: is called after each batch.

        Raises:
          JobError: every document so far failed in the same stage and way.
        """
        waiting = None
        # The search of a window begins before that of the one before it is waited for.
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

        Rows that do not fit the schema or hold numbers that are not finite are left
        out, and their documents are failures from then on.

        Args:
          window: the documents.
          schema: of the table.

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
        """Begins to search each window."""
        settings, models, bulk = self._settings, self._models, self._models.bulk
        for cut in cut_windows(articles, settings.options.window_documents):
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
        """Takes the scores of sentences, where the selector reads their document."""
        if (selector := self._models.selector) is None:
            return

        def score(rows: Sequence[SummaryRow]) -> Sequence[np.ndarray]:
            articles = [row.article for row in rows]
            return neural_scores(articles, selector, [row.terms for row in rows])

        is_rewritten = self._settings.options.write == WRITE_SENTENCES
        read = [row for row in rows if is_rewritten or NEURAL in row.methods]
        for row, scores in _together(read, score, EXTRACT):
            row.scores = scores

    def _encode(self, rows: Sequence[SummaryRow]) -> list[EncodedDocument]:
        """What the network reads of documents."""
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
        """Makes the rows of a window that was started."""
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
        """Gives rows their summaries; those of which a server has refused a passage as
        too long are searched again, in shorter ones.
        """
        summaries = search.summaries(
            lambda part: on_searched(part, search.searched[-1])
        )
        priced = zip(summaries, search.costs, strict=True)
        for row in rows:
            row.take_summaries(islice(priced, len(row.sources)))
        rows = [row for row in rows if row.can_be_cut_again()]
        if not rows:
            return search.searched
        bulk: Any = self._models.bulk
        bulk.say_once(
            "precis summarize: the server refuses prompts as too long, which are cut "
            "again; give its context as --context_tokens"
        )
        again = bulk.begin(self._sources(rows))
        return [*search.searched, *self._take(rows, again, on_searched)]

    def _sources(self, rows: Sequence[SummaryRow]) -> list[np.ndarray]:
        """What the network is given of rows."""
        for row, source in _together(rows, self._encode, ENCODE):
            row.source = source
        self._check(ENCODE, rows)
        return [passage for row in rows for passage in row.sources]

    def _read_words(self, rows: Sequence[SummaryRow]) -> Sequence[Terms | None]:
        articles = [row.article for row in rows]
        return read_words(articles, self._settings.options.methods)

    def _check(self, stage: str, rows: Sequence[SummaryRow]) -> None:
        """Finds out that a stage fails for every document. A corpus of fewer than
        MOST_FIRST_FAILURES ends with its dead letters.

        Raises:
          JobError: so many documents failed in the stage with exceptions of one class,
            and none has passed it.
        """
        if stage in self._passed or any(row.failure is None for row in rows):
            self._passed.add(stage)
            return
        failures = [row.failure for row in rows if row.failure is not None]
        for failure in failures:
            if failure.stage != stage:
                continue
            kind = failure.error_class or failure.reason
            self._first_failures[stage, kind] += 1
            if self._first_failures[stage, kind] == MOST_FIRST_FAILURES:
                raise JobError(
                    f"the first {MOST_FIRST_FAILURES} documents all failed in the "
                    f"stage {stage} with {kind} ({failure.detail}), so the cause is "
                    "no single document; see to it and run the command again"
                )


def _each(
    rows: Iterable[SummaryRow], step: Callable[[SummaryRow], None], stage: str
) -> None:
    """Does a step of each row that has not failed."""
    for row in rows:
        if row.failure is None:
            row.failure = attempt(row, step, stage=stage)


def _together(
    rows: Iterable[SummaryRow],
    work: Callable[[Sequence[SummaryRow]], Sequence[ResultT]],
    stage: str,
) -> Iterator[tuple[SummaryRow, ResultT]]:
    """Does work on the rows that have not failed, and in halves where it fails; yields
    its results.
    """
    rows = [row for row in rows if row.failure is None]
    for row, result in zip(rows, isolate(rows, work, stage=stage), strict=True):
        if isinstance(result, Failure):
            row.failure = result
        else:
            yield row, result


def open_endpoint(settings: SummarySettings) -> "Endpoint":
    """What writes summaries by requests. A job on this machine keeps the answers."""
    from precis.model.inference.chat_client import ChatClient
    from precis.model.inference.endpoint import Endpoint

    options = settings.options
    tasks = files.join(options.output, TASKS_FOLDER)
    is_kept = "://" not in tasks and files.exists(tasks)
    journal = files.join(tasks, JOURNAL_FILE) if is_kept else ""
    url, model = parse_address(options.bundle)
    parameters = {**settings.parameters, "model": model}
    client = ChatClient(
        url, parameters, options.requests, options.request_timeout, journal
    )
    tokens = options.context_tokens - _TEMPLATE_TOKENS
    tokens -= settings.decoding.max_summary_tokens
    return Endpoint(client, settings.instruction, tokens, settings.selection.limit)


def open_models(settings: SummarySettings) -> Models:
    """Opens the bundles of a run.

    Args:
      settings: of the summaries.

    Raises:
      UsageError, DataError: as `WindowSummarizer.load`.
    """
    options, ids = settings.options, settings.model_ids
    bulk: Writer | None = None
    selector = keyphrases = checker = None
    if settings.reads_vectors or options.checker:
        import_tensorflow()  # Search processes import their own.
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


def cut_windows(articles: Iterable[Article], most: int) -> Iterator[list[Article]]:
    """Cuts the articles of a task into windows of at most `most` documents.

    A window ends after WINDOW_CHARACTERS, too.
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
