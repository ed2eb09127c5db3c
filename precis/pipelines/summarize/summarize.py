"""`precis summarize`: writes an extractive and an abstractive summary of every document
of a corpus, and the text to show, to Parquet.

    summarize   a task of the corpus -> its output file, its dead letters, its receipt
                all receipts -> manifest.json, _SUCCESS

With --reuse or --deduplicate, a run does not summarize all documents:

    keys, join  tasks, output files of earlier runs -> documents that have a row already
    summarize   as above, for the other documents
    copy        the rows of documents that repeat others

With --group_by, the rows of groups are made from the rows of documents:

    groups      all output files -> sentences by group -> tasks of groups

Only keys are shuffled, never documents.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection
from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.bundle.summarizer_bundle import with_flags_of_bundle
from precis.model.errors import Unfinished
from precis.model.inference.batches import SearchedBatch
from precis.model.inference.bulk_summarizer import SEARCH_IMPORTS
from precis.model.inference.search_cost import SearchCost, summary_tokens
from precis.model.isolation import PENDING
from precis.model.processes import (
    count_processes,
    has_accelerator,
    refuse_within_import,
    start_fork_server,
)
from precis.model.progress.stages import Stage
from precis.pipelines.corpus.corpus import read_task
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import Position, Task
from precis.pipelines.engines.beam_runner import (
    check_tensorflow,
    count_workers,
    pipeline_options,
    run_pipeline,
    works_in_this_process,
)
from precis.pipelines.engines.remote_checks import check_remote
from precis.pipelines.engines.tasks import (
    Gather,
    RunTasks,
    Step,
    TaskReport,
    TaskWorker,
)
from precis.pipelines.run.accounts import count_by_file
from precis.pipelines.run.hub import with_local_bundles
from precis.pipelines.run.job import (
    Job,
    job_provenance,
    list_corpus,
    result_inputs,
    run_job,
    with_job_commits,
)
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.options import (
    check_effects,
    check_values,
    flag_names,
    read_flags,
    recorded_flags,
    result_settings,
)
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.earlier_runs import find_earlier_runs
from precis.pipelines.summarize.groups import (
    GroupWorker,
    join_groups,
    with_group_field,
)
from precis.pipelines.summarize.known_documents import (
    COPY,
    CopyWorker,
    KeyWorker,
    KnownDocuments,
    forget_copies,
    join_keys,
)
from precis.pipelines.summarize.options import FAIL, GROUPS, SUMMARIZE
from precis.pipelines.summarize.run_output import (
    MANIFEST_FILE,
    RowWriter,
    RunManifest,
    SummaryRun,
    check_run,
    write_manifest,
)
from precis.pipelines.summarize.summary_rows import run_columns
from precis.pipelines.summarize.summary_settings import (
    SummarySettings,
    summary_settings,
)
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.partitions import output_layout

# A smaller corpus is done before further search processes can start.
_LEAST_BYTES_OF_SEARCH = 1 << 20


def summarize(*, beam_args: Sequence[str] = (), **flags: Any) -> RunManifest:
    """Summarizes every document of a corpus.

    Args:
      beam_args: the flags for Beam itself.
      **flags: the fields of the dataclasses in `pipelines.summarize.options.SUMMARIZE`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: an invalid flag, corpus or bundle; nothing was written.
      DataError: too many records failed.
      JobError: another process took over the output.
      Unfinished: requests are submitted or written, and have no answers yet.
    """
    with shown("summarize"):
        _, run = plan(flags, beam_args)
        output = run()
    return files.read_json(files.join(output, MANIFEST_FILE))


def plan(
    flags: Mapping[str, Any], beam_args: Sequence[str]
) -> tuple[list[Task], Callable[[], str]]:
    """Makes all checks that `summarize` makes before it starts.

    Returns:
      The tasks of the job, and a function that runs it and returns its folder.
    """
    refuse_within_import()
    flags = check_values(SUMMARIZE, flags)
    beam_options = pipeline_options(beam_args, own_flags=flag_names(SUMMARIZE))
    check_remote(beam_options, SUMMARIZE, flags)
    flags = with_flags_of_bundle(with_local_bundles(flags))
    option_groups = with_job_commits(read_flags(SUMMARIZE, flags))
    corpus, *summary_options, earlier, result, groups, failures, workers = option_groups
    corpus = with_group_field(corpus, groups)
    check_effects([groups])
    settings = summary_settings(*summary_options, text=corpus.text_settings)
    option_groups[1] = settings.options  # `auto` has become an engine
    recorded = recorded_flags(option_groups)
    settings = with_search_processes(settings, beam_options, workers=workers.workers)
    if settings.uses_tensorflow:
        check_tensorflow(beam_options)
    output = settings.options.output
    if settings.options.is_batch:
        from precis.pipelines.summarize.batch_rounds import check_batches

        check_batches(settings.options, beam_options)
    tasks = list_corpus(corpus, output)
    layout = output_layout(tasks, partitions=result.partitions, is_flat=result.flat)
    if groups.group_by:
        groups.field.check(layout.schema, groups.order_by)
    others = (corpus, earlier, result, groups)
    inputs = result_inputs({**result_settings(others), **settings.described}, tasks)
    provenance = job_provenance("summarize", recorded, inputs)

    def run(job: Job) -> None:
        output_files = find_earlier_runs(job, earlier.reused_folders, settings)
        summary_run = SummaryRun(
            job=job,
            corpus=corpus,
            settings=settings,
            layout=layout,
            provenance=provenance,
            columns=run_columns(settings, run_id=job.run_id),
            earlier=tuple(each for each in output_files if not each.is_of_groups),
            deduplicates=earlier.deduplicate or bool(earlier.reused_folders),
            unique_ids=result.on_duplicate_id == FAIL,
            groups=groups,
            earlier_groups=tuple(each for each in output_files if each.is_of_groups),
        )
        run_job_steps(summary_run, tasks, beam_options, workers=workers.workers)

    run_all = functools.partial(
        run_job,
        "summarize",
        output,
        kind="summaries",
        options=option_groups,
        inputs=inputs,
        tasks=tasks,
        run=run,
        check=functools.partial(check_run, corpus),
        failures=failures,
    )
    return tasks, run_all


class SummarizeWorker(TaskWorker):
    """Summarizes the documents of a task and writes its output file."""

    def __init__(self, run: SummaryRun, share: Callable[..., Any]) -> None:
        """Stores the run, and the function that shares models, `Shared.acquire`."""
        self._run = run
        self._summarizer = WindowSummarizer(
            run.settings, run_id=run.job.run_id, share=share
        )

    def progress_size(self, task: Task) -> int:
        """The size of the task in bytes of the corpus."""
        return task.size_bytes

    def load(self) -> None:
        """Opens the bundles."""
        self._summarizer.load()

    def close(self) -> None:
        """Ends the search processes when the last thread that used them ends."""
        self._summarizer.close()

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the output file of a task.

        Raises:
          Unfinished: a request waits for a batch, so nothing is published.
        """
        run, waits = self._run, False
        reader = read_task(task, run.corpus)
        search = SearchCost() if run.settings.options.bundle else None

        def count_batch(position: Position, share: float, batch: SearchedBatch) -> None:
            progress.add("tokens", batch.source_tokens + summary_tokens(batch))
            progress.advance_to(position, share)

        with RowWriter(run, f"{task.number:05d}", progress) as writer:
            known = KnownDocuments(run, task.number, writer)
            for window in self._summarizer.summarize(
                known.new_articles(reader, dead_letters),
                lambda: reader.position,
                count_batch,
            ):
                for row in window.documents:
                    row.columns |= known.further_columns(row.article)
                table = self._summarizer.table(window, run.layout.schema)
                writer.add(table, window.rows)
                for letter in window.dead_letters:
                    dead_letters.write(letter)
                searched = sum(row["chunks"] is not None for row in window.rows)
                if search:
                    search.add(window.batches, documents=searched)
                progress.advance_to(window.position)
                failures = [each.failure for each in window.documents if each.failure]
                waits |= any(each.reason == PENDING for each in failures)
            if waits:
                raise Unfinished(f"task {task.number} waits for answers")
            waiting = known.finish()
            published = writer.finish()
            progress.advance_to(reader.position)  # Reused ones may be last.
        return TaskReport(
            file_counts=count_by_file(
                read=reader.read,
                other_split=reader.other_split,
                not_selected=reader.not_selected,
                **writer.outcomes,
            ),
            counts={"truncated": writer.truncated},
            files=[*published, *waiting],
            figures=writer.figures(
                search=search.sums if search else {},
                has_duplicates=bool(waiting),
                share=reader.share if run.corpus.limit else 0.0,
            ),
        )


