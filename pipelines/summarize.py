"""`precis summarize`: corpus (+ bundles) -> Parquet with an extractive and an
abstractive summary of every document, and the one to show.

One task is one Parquet file, written aside and renamed, so that a document is in the
result once or not at all.
"""

import dataclasses
import importlib.metadata
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)

from precis.model import files
from precis.model.bundle.manifest import (
    EXTRACTIVE,
    KEYPHRASES,
    open_files,
    read_manifest,
)
from precis.model.bundle.network_bundle import check_prefix, open_bundle, read_decoding
from precis.model.errors import DataError
from precis.model.inference.search_cost import Figures, describe
from precis.model.inference.worker_pool import refuse_within_import
from precis.model.search.config import SearchConfig, check_coverage
from precis.model.tensorflow_import import import_tensorflow
from precis.pipelines import tasks
from precis.pipelines.beam_runner import LOCAL_RUNNER, pipeline_options, run_pipeline
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import Task
from precis.pipelines.dead_letters import check_failures
from precis.pipelines.extractive_summaries import check_methods
from precis.pipelines.flags import option_names, read_flags
from precis.pipelines.options import SUMMARIZE, SummarizeOptions, decode_id
from precis.pipelines.schema import SCHEMA_VERSION
from precis.pipelines.summarize_task import SummarizeTask
from precis.pipelines.summary_rows import Settings
from precis.pipelines.tasks import Job

MANIFEST_FILE = "manifest.json"
# Runners that work in this process unless --direct_running_mode multi_processing says
# otherwise.
LOCAL_RUNNERS = (LOCAL_RUNNER, "DirectRunner")


