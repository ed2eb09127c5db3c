"""Articles -> summary rows, for the command, the transform and a single text alike.

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

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from precis.model.extractive.terms import READ_TOGETHER
from precis.model.inference.batches import SearchedBatch
from precis.model.inference.isolated_search import SEARCH
from precis.model.inference.process_limits import compute_on_one_thread, count_processes
from precis.model.inference.worker_pool import SearchPool, check_model
from precis.model.isolation import Failure, FailureWatch, attempt, isolate
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetter, document_letter
from precis.pipelines.corpus.task import Position
from precis.pipelines.summarize.document_encoder import (
    ENCODE,
    DocumentEncoder,
    is_too_long,
)
from precis.pipelines.summarize.extractive_summaries import (
    EXTRACT,
    neural_scores,
    read_words,
)
from precis.pipelines.summarize.summary_rows import (
    Models,
    SummaryRow,
    run_columns,
)
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.tables.window_tables import WRITE, isolated_table

if TYPE_CHECKING:  # They import TensorFlow.
    from precis.model.inference.bulk_summarizer import BulkSummarizer, PendingWindow

FINISH = "finish"
# A window of long documents ends before it has --window_documents of them: their
# sources and words are in memory together.
WINDOW_CHARACTERS = 8_000_000
# Takes the position behind a window, how much of it is searched, from 0 to 1, and the
# batch that was searched last.
OnSearched = Callable[[Position, float, SearchedBatch], None]


class Window(NamedTuple):
    """Some hundred documents that follow each other, and what became of them.

    Attributes:
      articles: of the rows.
      rows: all columns of each, but for fields that are kept from the source.
      letters: the dead letters of the documents that failed.
      batches: what was searched; empty without a network.
      position: how far the reader of a task was, behind the last document.
    """

    articles: Sequence[Article]
    rows: Sequence[dict[str, Any]] = ()
    letters: Sequence[DeadLetter] = ()
    batches: Sequence[SearchedBatch] = ()
    position: Position = Position()


class WindowSummarizer:
    """Summarizes articles in windows; every thread of a worker has its own copy."""

    def __init__(
        self,
        settings: SummarySettings,
        *,
        run_id: str = "",
        share: Callable[[Callable[[], Any]], Any] = lambda make: make(),
        starts_early: bool = False,
    ) -> None:
        """Stores its arguments.

        Args:
          settings: of the summaries.
          run_id: the column `run_id`.
          share: takes what opens the models, and gives those that the copies of a
            process share; `Shared.acquire` of Beam, which takes seconds to import.
          starts_early: whether search processes start before there is a window, as
            there will be much to search.
        """
        self._settings = settings
        self._columns = run_columns(settings, run_id=run_id)
        self._share = share
        self._starts_early = starts_early
        self._models = Models()
        self._watch = FailureWatch()

    def load(self) -> None:
        """Opens the bundles, once per process.

        Raises:
          UsageError: the rows must not depend on the number of threads, and TensorFlow
            has begun with several.
          DataError: a bundle is damaged or holds another model than the settings say.
        """
        self._models = self._share(
            lambda: open_models(self._settings, starts_early=self._starts_early)
        )
        if self._models.bulk is not None:
            self._models.bulk.pool.retain()

    def close(self) -> None:
        """Ends the search processes when no copy in this process needs them."""
        if self._models.bulk is not None:
            self._models.bulk.pool.release()
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
        rows: Sequence[Mapping[str, Any]],
        schema: pa.Schema = SUMMARY_SCHEMA,
    ) -> tuple[pa.Table, Window]:
        """Converts the rows of a window to an Arrow table.

        Args:
          window: the documents.
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
            failure or row for failure, row in zip(failures, window.rows, strict=True)
        ]
        self._watch.check(WRITE, results)
        return table, sort_out(window, results)

    def _start(
        self, articles: Iterable[Article], position: Callable[[], Position]
    ) -> Iterator["tuple[list[SummaryRow], PendingWindow | None, Position]"]:
        """Begins to search each window.

        The first window with anything to search, nearly always the largest, decides for
        all of them whether they are searched in processes. So that depends on the
        documents alone, and is the same after an interruption.
        """
        settings, models, bulk = self._settings, self._models, self._models.bulk
        in_processes = None
        for window in cut_windows(articles, settings.options.window_documents):
            end = position()
            rows = [SummaryRow(article, settings, models) for article in window]
            _together(rows, self._score, EXTRACT)
            search = None
            if bulk is not None:
                read = [row for row in rows if not row.is_short]
                _together(read, lambda few: self._encode(few, bulk), ENCODE)
                # Documents that the user rejects are no sign of a defect.
                self._check(
                    ENCODE, [row for row in read if not is_too_long(row.failure)]
                )
                ids = [passage for row in rows for passage in row.sources]
                if in_processes is None and ids:
                    in_processes = bulk.pays_for_processes(ids)
                search = bulk.begin(ids, in_processes=bool(in_processes))
            yield rows, search, end

    def _score(self, rows: Sequence[SummaryRow]) -> None:
        """Scores the sentences of documents, where there is a network for it."""
        if self._models.scorer is not None:
            articles = [row.article for row in rows]
            scores_of_all = neural_scores(articles, self._models.scorer)
            for row, scores in zip(rows, scores_of_all, strict=True):
                row.scores = scores

    def _encode(self, rows: Sequence[SummaryRow], bulk: "BulkSummarizer") -> None:
        """Makes the sources of documents."""
        encoder = DocumentEncoder(
            bulk.source_tokenizer,
            max_source_tokens=bulk.max_source_tokens,
            options=self._settings.options,
            scorer=self._models.scorer,
        )
        scores_of_all = [row.scores for row in rows]
        sources = encoder.encode([row.article for row in rows], scores_of_all)
        for row, source in zip(rows, sources, strict=True):
            if isinstance(source, Failure):
                row.failure = source
            else:
                row.source = source

    def _finish(
        self,
        rows: list[SummaryRow],
        search: "PendingWindow | None",
        position: Position,
        on_searched: OnSearched,
    ) -> Window:
        """The rows of a window that was started."""
        methods = self._settings.options.methods
        for start in range(0, len(rows), READ_TOGETHER):
            group = rows[start : start + READ_TOGETHER]
            _together(
                group,
                lambda few: read_words([row.article for row in few], methods),
                EXTRACT,
            )
            _each(group, SummaryRow.choose, EXTRACT)
            _each(group, SummaryRow.measure, EXTRACT)
        self._check(EXTRACT, rows)
        if search is not None:
            summaries = iter(
                search.summaries(
                    lambda part: on_searched(position, part, search.searched[-1])
                )
            )
            for row in rows:
                row.take_summaries(islice(summaries, len(row.sources)))
            self._check(SEARCH, [row for row in rows if row.sources])
        _each(rows, SummaryRow.finish, FINISH)
        self._check(FINISH, rows)
        window = Window(
            [row.article for row in rows],
            batches=search.searched if search is not None else (),
            position=position,
        )
        return sort_out(
            window, [row.failure or {**row.columns, **self._columns} for row in rows]
        )

    def _check(self, stage: str, rows: Iterable[SummaryRow]) -> None:
        self._watch.check(stage, [row.failure or row for row in rows])