def run_job_steps(
    run: SummaryRun,
    tasks: Sequence[Task],
    beam_options: PipelineOptions,
    *,
    workers: int,
) -> None:
    """Runs the steps of a run, which end with its manifest.

    Args:
      run: the run and its settings.
      tasks: the tasks of the corpus.
      beam_options: the Beam options of the job.
      workers: the value of the flag --workers.
    """
    size = sum(task.size_bytes for task in tasks)
    processes = count_workers(workers, beam_options, tasks=len(tasks), size=size)
    readers, note = processes, ""
    options = run.settings.options
    if options.bundle and not options.is_endpoint:
        note = "compiling the search"
        is_large = size >= _LEAST_BYTES_OF_SEARCH and works_in_this_process(
            beam_options
        )
        if is_large and count_processes(options.search_processes) > 1:
            start_fork_server(SEARCH_IMPORTS[options.engine])
    # Search processes need all cores, so a single process reads for them. A claim
    # checker takes much memory, and an accelerator serves only one process.
    has_models = bool(options.bundle or options.checker)
    if has_models or (run.settings.reads_vectors and has_accelerator()):
        readers = 1
    stages = [
        Stage(name="keys", step="keys", size=size),
        Stage(name="summarize", step=run.step.name, size=size, first_note=note),
    ]
    stages = stages if run.has_keys else stages[1:]

    def begin(run: SummaryRun) -> tuple[beam.Pipeline, Any]:
        """A pipeline, and the reports of the tasks of the corpus in it."""
        pipeline = beam.Pipeline(options=beam_options)
        worker = SummarizeWorker(run, Shared().acquire)
        summarize_tasks = RunTasks(worker, run.step, processes=readers)
        joined = _await_keys(pipeline, tasks, run, processes)
        return pipeline, joined | "Summarize" >> summarize_tasks

    def ask(run: SummaryRun) -> None:
        run_pipeline(begin(run)[0], stages)

    answered = contextlib.nullcontext(run)
    if options.is_batch:
        from precis.pipelines.summarize.batch_rounds import answered_in_batches

        answered = answered_in_batches(run, ask)
    with answered as run:
        _run_to_end(*begin(run), run, tasks, stages, processes)