def summarize(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Summarizes every document of a corpus.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of the dataclasses in `pipelines.options.SUMMARIZE`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: a flag, a corpus or a bundle that cannot be; nothing was written.
      DataError: too many records failed.
    """
    refuse_within_import()
    # An imported network brings its own search: what no flag says, the bundle does, and
    # what it does not say, the defaults do.
    own = read_decoding(flags["bundle"]) if flags.get("bundle") else {}
    corpus, options, selection, quality, gate, decoding, failures = read_flags(
        SUMMARIZE, {**own, **flags}
    )
    check_methods(options)
    if options.bundle:
        contents = open_bundle(options.bundle)
        check_coverage(decoding, has_pointer=contents.config.pointer)
        check_prefix(options.task_prefix, contents)
    beam_options = pipeline_options(beam_args, own_flags=option_names(SUMMARIZE))
    settings = Settings(
        corpus,
        options,
        selection,
        quality,
        gate,
        decoding,
        _model_ids(options, decoding),
    )
    found = list_tasks(corpus)
    job = tasks.open_job(
        options.output,
        kind="summaries",
        inputs=_inputs(settings, found),
        tasks=len(found),
    )
    if job is not None:
        if options.bundle or options.extractive_bundle:
            import_tensorflow()
            settings = settings._replace(
                options=_without_processes_of_workers(options, beam_options)
            )
        pipeline = beam.Pipeline(options=beam_options)
        build(pipeline, found, settings, job=job)
        run_pipeline(
            pipeline, label="summarize", size=sum(task.size_bytes for task in found)
        )
        manifest = files.read_json(files.join(options.output, MANIFEST_FILE))
        if not manifest["counts"]["read"]:
            raise DataError(
                f"{corpus.corpus} holds no document"
                + (
                    f" of the split {corpus.split!r}; check --split"
                    if corpus.split
                    else ""
                )
            )
        where = files.join(options.output, tasks.DEAD_LETTERS_FOLDER)
        check_failures(
            manifest["counts"],
            manifest["failures"],
            max_failed_share=failures.max_failed_share,
            dead_letters=where,
        )
        tasks.finish_job(job)
    return files.read_json(files.join(options.output, MANIFEST_FILE))


def _model_ids(
    options: SummarizeOptions, decoding: SearchConfig
) -> dict[str, str | None]:
    """What names each model and the search; None for a model that is not used."""
    return {
        "model_id": read_manifest(options.bundle)["model_id"]
        if options.bundle
        else None,
        "decode_id": decode_id(decoding, options.precision) if options.bundle else None,
        "extractive_model_id": open_files(
            options.extractive_bundle, EXTRACTIVE
        ).model_id
        if options.extractive_bundle
        else None,
        "keyphrase_model_id": open_files(options.keyphrase_bundle, KEYPHRASES).model_id
        if options.keyphrase_bundle
        else None,
    }


def _without_processes_of_workers(
    options: SummarizeOptions, beam_options: PipelineOptions
) -> SummarizeOptions:
    """The options for workers that Beam starts one a core: each of them would start one
    search process a core.
    """
    runner = beam_options.view_as(StandardOptions).runner
    is_here = (
        runner in LOCAL_RUNNERS
        and beam_options.view_as(DirectOptions).direct_running_mode
        != "multi_processing"
    )
    return (
        options
        if options.search_processes or is_here
        else dataclasses.replace(options, search_processes=1)
    )


def _inputs(settings: Settings, found: Sequence[Task]) -> dict[str, Any]:
    """Everything the summaries depend on."""
    return {
        "schema": SCHEMA_VERSION,
        "corpus": dataclasses.asdict(settings.corpus),
        "tasks": tasks.describe_tasks(found),
        "extractive": settings.options.methods,
        "selection": dataclasses.asdict(settings.selection),
        "quality": dataclasses.asdict(settings.quality),
        "gate": {
            **dataclasses.asdict(settings.gate),
            "fallback_flags": sorted(settings.gate.held_back),
        },
        "keyphrases": settings.options.keyphrases
        if settings.options.keyphrase_bundle
        else None,
        "task_prefix": settings.options.task_prefix,
        # A window is a row group.
        "window_documents": settings.options.window_documents,
        **settings.model,
    }


def build(
    pipeline: beam.Pipeline, found: Sequence[Task], settings: Settings, *, job: Job
) -> None:
    """Adds the job to a pipeline: tasks -> Parquet parts and receipts -> manifest.json."""
    _ = (
        pipeline
        | "ListTasks" >> beam.Create(found)
        | "SummarizeTasks" >> beam.ParDo(SummarizeTask(settings, job=job))
        | "GatherReceipts" >> beam.combiners.ToList()
        | "PublishManifest" >> beam.Map(publish_manifest, settings, job)
    )


def publish_manifest(
    receipts: list[dict[str, Any]], settings: Settings, job: Job
) -> None:
    """Writes manifest.json from the receipts of all tasks."""
    receipts = sorted(receipts, key=lambda receipt: receipt["task"])
    corpus, options = settings.corpus, settings.options
    manifest = {
        "kind": "summaries",
        "schema_version": SCHEMA_VERSION,
        "precis_version": importlib.metadata.version("precis"),
        "run_id": job.run_id,
        "fingerprint": job.fingerprint,
        "created_at": job.created_at.isoformat(),
        "corpus": corpus.corpus,
        "split": corpus.split,
        "bundle": options.bundle or None,
        "task_prefix": options.task_prefix,
        "extractive_bundle": options.extractive_bundle or None,
        "keyphrase_bundle": options.keyphrase_bundle or None,
        **settings.model,
        "extractive": list(options.methods),
        **{
            name: tasks.sum_counts(receipt[name] for receipt in receipts)
            for name in (
                "counts",
                "summary_methods",
                "quality_flags",
                "fallbacks",
                "failures",
            )
        },
        "search": describe(
            tasks.sum_counts(
                [Figures().sums, *(receipt["search"] for receipt in receipts)]
            )
        )
        if options.bundle
        else None,
        "files": [file for receipt in receipts for file in receipt["files"]],
        "dead_letters": [
            file for receipt in receipts for file in receipt["dead_letters"]
        ],
    }
    files.write_json(files.join(options.output, MANIFEST_FILE), manifest)
