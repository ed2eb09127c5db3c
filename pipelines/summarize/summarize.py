"""`precis summarize`: corpus (+ bundles) -> Parquet with an extractive and an
abstractive summary of every document, and the text to show.

    summarize   a task of the corpus -> its part, its dead letters, its receipt
                all receipts -> manifest.json, _SUCCESS

A run with --reuse or --deduplicate does not compute the rows of all documents:

    keys, join  tasks, parts of earlier runs -> which document has a row already
    summarize   as above, for new documents
    copy        the rows of documents that repeat others

Documents are never shuffled; keys are.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
from apache_beam.options.pipeline_options import PipelineOptions

from precis.model import files
from precis.model.bundle.summarizer_bundle import with_flags_of_bundle
from precis.model.errors import UsageError
from precis.model.inference.process_limits import (
    compute_on_one_thread,
    has_accelerator,
    refuse_within_import,
)
from precis.model.progress.stages import Stage, stage
from precis.pipelines.corpus.options import CLEANING_FLAGS, CorpusOptions
from precis.pipelines.corpus.placement import check_output_apart
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.beam_runner import (
    check_tensorflow,
    pipeline_options,
    run_pipeline,
)
from precis.pipelines.engines.local_processes import count_workers
from precis.pipelines.engines.remote_checks import stage_remote
from precis.pipelines.engines.saved_jobs import SavedEnding
from precis.pipelines.engines.tasks import RunTasks, Step, TaskReport
from precis.pipelines.flags.flags import (
    check_values,
    option_names,
    read_flags,
    recorded_flags,
)
from precis.pipelines.options.results import (
    FAIL,
    normal_path,
)
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.run.job import (
    Job,
    job_provenance,
    result_inputs,
    run_job,
)
from precis.pipelines.run.job_progress import load_tensorflow, shown
from precis.pipelines.run.result_files import read_run_manifest
from precis.pipelines.summarize.earlier_runs import find_earlier_runs
from precis.pipelines.summarize.equal_texts import (
    JoinTask,
    JoinWorker,
    KeyFigures,
    KeyWorker,
    key_size,
    key_tasks,
)
from precis.pipelines.summarize.known_documents import COPY, CopyWorker, forget_copies
from precis.pipelines.summarize.retried_records import retried_files, retried_tasks
from precis.pipelines.summarize.run_manifest import (
    MANIFEST_FILE,
    check_run,
    write_manifest,
)
from precis.pipelines.summarize.run_parts import RowFigures, SummaryRun
from precis.pipelines.summarize.search_processes import (
    check_precision,
    import_for_search,
    is_much_to_search,
    limit_search_processes,
)
from precis.pipelines.summarize.summarize_task import SummarizeWorker
from precis.pipelines.summarize.summary_rows import run_columns
from precis.pipelines.summarize.summary_settings import (
    SummarySettings,
    summary_settings,
)
from precis.pipelines.tables.part_layout import part_layout
from precis.pipelines.warehouse.load_run import check_table, load_run

SUMMARIZE_STEP = "summarize"


def summarize(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Summarizes every document of a corpus.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of the dataclasses in `pipelines.options.summarize.SUMMARIZE`.

    Returns:
      The content of manifest.json; empty where `--template_location` saved the job
      and nothing ran.

    Raises:
      UsageError: a flag, a corpus or a bundle that cannot be; nothing was written.
      DataError: too many records failed.
      JobError: another process took over the output.
    """
    with shown("summarize"):
        return _summarize(flags, beam_args)


def _summarize(flags: Mapping[str, Any], beam_args: Sequence[str]) -> dict[str, Any]:
    refuse_within_import()
    flags = check_values(SUMMARIZE, flags)
    beam_options = pipeline_options(beam_args, own_flags=option_names(SUMMARIZE))
    stage_remote(beam_options, "summarize", flags)
    concerns = read_flags(SUMMARIZE, with_flags_of_bundle(flags))
    corpus, *summary_options, earlier, result, failures, workers = concerns
    check_precision(summary_options[0], beam_options)
    if summary_options[0].bundle or summary_options[0].extractive_bundle:
        check_tensorflow(beam_options)
    recorded = recorded_flags(concerns)
    settings = summary_settings(
        *summary_options, cleaning={name: recorded[name] for name in CLEANING_FLAGS}
    )
    output = settings.options.output
    tasks = list_run_tasks(corpus, output, earlier.retry_failures)
    layout = part_layout(result, tasks)
    if result.table:
        check_table(result.table)
    inputs = run_inputs(recorded, settings, tasks)
    provenance = job_provenance("summarize", recorded, inputs)

    def run(job: Job, finish: Callable[[], None]) -> bool:
        summary_run = SummaryRun(
            job=job,
            corpus=corpus,
            settings=settings,
            layout=layout.begun_at(job.created_at),
            provenance=provenance,
            columns=run_columns(settings, run_id=job.run_id),
            earlier=find_earlier_runs(job, earlier.reused_folders, settings),
            deduplicates=earlier.deduplicate or bool(earlier.reused_folders),
            unique_ids=result.on_duplicate_id == FAIL,
        )
        return _run(summary_run, tasks, workers.workers, beam_options, finish)

    load = functools.partial(load_run, output, result.table)
    is_there = run_job(
        "summarize",
        output,
        kind="summaries",
        inputs=inputs,
        tasks=len(tasks),
        run=run,
        check=functools.partial(check_run, corpus),
        failures=failures,
        may_replace=normal_path(output) in earlier.reused_folders,
        load=load if result.table else None,
    )
    return read_run_manifest(files.join(output, MANIFEST_FILE)) if is_there else {}


