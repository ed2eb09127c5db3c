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

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from precis.model import files
from precis.model.bundle.summarizer_bundle import with_flags_of_bundle
from precis.model.inference.process_limits import refuse_within_import
from precis.model.progress.stages import Stage, stage
from precis.pipelines.corpus.listing import check_output_apart
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.beam_runner import (
    check_tensorflow,
    count_workers,
    pipeline_options,
    run_pipeline,
)
from precis.pipelines.engines.remote_checks import check_remote
from precis.pipelines.run.job import Job, job_provenance, result_inputs, run_job
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.options import (
    check_values,
    flag_names,
    normal_path,
    read_flags,
    recorded_flags,
)
from precis.pipelines.summarize.earlier_runs import find_earlier_runs
from precis.pipelines.summarize.equal_texts import key_size
from precis.pipelines.summarize.options import FAIL, SUMMARIZE
from precis.pipelines.summarize.run_parts import (
    MANIFEST_FILE,
    SUMMARIZE_STEP,
    SummaryRun,
    check_run,
)
from precis.pipelines.summarize.run_steps import add_steps
from precis.pipelines.summarize.search_processes import begin_search
from precis.pipelines.summarize.summary_rows import run_columns
from precis.pipelines.summarize.summary_settings import (
    SummarySettings,
    summary_settings,
)
from precis.pipelines.tables.partitions import part_layout
from precis.pipelines.warehouse.load import check_table, load_run


def summarize(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Summarizes every document of a corpus.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of the dataclasses in `pipelines.summarize.options.SUMMARIZE`.

    Returns:
      The content of manifest.json.

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
    beam_options = pipeline_options(beam_args, own_flags=flag_names(SUMMARIZE))
    check_remote(beam_options, flags)
    concerns = read_flags(SUMMARIZE, with_flags_of_bundle(flags))
    corpus, *summary_options, earlier, result, failures, workers = concerns
    if summary_options[0].bundle or summary_options[0].extractive_bundle:
        check_tensorflow(beam_options)
    recorded = recorded_flags(concerns)
    settings = summary_settings(*summary_options, clean=corpus.clean)
    output = settings.options.output
    with stage("listing the corpus", is_brief=True):
        tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    layout = part_layout(
        tasks,
        partitions=result.partitions,
        is_flat=result.flat,
        row_group_mb=result.row_group_mb,
    )
    if result.table:
        check_table(result.table)
    inputs = run_inputs(recorded, settings, tasks)
    provenance = job_provenance("summarize", recorded, inputs)

    def run(job: Job) -> None:
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
        _run(summary_run, tasks, workers.workers, beam_options)

    load = functools.partial(load_run, output, result.table)
    run_job(
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
    return files.read_json(files.join(output, MANIFEST_FILE))


def _run(
    run: SummaryRun,
    tasks: Sequence[Task],
    workers: int,
    beam_options: PipelineOptions,
) -> None:
    """Runs the pipeline of a job."""
    size = sum(task.size_bytes for task in tasks)
    processes = count_workers(workers, beam_options, tasks=len(tasks), size=size)
    options = begin_search(
        run.settings.options,
        beam_options,
        tasks=tasks,
        workers=workers,
    )
    run = dataclasses.replace(run, settings=run.settings._replace(options=options))
    pipeline = beam.Pipeline(options=beam_options)
    add_steps(pipeline, tasks, run, processes=processes)
    keys = sum(key_size(task) for task in tasks) if run.has_keys else 0
    stages = [
        Stage(
            name="summarize",
            step=SUMMARIZE_STEP,
            size=size - keys,
            first_note="compiling the search" if options.bundle else "",
        )
    ]
    if keys:
        stages.insert(0, Stage(name="keys", step="keys", size=keys))
    run_pipeline(pipeline, stages)


def run_inputs(
    flags: Mapping[str, Any], settings: SummarySettings, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Everything that the result depends on: the settings of the summaries, the other
    flags, and the content of the corpus.
    """
    of_summaries = set(recorded_flags(settings[:4]))
    others = {name: flags[name] for name in flags if name not in of_summaries}
    return result_inputs(others, tasks, settings.described)
