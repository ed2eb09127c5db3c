"""`precis summarize`: corpus (+ bundles) -> Parquet with an extractive and an
abstractive summary of every document, and the text to show.

    scan      tasks of the corpus, parts of earlier runs -> keys
    join      keys of a bucket -> which document repeats which, or has a row already
    infer     tasks of the corpus -> pieces: the rows of new documents, and the others
    publish   pieces -> data/part-*.parquet -> manifest.json, _SUCCESS

A step begins when all tasks of the one before it are done. Documents are never
shuffled: between the steps, keys and rows lie in files of their task.
"""

import contextlib
from collections.abc import Mapping, Sequence
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
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CLEANING_FLAGS, CorpusOptions
from precis.pipelines.corpus.placement import check_output_apart
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.beam_runner import pipeline_options, run_pipeline
from precis.pipelines.engines.local_processes import count_workers
from precis.pipelines.engines.remote_checks import saves_template, stage_remote
from precis.pipelines.engines.runner_names import check_tensorflow
from precis.pipelines.flags.flags import (
    check_values,
    option_names,
    read_flags,
    recorded_flags,
)
from precis.pipelines.options.results import (
    EarlierRunOptions,
    ResultOptions,
    normal_path,
)
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.options.workers import WorkerOptions
from precis.pipelines.run.job import (
    Job,
    abandon_job,
    finish_job,
    is_unused,
    open_job,
    say_finished,
    warn_of_damage,
)
from precis.pipelines.run.job_inputs import hash_tasks, job_provenance
from precis.pipelines.run.job_progress import load_tensorflow, shown
from precis.pipelines.run.output_lock import own_output
from precis.pipelines.run.result_files import read_run_manifest
from precis.pipelines.summarize.document_keys import (
    forget_failed_scans,
    scan_size,
)
from precis.pipelines.summarize.earlier_runs import find_earlier_runs
from precis.pipelines.summarize.retried_records import retried_files, retried_tasks
from precis.pipelines.summarize.run_manifest import (
    MANIFEST_FILE,
    RunDescription,
    check_run,
    publish_manifest,
)
from precis.pipelines.summarize.run_on_workers import finish_on_workers
from precis.pipelines.summarize.run_steps import build_run
from precis.pipelines.summarize.search_processes import (
    check_precision,
    import_for_search,
    is_much_to_search,
    limit_search_processes,
)
from precis.pipelines.summarize.summary_settings import (
    WITHOUT_EFFECT,
    SummarySettings,
    summary_settings,
)
from precis.pipelines.tables.part_layout import part_layout
from precis.pipelines.warehouse.load_run import check_table, load_run

# Beside those of `WITHOUT_EFFECT`: when a run fails, and who takes its result.
_BEYOND_THE_RUN = ("max_failed_share", "max_empty_share", "table", "workers")


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
    description = RunDescription(corpus, settings, provenance, layout)
    with own_output(output) as ownership:
        is_new = is_unused(output)
        job = open_job(
            output,
            kind="summaries",
            inputs=inputs,
            tasks=len(tasks),
            may_replace=normal_path(output) in earlier.reused_folders,
        )
        if job is not None and saves_template(beam_options):
            try:
                _run(
                    job,
                    tasks,
                    description,
                    result,
                    earlier,
                    workers,
                    beam_options,
                    failures,
                )
            finally:
                if is_new:
                    abandon_job(job)
            return {}
        if job is not None:
            _run(job, tasks, description, result, earlier, workers, beam_options)
            check_run(job, corpus, failures)
            ownership.check()
            publish_manifest(job)
            finish_job(job)
        else:
            say_finished("summarize", output)
        if result.table:
            load_run(output, result.table)
    return read_run_manifest(files.join(output, MANIFEST_FILE))


def list_run_tasks(corpus: CorpusOptions, output: str, retried_run: str) -> list[Task]:
    """The tasks of the corpus, after all checks that need no reading."""
    with stage("listing the corpus", is_brief=True):
        tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    if retried_run:
        tasks = retried_tasks(tasks, retried_files(retried_run), retried_run)
    return tasks


def _run(
    job: Job,
    tasks: Sequence[Task],
    description: RunDescription,
    result: ResultOptions,
    earlier: EarlierRunOptions,
    workers: WorkerOptions,
    beam_options: PipelineOptions,
    failures: FailureOptions | None = None,
) -> None:
    """Runs the pipeline of a job.

    With `failures` the workers finish the run; else the caller does.
    """
    warn_of_damage("summarize", job)
    forget_failed_scans(job, tasks)
    settings = description.settings
    runs = find_earlier_runs(job, earlier.reused_folders, settings)
    size = sum(task.size_bytes for task in tasks)
    processes = count_workers(
        workers.workers, beam_options, tasks=len(tasks), size=size
    )
    if settings.options.bundle:
        if workers.workers == 1 and not has_accelerator():
            load_tensorflow()
            # A worker has one core. A Python process may have begun with more.
            with contextlib.suppress(UsageError):
                compute_on_one_thread()
        options = limit_search_processes(
            settings.options, beam_options, workers=workers.workers
        )
        settings = settings._replace(options=options)
        if is_much_to_search(tasks):
            import_for_search(options, beam_options, workers=processes)
    pipeline = beam.Pipeline(options=beam_options)
    layout = description.layout.begun_at(job.created_at)
    description = description._replace(settings=settings, layout=layout)
    written = build_run(
        pipeline, tasks, job, description, result, runs, processes=processes
    )
    if failures is not None:
        finish_on_workers(written, job, description.corpus, failures)
    scanned = sum(scan_size(task) for task in tasks)
    run_pipeline(
        pipeline,
        [
            Stage(name="scan", step="scan", size=scanned),
            Stage(name="summarize", step="infer", size=size - scanned),
        ],
    )


def run_inputs(
    flags: Mapping[str, Any], settings: SummarySettings, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Everything that the result depends on: the settings of the summaries, the other
    flags, and the content of the corpus.
    """
    described = settings.described
    of_summaries = set(recorded_flags(settings[:5]))
    others = {
        name: value
        for name, value in flags.items()
        if name not in of_summaries and name not in (*WITHOUT_EFFECT, *_BEYOND_THE_RUN)
    }
    return {**others, **described, "tasks_sha256": hash_tasks(tasks)}


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
