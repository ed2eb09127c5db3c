"""One task of the corpus -> its rows, its dead letters, its receipt."""

import functools

from apache_beam.utils.shared import Shared

from precis.model.inference.batches import SearchedBatch
from precis.model.inference.search_cost import SearchCost, summary_tokens
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Position, Task
from precis.pipelines.engines.tasks import TaskResult, TaskWorker
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.equal_texts import key_size
from precis.pipelines.summarize.known_documents import KnownDocuments
from precis.pipelines.summarize.run_parts import RowFigures, RunPart, SummaryRun
from precis.pipelines.summarize.window_summarizer import WindowSummarizer


class SummarizeWorker(TaskWorker):
    """Turns one task into a part of the run."""

    def __init__(self, run: SummaryRun, *, starts_early: bool = False) -> None:
        """Stores its arguments.

        Args:
          run: what is made, and how.
          starts_early: as for `WindowSummarizer`.
        """
        self._run = run
        self._summarizer = WindowSummarizer(
            run.settings,
            run_id=run.job.run_id,
            share=Shared().acquire,
            starts_early=starts_early,
        )

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes - (key_size(task) if self._run.has_keys else 0)

    def load(self) -> None:
        """Opens the bundles."""
        self._summarizer.load()

    def close(self) -> None:
        """Ends the search processes that no thread needs any more."""
        self._summarizer.close()

    def run(
        self, task: Task, progress: TaskProgress, letters: DeadLetterWriter
    ) -> TaskResult[RowFigures]:
        """Writes the part of a task."""
        run = self._run
        reader = read_task(task, run.corpus)
        search = SearchCost()
        with RunPart(run, f"{task.number:05d}") as part:
            known = KnownDocuments(run, task.number, part, progress)
            for window in self._summarizer.summarize(
                known.new_articles(reader, letters),
                lambda: reader.position,
                functools.partial(_count_batch, progress),
            ):
                rows = [
                    known.complete(article, row)
                    for article, row in zip(window.articles, window.rows, strict=True)
                ]
                table, window = self._summarizer.table(window, rows, run.layout.schema)
                progress.add_flagged(part.add(table))
                for letter in window.letters:
                    letters.write(letter)
                searched = sum(row["chunks"] is not None for row in window.rows)
                search.add(window.batches, documents=searched)
                progress.advance_to(window.position)
            waiting = known.finish()
            published = part.finish()
            progress.advance_to(reader.position)  # New documents need not be the last.
        return TaskResult(
            sources=source_counts(
                read=reader.read,
                other_split=reader.other_split,
                not_selected=reader.not_selected,
                **part.outcomes,
            ),
            counts={"truncated": part.truncated},
            files=[*published, *waiting],
            figures=part.figures(search=search.sums, has_duplicates=bool(waiting)),
        )


def _count_batch(
    progress: TaskProgress, position: Position, part: float, batch: SearchedBatch
) -> None:
    """Counts a batch that was searched, and how much of its window that makes."""
    progress.add_tokens(batch.source_tokens + summary_tokens(batch))
    progress.advance_to(position, part)