def _run_to_end(
    pipeline: beam.Pipeline,
    reports: Any,
    run: SummaryRun,
    tasks: Sequence[Task],
    stages: Sequence[Stage],
    processes: int,
) -> None:
    """Adds the steps after the summaries, the last of which writes the manifest, and
    runs them all.
    """
    if run.deduplicates:
        copies = RunTasks(CopyWorker(run), Step(run.job, COPY), processes=processes)
        reports = _add_step(reports, "Copies", copies, _with_duplicates, tasks)
    if run.groups.group_by:
        groups = RunTasks(GroupWorker(run), Step(run.job, GROUPS), processes=processes)
        reports = _add_step(reports, "Groups", groups, join_groups, run)
    _ = (
        reports
        | "GatherReports" >> Gather()
        | "WriteManifest" >> beam.Map(write_manifest, run)
    )
    run_pipeline(pipeline, stages)


def _await_keys(
    pipeline: beam.Pipeline, tasks: Sequence[Task], run: SummaryRun, processes: int
) -> PCollection:
    """The tasks of the corpus; if the run has keys, after its documents were compared
    with each other and with earlier runs.
    """
    listed = pipeline | "ListTasks" >> beam.Create(tasks, reshuffle=False)
    if run.has_keys or run.groups.group_by:
        forget_copies(run, tasks)
    if not run.has_keys:
        return listed
    keys = RunTasks(KeyWorker(run), Step(run.job, "keys"), processes=processes)
    return (
        listed
        | "WriteKeys" >> keys
        | "AwaitKeys" >> beam.combiners.Count.Globally()
        | "JoinKeys" >> beam.Map(lambda _: join_keys(run))
        | "ListJoinedTasks" >> beam.FlatMap(lambda _: tasks)
    )


def _add_step(
    reports: Any, name: str, step: RunTasks, list_tasks: Callable[..., Any], *given: Any
) -> Any:
    """Adds a step whose tasks are listed after other reports; returns all reports."""
    added = (
        reports
        | f"Await{name}" >> Gather()
        | f"List{name}" >> beam.FlatMap(list_tasks, *given)
        | f"Make{name}" >> step
    )
    return (reports, added) | f"Add{name}" >> beam.Flatten()


def _with_duplicates(done: Sequence[TaskReport], tasks: Sequence[Task]) -> list[Task]:
    """The tasks with documents that wait for other documents' rows."""
    return [tasks[each.task] for each in done if each.figures.get("has_duplicates")]


def with_search_processes(
    settings: SummarySettings, beam_options: PipelineOptions, *, workers: int = 0
) -> SummarySettings:
    """Sets the number of search processes so that each has a core for itself.

    Beam starts one worker process per core, and each would start one search process per
    core, so each gets one. In this process the number is the number of workers. The
    option search_processes has precedence.

    Args:
      settings: the settings of the summaries.
      beam_options: the Beam options of the job.
      workers: the value of the flag --workers; 0 is one for each core.
    """
    processes = workers if works_in_this_process(beam_options) else 1
    processes = settings.options.search_processes or processes
    options = dataclasses.replace(settings.options, search_processes=processes)
    return settings._replace(options=options)
