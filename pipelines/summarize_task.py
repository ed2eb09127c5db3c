"""One task of `precis summarize`: documents -> one Parquet part.

A part is written aside and renamed, so a document is in the result once or not at all.
"""

import dataclasses
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.inference.search_cost import SearchCost
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Task
from precis.pipelines.dead_letters import DeadLetter
from precis.pipelines.generator_result import GeneratorResult
from precis.pipelines.job import Job, part_name
from precis.pipelines.progress import TaskProgress
from precis.pipelines.schema import SUMMARY_SCHEMA, summary_table, write_parquet
from precis.pipelines.summary_rows import run_columns
from precis.pipelines.summary_settings import SummarySettings
from precis.pipelines.tasks import TaskResult, describe_file
from precis.pipelines.window_summarizer import (
    SummarizedWindow,
    WindowSummarizer,
    read_windows,
)

SUMMARIES_FOLDER = "summaries"


class SummaryFigures(NamedTuple):
    """What `precis summarize` reports of a task beside the usual.

    Attributes:
      summary_methods: documents by the method of the summary that is shown.
      quality_flags: documents by each of the flags of the summary that is shown.
      fallbacks: documents whose abstractive summary is not shown, by each of the flags
          that it was held back for.
      search: what the search cost, as `search_cost` sums it.
    """

    summary_methods: Mapping[str, int]
    quality_flags: Mapping[str, int]
    fallbacks: Mapping[str, int]
    search: Mapping[str, Any]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "SummaryFigures":
        """The figures of a receipt."""
        return cls(**content)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Totals:
    """The sums over the windows of a task."""

    records: int
    truncated: int
    letters: list[DeadLetter]
    figures: SummaryFigures


class SummarizeWorker:
    """Turns one task into a Parquet part."""

    def __init__(
        self, corpus: CorpusOptions, settings: SummarySettings, job: Job
    ) -> None:
        self._corpus = corpus
        self._settings = settings
        self._job = job
        self._summarizer = WindowSummarizer(settings)

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes

    def load(self) -> None:
        """Opens the bundles."""
        self._summarizer.load()

    def close(self) -> None:
        """Ends the search processes that no thread needs any more."""
        self._summarizer.close()

    def run(self, task: Task, progress: TaskProgress) -> TaskResult[SummaryFigures]:
        """Writes the part of a task."""
        reader = read_task(task, self._corpus)
        windows = (
            window._replace(position=reader.position)
            for window in read_windows(reader, self._settings)
        )
        summarized = self._summarizer.summarize(
            windows, lambda window, part: progress.advance_to(window.position, part)
        )
        tables = GeneratorResult(self._tables(summarized, progress))
        name = files.join(SUMMARIES_FOLDER, part_name(task.number, self._job.tasks))
        written = write_parquet(
            files.join(self._job.output, name), tables, SUMMARY_SCHEMA
        )
        totals = tables.result
        return TaskResult(
            counts={
                "read": totals.records,
                "written": written,
                "truncated": totals.truncated,
            },
            files=[describe_file(self._job.output, name, rows=written)],
            letters=totals.letters,
            figures=totals.figures,
        )

    def _tables(
        self, windows: Iterable[SummarizedWindow], progress: TaskProgress
    ) -> Generator[pa.Table, None, _Totals]:
        """Yields the rows of each window as a table; returns the sums of them all."""
        shared_columns = run_columns(
            self._settings, run_id=self._job.run_id, created_at=self._job.created_at
        )
        records = 0
        truncated = 0
        letters: list[DeadLetter] = []
        methods: Counter[str] = Counter()
        flags: Counter[str] = Counter()
        fallbacks: Counter[str] = Counter()
        search = SearchCost()
        for window, rows, batches in windows:
            records += window.records
            letters.extend(window.letters)
            for row in rows:
                truncated += row.columns["truncated"] or False
                methods[row.shown.text.method] += 1
                flags.update(row.shown.text.flags)
                fallbacks.update(row.shown.reasons)
            search.add(batches)
            yield summary_table([{**row.columns, **shared_columns} for row in rows])
            progress.advance_to(window.position)
        figures = SummaryFigures(
            dict(methods), dict(flags), dict(fallbacks), search.sums
        )
        return _Totals(
            records=records, truncated=truncated, letters=letters, figures=figures
        )
