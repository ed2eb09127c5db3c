"""The steps of a run: its documents are told apart by their keys where that is asked
for, tasks become parts, duplicates take over rows, and the manifest is written.
"""

import functools
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from precis.model.inference.batches import SearchedBatch
from precis.model.inference.process_limits import has_accelerator
from precis.model.inference.search_cost import SearchCost, summary_tokens
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Position, Task
from precis.pipelines.engines.tasks import (
    RunTasks,
    Step,
    TaskReport,
    TaskWorker,
)
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.equal_texts import KeyWorker, join_keys, key_size
from precis.pipelines.summarize.known_documents import (
    COPY,
    CopyWorker,
    KnownDocuments,
    forget_copies,
)
from precis.pipelines.summarize.run_parts import (
    RowWriter,
    SummaryRun,
    write_manifest,
)
from precis.pipelines.summarize.window_summarizer import WindowSummarizer


class SummarizeWorker(TaskWorker):
    """Turns one task into a part of the run."""

    def __init__(self, run: SummaryRun) -> None:
        """Takes what is made, and how."""
        self._run = run
        self._summarizer = WindowSummarizer(
            run.settings, run_id=run.job.run_id, share=Shared().acquire
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
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the part of a task."""
        run = self._run
        reader = read_task(task, run.corpus)
        search = SearchCost()
        with RowWriter(run, f"{task.number:05d}") as part:
            known = KnownDocuments(run, task.number, part, progress)
            for window in self._summarizer.summarize(
                known.new_articles(reader, dead_letters),
                lambda: reader.position,
                functools.partial(_count_batch, progress),
            ):
                table = self._summarizer.table(
                    window, run.layout.schema, known.further_columns
                )
                progress.add_flagged(part.add(table))
                for letter in window.dead_letters:
                    dead_letters.write(letter)
                searched = sum(row["chunks"] is not None for row in window.rows)
                search.add(window.batches, documents=searched)
                progress.advance_to(window.position)
            waiting = known.finish()
            published = part.finish()
            progress.advance_to(reader.position)  # New documents need not be the last.
        return TaskReport(
            sources=source_counts(
                read=reader.read,
                other_split=reader.other_split,
                not_selected=reader.not_selected,
                **part.outcomes,
            ),
            counts={"truncated": part.truncated},
            files=[*published, *waiting],
            figures=part.figures(
                search=search.sums,
                has_duplicates=bool(waiting),
                share=reader.share if run.corpus.limit else 0.0,
            ),
        )


def _count_batch(
    progress: TaskProgress, position: Position, part: float, batch: SearchedBatch
) -> None:
    """Counts a batch that was searched, and how much of its window that makes."""
    progress.add_tokens(batch.source_tokens + summary_tokens(batch))
    progress.advance_to(position, part)


def add_steps(
    pipeline: beam.Pipeline,
    tasks: Sequence[Task],
    run: SummaryRun,
    *,
    processes: int = 1,
) -> beam.PCollection:
    """Adds the steps of a run, and its manifest, to a pipeline.

    Args:
      pipeline: where they are added.
      tasks: of the corpus.
      run: what is made, and how.
      processes: of this machine that do the tasks.

    Returns:
      An element when the manifest is written.
    """
    options = run.settings.options
    # Where a network writes, the search processes have the cores, and one process reads
    # for them. An accelerator serves one process.
    uses_accelerator = options.extractive_bundle and has_accelerator()
    readers = 1 if options.bundle or uses_accelerator else processes
    summarized = (
        _new_documents(pipeline, tasks, run, processes)
        | "Summarize" >> RunTasks(SummarizeWorker(run), run.step, processes=readers)
        | "GatherReports" >> beam.combiners.ToList()
    )
    copied: Any = []
    if run.deduplicates:
        copies = (
            summarized
            | "ListDuplicates" >> beam.FlatMap(_with_duplicates, tasks)
            | "SpreadDuplicates" >> beam.Reshuffle()
            | "CopyRows"
            >> RunTasks(
                CopyWorker(run),
                Step(run.job, COPY),
                processes=processes,
            )
            | "GatherCopies" >> beam.combiners.ToList()
        )
        copied = beam.pvalue.AsSingleton(copies)
    return summarized | "WriteManifest" >> beam.Map(write_manifest, copied, run)


def _new_documents(
    pipeline: beam.Pipeline, tasks: Sequence[Task], run: SummaryRun, processes: int
) -> beam.PCollection:
    """The tasks of the corpus; where the run needs it, when its documents are compared
    with each other and with those of earlier runs.
    """
    if not run.has_keys:
        listed = pipeline | "ListTasks" >> beam.Create(tasks)
    else:
        forget_copies(run, tasks)
        references = run.settings.uses_references
        keys = KeyWorker(run.corpus, run.job, uses_references=references)
        join = functools.partial(
            join_keys, uses_references=references, unique_ids=run.unique_ids
        )
        step = Step(run.job, "keys")
        listed = (
            pipeline
            | "ListKeyTasks" >> beam.Create(tasks)
            | "WriteKeys" >> RunTasks(keys, step, processes=processes)
            | "AwaitKeys" >> beam.combiners.Count.Globally()
            | "JoinKeys" >> beam.Map(lambda _: join(run.job, run.earlier))
            | "ListTasks" >> beam.FlatMap(lambda _: tasks)
        )
    # Without it one worker of an engine would do all tasks, one after another.
    return listed | "SpreadTasks" >> beam.Reshuffle()


def _with_duplicates(
    reports: Sequence[TaskReport], tasks: Sequence[Task]
) -> list[Task]:
    """The tasks with documents that wait for the rows of others."""
    return [
        tasks[report.task] for report in reports if report.figures.get("has_duplicates")
    ]
