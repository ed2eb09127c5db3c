"""The step `infer` of `precis summarize`: one task of the corpus -> its pieces.

Only new documents are summarized. A document whose content stands earlier in the corpus
or in an earlier run has its row already.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from apache_beam.utils.shared import Shared

from precis.model.inference.batches import SearchedBatch
from precis.model.inference.search_cost import summary_tokens
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.tasks import (
    TaskResult,
    TaskWorker,
)
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.document_keys import check_scanned, scan_size
from precis.pipelines.summarize.document_windows import DocumentWindow, read_windows
from precis.pipelines.summarize.join_keys import read_joined
from precis.pipelines.summarize.pieces import PieceWriter, remove_pieces
from precis.pipelines.summarize.summary_rows import run_columns
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.summarize.task_rows import InferSettings, TaskRows
from precis.pipelines.summarize.window_summarizer import WindowSummarizer


class SummaryFigures(NamedTuple):
    """What `precis summarize` reports of a task beside the usual.

    Attributes:
      search: what the search cost, as `search_cost` sums it.
      rows: the rows of each piece.
      partitions: the rows of each partition, those of duplicates included.
      flagged: rows with a quality flag, without those of duplicates.
    """

    search: Mapping[str, Any] = {}
    rows: Mapping[str, int] = {}
    partitions: Mapping[str, int] = {}
    flagged: int = 0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "SummaryFigures":
        """The figures of a receipt; zero where it is empty."""
        return cls(**{name: content[name] for name in cls._fields if name in content})


class SummarizeWorker(TaskWorker):
    """Turns one task into pieces."""

    def __init__(
        self,
        corpus: CorpusOptions,
        settings: SummarySettings,
        job: Job,
        infer: InferSettings,
    ) -> None:
        self._corpus = corpus
        self._settings = settings
        self._job = job
        self._infer = infer
        self._summarizer = WindowSummarizer(
            settings, Shared, starts_early=infer.starts_early
        )

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes - scan_size(task)

    def load(self) -> None:
        """Opens the bundles."""
        self._summarizer.load()

    def close(self) -> None:
        """Ends the search processes that no thread needs any more."""
        self._summarizer.close()

    def run(
        self, task: Task, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[SummaryFigures]:
        """Writes the pieces of a task."""
        remove_pieces(self._job.output, task.number)
        check_scanned(self._job, task.number)
        reader = read_task(task, self._corpus)
        joined = read_joined(self._job.output, task.number, buckets=self._infer.buckets)
        partitioning = self._infer.layout.partitioning
        with PieceWriter(self._job.output, task.number, partitioning) as pieces:
            rows = TaskRows(
                joined,
                self._infer,
                pieces,
                letters,
                run_columns(self._settings, run_id=self._job.run_id),
            )
            flagged = 0
            windows = (
                window._replace(position=reader.position)
                for window in read_windows(rows.new_articles(reader), self._settings)
            )
            summarized = self._summarizer.summarize(
                windows, functools.partial(_count_batch, progress)
            )
            for window in summarized:
                rows.write_window(window, self._summarizer)
                progress.advance_to(window.window.position)
                progress.add_flagged(rows.flagged - flagged)
                flagged = rows.flagged
            rows.finish()
            progress.advance_to(reader.position)  # New documents need not be the last.
            progress.add_flagged(rows.flagged - flagged)
        return TaskResult(
            sources=source_counts(
                read=reader.read,
                other_split=reader.other_split,
                not_selected=reader.not_selected,
                **rows.outcomes,
            ),
            files=pieces.describe(),
            figures=SummaryFigures(
                rows.search.sums,
                pieces.rows,
                pieces.partitions,
                rows.flagged,
            ),
        )


def _count_batch(
    progress: TaskProgress, window: DocumentWindow, part: float, batch: SearchedBatch
) -> None:
    """Counts a batch that was searched, and how much of its window that makes."""
    progress.add_tokens(batch.source_tokens + summary_tokens(batch))
    progress.advance_to(window.position, part)