def list_run_tasks(corpus: CorpusOptions, output: str, retried_run: str) -> list[Task]:
    """The tasks of the corpus, after all checks that need no reading."""
    with stage("listing the corpus", is_brief=True):
        tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    if retried_run:
        tasks = retried_tasks(tasks, retried_files(retried_run), retried_run)
    return tasks


def _run(
    run: SummaryRun,
    tasks: Sequence[Task],
    workers: int,
    beam_options: PipelineOptions,
    finish: Callable[[], None],
) -> bool:
    """Runs the pipeline of a job, or saves it as one that calls `finish` by itself;
    whether it ran.
    """
    options = run.settings.options
    size = sum(task.size_bytes for task in tasks)
    processes = count_workers(workers, beam_options, tasks=len(tasks), size=size)
    if options.bundle:
        if workers == 1 and not has_accelerator():
            load_tensorflow()
            # A worker has one core. A Python process may have begun with more.
            with contextlib.suppress(UsageError):
                compute_on_one_thread()
        options = limit_search_processes(options, beam_options, workers=workers)
        settings = run.settings._replace(options=options)
        run = dataclasses.replace(run, settings=settings)
        if is_much_to_search(tasks):
            import_for_search(options, beam_options, workers=processes)
    # Where a network writes, the search processes have the cores, and one process reads
    # for them. An accelerator serves one process.
    uses_accelerator = options.extractive_bundle and has_accelerator()
    pipeline = beam.Pipeline(options=beam_options)
    written = add_steps(
        pipeline,
        tasks,
        run,
        processes=processes,
        readers=1 if options.bundle or uses_accelerator else processes,
        starts_early=not run.has_keys and is_much_to_search(tasks),
    )
    keys = sum(key_size(task) for task in tasks) if run.has_keys else 0
    stages = [Stage(name="summarize", step=SUMMARIZE_STEP, size=size - keys)]
    if keys:
        stages.insert(0, Stage(name="keys", step="keys", size=keys))
    ending = SavedEnding(run.job, written, finish)
    return run_pipeline(pipeline, stages, ending=ending)


def add_steps(
    pipeline: beam.Pipeline,
    tasks: Sequence[Task],
    run: SummaryRun,
    *,
    processes: int = 1,
    readers: int = 1,
    starts_early: bool = False,
) -> beam.PCollection:
    """Adds the steps of a run, and its manifest, to a pipeline.

    Args:
      pipeline: where they are added.
      tasks: of the corpus.
      run: what is made, and how.
      processes: of this machine that do the tasks.
      readers: those of them that read and summarize.
      starts_early: as for `WindowSummarizer`.

    Returns:
      An element when the manifest is written.
    """
    worker = SummarizeWorker(run, starts_early=starts_early)
    summarized = (
        _new_documents(pipeline, tasks, run, processes)
        | "Summarize" >> RunTasks(worker, _step(run), processes=readers)
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
                CopyWorker(run, _step(run)),
                Step(run.job, COPY, RowFigures.from_json),
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
        forget_copies(run.job, tasks, _step(run))
        references = run.settings.uses_references
        keys = KeyWorker(run.corpus, run.job, uses_references=references)
        join = JoinWorker(
            run.job,
            tasks=len(tasks),
            parts=len(run.earlier),
            unique_ids=run.unique_ids,
        )
        listed = (
            pipeline
            | "ListKeyTasks" >> beam.Create(key_tasks(tasks, run.earlier))
            | "WriteKeys"
            >> RunTasks(
                keys, Step(run.job, "keys", KeyFigures.from_json), processes=processes
            )
            | "GatherKeys" >> beam.combiners.ToList()
            | "AllKeys" >> beam.Map(lambda _: JoinTask())
            | "JoinKeys" >> RunTasks(join, Step(run.job, "join", KeyFigures.from_json))
            | "ListTasks" >> beam.FlatMap(lambda _: tasks)
        )
    # Without it one worker of an engine would do all tasks, one after another.
    return listed | "SpreadTasks" >> beam.Reshuffle()


def _step(run: SummaryRun) -> Step[RowFigures]:
    return Step(run.job, SUMMARIZE_STEP, RowFigures.from_json)


def _with_duplicates(
    reports: Sequence[TaskReport[RowFigures]], tasks: Sequence[Task]
) -> list[Task]:
    """The tasks with documents that wait for the rows of others."""
    return [tasks[report.task] for report in reports if report.figures.has_duplicates]


def run_inputs(
    flags: Mapping[str, Any], settings: SummarySettings, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Everything that the result depends on: the settings of the summaries, the other
    flags, and the content of the corpus.
    """
    of_summaries = set(recorded_flags(settings[:5]))
    others = {name: flags[name] for name in flags if name not in of_summaries}
    return result_inputs(others, tasks, settings.described)


def has_references(output: str, manifest: Mapping[str, Any]) -> bool:
    """Whether a document of the first file of a run has a reference summary."""
    for file in manifest["files"][:1]:
        manifest_path = files.join(output, MANIFEST_FILE)
        path = files.path_within(output, file["file"], listed_in=manifest_path)
        with files.open_read(path) as opened:
            parquet = pq.ParquetFile(opened, pre_buffer=False)
            for group in range(parquet.num_row_groups):
                # Threads of Arrow may outlive the command and abort it at its end.
                rows = parquet.read_row_group(
                    group, columns=["reference_summary"], use_threads=False
                )
                if rows.num_rows > rows.column(0).null_count:
                    return True
    return False