def _each(
    rows: Iterable[SummaryRow], step: Callable[[SummaryRow], None], stage: str
) -> None:
    """Does a step of each row that has not failed."""
    for row in rows:
        if row.failure is None:
            row.failure = attempt(row, step, stage=stage)


def _together(
    rows: Iterable[SummaryRow],
    work: Callable[[Sequence[SummaryRow]], None],
    stage: str,
) -> None:
    """Does work on the rows that have not failed, and in halves where it fails."""
    rows = [row for row in rows if row.failure is None]

    def attempted(few: Sequence[SummaryRow]) -> list[None]:
        work(few)
        return [None] * len(few)

    results = isolate(rows, attempted, stage=stage)
    for row, failure in zip(rows, results, strict=True):
        row.failure = row.failure or failure


def open_models(settings: SummarySettings, *, starts_early: bool) -> Models:
    """Opens the bundles of a run.

    Args:
      settings: of the summaries.
      starts_early: as for `WindowSummarizer`.

    Raises:
      UsageError, DataError: as `WindowSummarizer.load`.
    """
    options, ids = settings.options, settings.model_ids
    bulk = scorer = keyphrases = None
    with contextlib.ExitStack() as opened:
        if options.bundle:
            processes = count_processes(options.search_processes)
            pool = SearchPool(settings.search, processes=processes)
            opened.callback(pool.close)
            if starts_early and processes > 1:
                pool.start()  # This process imports TensorFlow beside them.
        if options.bundle or options.extractive_bundle:
            import_tensorflow()
            if options.batch_invariant:
                compute_on_one_thread()
        if options.bundle:
            from precis.model.inference.bulk_summarizer import BulkSummarizer

            bulk = BulkSummarizer(pool)
        if options.extractive_bundle:
            from precis.model.inference.sentence_scorer import load_scorer

            folder = options.extractive_bundle
            scorer = load_scorer(folder, batch_invariant=options.batch_invariant)
            check_model(folder, scorer.model_id, ids["extractive_model_id"])
        if options.keyphrase_bundle:
            from precis.model.keyphrases.classifier import KeyphraseModel

            keyphrases = KeyphraseModel.load(options.keyphrase_bundle)
            expected = ids["keyphrase_model_id"]
            check_model(options.keyphrase_bundle, keyphrases.model_id, expected)
        opened.pop_all()
    return Models(bulk, scorer, keyphrases)


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


def sort_out(window: Window, results: Sequence[dict[str, Any] | Failure]) -> Window:
    """A window with new results of its articles, the failures as dead letters."""
    articles, rows, letters = [], [], [*window.letters]
    for article, result in zip(window.articles, results, strict=True):
        if isinstance(result, Failure):
            letters.append(document_letter(article, result))
        else:
            articles.append(article)
            rows.append(result)
    return window._replace(articles=articles, rows=rows, letters=letters)
