"""One task of `precis summarize`: documents -> one Parquet part and a receipt.

Documents are read in windows; those of a window are searched in the order of their
lengths and written in the order of the corpus. While the last batches of a window are
searched, those of the next one wait already, so that no search process is idle.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.errors import DataError
from precis.model.inference.search_cost import Figures
from precis.model.inference.worker_pool import Search, count_processes
from precis.pipelines import progress, tasks
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Task, Unreadable
from precis.pipelines.dead_letters import DeadLetter, count_reasons, unreadable_letter
from precis.pipelines.schema import (
    SCHEMA_VERSION,
    SUMMARY_SCHEMA,
    summary_table,
    write_parquet,
)
from precis.pipelines.summary_rows import (
    Models,
    Read,
    Row,
    Settings,
    ShownCounts,
    draft_rows,
    finish_row,
    has_fewer_words,
)
from precis.pipelines.tasks import Job

if TYPE_CHECKING:
    from precis.model.inference.bulk import BulkSummarizer, Window

SUMMARIES_FOLDER = "summaries"


class _Begun(NamedTuple):
    """A window of documents whose search has begun.

    Attributes:
      documents: all of them.
      source_tokens: the lengths of those that are searched, which are those that are
          not short.
      search: of those; None without a bundle.
    """

    documents: list[Read]
    source_tokens: list[int]
    search: "Window | None"


class SummarizeTask(beam.DoFn):
    """Turns one task into a Parquet part and yields its receipt."""

    def __init__(self, settings: Settings, *, job: Job) -> None:
        self._settings, self._job = settings, job
        self._shared_bulk, self._shared_models = Shared(), Shared()
        self._bulk: BulkSummarizer | None = None
        self._models = Models()

    def setup(self) -> None:
        """Opens the bundles once per process."""
        self._models = self._shared_models.acquire(self._open_models)
        if self._settings.options.bundle:
            self._bulk = self._shared_bulk.acquire(self._open_bulk)
            self._bulk.pool.retain()

    def teardown(self) -> None:
        """Ends the search processes when no thread of this worker needs them any more."""
        if self._bulk is not None:
            self._bulk.pool.release()
            self._bulk = None

    def _open_bulk(self) -> "BulkSummarizer":
        from precis.model.inference.bulk import BulkSummarizer

        options = self._settings.options
        search = Search(
            options.bundle,
            str(self._settings.model["model_id"]),
            options.precision,
            self._settings.decoding,
        )
        return BulkSummarizer(
            search, processes=count_processes(options.search_processes)
        )

    def _open_models(self) -> Models:
        options, neural, keyphrases = self._settings.options, None, None
        if options.extractive_bundle:
            from precis.model.inference.sentence_scorer import load_scorer

            neural = load_scorer(options.extractive_bundle)
            _check_unchanged(
                options.extractive_bundle,
                neural.model_id,
                self._settings.model["extractive_model_id"],
            )
        if options.keyphrase_bundle:
            from precis.model.keyphrases.classifier import KeyphraseModel

            keyphrases = KeyphraseModel.load(options.keyphrase_bundle)
            _check_unchanged(
                options.keyphrase_bundle,
                keyphrases.model_id,
                self._settings.model["keyphrase_model_id"],
            )
        return Models(neural, keyphrases)

    def process(self, task: Task) -> Iterator[dict[str, Any]]:
        """Yields the receipt of a task that is done."""
        bar = progress.TaskProgress(task.size_bytes)
        yield tasks.run_task(self._job, task.number, lambda: self._summarize(task, bar))
        bar.finish()

    def _summarize(self, task: Task, bar: progress.TaskProgress) -> dict[str, Any]:
        counts: Counter[str] = Counter(
            read=0, written=0, failed=0, duplicates=0, skipped=0, truncated=0
        )
        shown = ShownCounts()
        letters: list[DeadLetter] = []
        name = files.join(
            SUMMARIES_FOLDER, tasks.part_name(task.number, self._job.tasks)
        )
        windows = self._windows(task, counts, letters)
        figures = Figures()
        tables = self._tables(windows, counts, shown, figures, bar)
        write_parquet(files.join(self._job.output, name), tables, SUMMARY_SCHEMA)
        counts["failed"] = sum(letter.records for letter in letters)
        counts["read"] += counts["failed"]
        return {
            "task": task.number,
            "counts": dict(counts),
            "files": [
                tasks.describe_file(self._job.output, name, rows=counts["written"])
            ],
            "dead_letters": tasks.publish_dead_letters(self._job, task.number, letters),
            "failures": count_reasons(letters),
            "summary_methods": dict(shown.methods),
            "quality_flags": dict(shown.flags),
            "fallbacks": dict(shown.fallbacks),
            "search": figures.sums,
        }

    def _windows(
        self, task: Task, counts: Counter[str], letters: list[DeadLetter]
    ) -> Iterator[list[Read]]:
        """The documents of a task that can be summarized, some hundred at a time; the
        others become dead letters.
        """
        corpus, limit = self._settings.corpus, self._settings.gate.min_source_words
        window: list[Read] = []
        for article in read_task(task, corpus):
            if isinstance(article, Unreadable):
                letters.append(unreadable_letter(article))
            elif not article.body:
                letters.append(
                    DeadLetter(
                        "read",
                        "empty_article",
                        "the article has no text",
                        article.document.document_id,
                    )
                )
            else:
                window.append(Read(article, has_fewer_words(article.body, limit)))
                counts["read"] += 1
            if len(window) == self._settings.options.window_documents:
                yield window
                window = []
        yield window

    def _tables(
        self,
        windows: Iterator[list[Read]],
        counts: Counter[str],
        shown: ShownCounts,
        figures: Figures,
        bar: progress.TaskProgress,
    ) -> Iterator[pa.Table]:
        same = {
            **self._settings.model,
            "run_id": self._job.run_id,
            "schema_version": SCHEMA_VERSION,
            "created_at": self._job.created_at,
        }
        for begun in _one_ahead(self._begin(windows)):
            rows = list(self._rows(begun))
            counts["written"] += len(rows)
            counts["truncated"] += sum(
                row.columns["truncated"] or False for row in rows
            )
            shown.add(row.shown for row in rows)
            figures.add(begun.search.searched if begun.search else [])
            yield summary_table([{**row.columns, **same} for row in rows])
            bar.advance(
                len(rows),
                sum(len(read.article.document.article) for read in begun.documents),
            )

    def _begin(self, windows: Iterator[list[Read]]) -> Iterator[_Begun]:
        """Begins to search each window.

        Its first window with anything to search, nearly always the largest, says for a
        whole task where it is searched: so that depends on the task alone, and after an
            interruption it is done in the same way.
        """
        in_processes = None
        for window in windows:
            if self._bulk is None:
                yield _Begun(window, [], None)
                continue
            prefix = self._settings.options.task_prefix
            sources = self._bulk.source_tokenizer.encode(
                [prefix + read.article.body for read in window if not read.is_short]
            )
            if in_processes is None and sources:
                in_processes = self._bulk.pays_for_processes(sources)
            yield _Begun(
                window,
                [len(source) for source in sources],
                self._bulk.begin(sources, in_processes=bool(in_processes)),
            )

    def _rows(self, begun: _Begun) -> Iterator[Row]:
        """The rows of a window, in the order of the documents."""
        # Made before the summaries are waited for.
        drafts = draft_rows(begun.documents, self._settings, self._models)
        searched = (
            zip(begun.search.summaries(), begun.source_tokens, strict=True)
            if begun.search
            else iter(())
        )
        for draft in drafts:
            ranked, tokens = (
                (None, None)
                if draft.is_short or begun.search is None
                else next(searched)
            )
            limit = self._bulk.max_source_tokens if self._bulk else 0
            yield finish_row(
                draft,
                ranked,
                self._settings,
                source_tokens=tokens,
                max_source_tokens=limit,
            )


def _check_unchanged(folder: str, found: str, expected: str | None) -> None:
    """Refuses a bundle that was replaced after the job began."""
    if found != expected:
        raise DataError(
            f"{folder} holds model {found} now, and this job began with {expected}; "
            "put that model back, or begin anew with another --output"
        )


def _one_ahead(items: Iterable[_Begun]) -> Iterator[_Begun]:
    """Yields each item when the next one has been made."""
    before = None
    for item in items:
        if before is not None:
            yield before
        before = item
    if before is not None:
        yield before
