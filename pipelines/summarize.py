"""`precis summarize`: corpus (+ bundles) -> Parquet with an extractive and an
abstractive summary of every document, and the text to show.

    tasks -> summaries/part-*.parquet and receipts -> manifest.json, _SUCCESS
"""

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq

from precis.model import files
from precis.model.bundle.network_bundle import with_decoding_of_bundle
from precis.model.errors import DataError
from precis.model.inference.search_cost import SearchCost, describe
from precis.model.inference.worker_pool import refuse_within_import
from precis.model.search.config import SearchConfig
from precis.pipelines.beam_runner import pipeline_options, run_pipeline
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import Task
from precis.pipelines.dead_letters import check_failures
from precis.pipelines.flags import option_names, read_flags, recorded_flags
from precis.pipelines.job import (
    DEAD_LETTERS_FOLDER,
    Job,
    finish_job,
    hash_tasks,
    job_provenance,
    open_job,
)
from precis.pipelines.options.failures import FailureOptions
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.progress_line import load_tensorflow
from precis.pipelines.schema import SCHEMA_VERSION
from precis.pipelines.summarize_task import SummarizeWorker, SummaryFigures
from precis.pipelines.summary_settings import (
    SummarySettings,
    limit_search_processes,
    summary_settings,
)
from precis.pipelines.tasks import RunTasks, TaskReport, sum_counts

MANIFEST_FILE = "manifest.json"
# Flags that change no summary: where models lie, how fast and how tolerant a run is.
_WITHOUT_EFFECT = (
    "bundle",
    "extractive_bundle",
    "keyphrase_bundle",
    "search_processes",
    "max_failed_share",
)


def summarize(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Summarizes every document of a corpus.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of the dataclasses in `pipelines.options.summarize.SUMMARIZE`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: a flag, a corpus or a bundle that cannot be; nothing was written.
      DataError: too many records failed.
    """
    refuse_within_import()
    concerns = read_flags(SUMMARIZE, with_decoding_of_bundle(flags))
    corpus, *summary_options, failures = concerns
    settings = summary_settings(*summary_options)
    options = settings.options
    beam_options = pipeline_options(beam_args, own_flags=option_names(SUMMARIZE))
    tasks = list_tasks(corpus)
    recorded = recorded_flags(concerns)
    inputs = _inputs(recorded, settings, tasks)
    job = open_job(options.output, kind="summaries", inputs=inputs, tasks=len(tasks))
    manifest_path = files.join(options.output, MANIFEST_FILE)
    if job is not None:
        if options.bundle or options.extractive_bundle:
            load_tensorflow("summarize")
            options = limit_search_processes(options, beam_options)
            settings = settings._replace(options=options)
        pipeline = beam.Pipeline(options=beam_options)
        provenance = job_provenance("summarize", recorded, inputs)
        build(pipeline, tasks, corpus, settings, job=job, provenance=provenance)
        size = sum(task.size_bytes for task in tasks)
        run_pipeline(pipeline, label="summarize", size=size)
        _check(files.read_json(manifest_path), corpus, job, failures)
        finish_job(job)
    return files.read_json(manifest_path)


def _inputs(
    flags: Mapping[str, Any], settings: SummarySettings, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Everything that the summaries depend on: the flags, without those that change
    none of them, and the models behind the paths of bundles.
    """
    options = settings.options
    without_effect = set(_WITHOUT_EFFECT)
    if not options.bundle:
        without_effect |= {"precision", *option_names([SearchConfig])}
    if not options.keyphrase_bundle:
        without_effect.add("keyphrases")
    model_ids = {
        name: model_id
        for name, model_id in settings.model_ids.items()
        # The settings of the search stand among the flags, in words.
        if name != "decode_id"
    }
    return {
        **{name: flags[name] for name in flags if name not in without_effect},
        "extractive": ",".join(options.methods),
        "fallback_flags": ",".join(sorted(settings.fallback.fallback_flag_names)),
        "schema_version": SCHEMA_VERSION,
        "tasks_sha256": hash_tasks(tasks),
        **model_ids,
    }


def build(
    pipeline: beam.Pipeline,
    tasks: Sequence[Task],
    corpus: CorpusOptions,
    settings: SummarySettings,
    *,
    job: Job,
    provenance: Mapping[str, Any],
) -> None:
    """Adds the job: tasks -> Parquet parts and receipts -> manifest.json."""
    worker = SummarizeWorker(corpus, settings, job)
    _ = (
        pipeline
        | "SummarizeTasks"
        >> RunTasks(tasks, worker, job=job, figures_from_json=SummaryFigures.from_json)
        | "GatherReports" >> beam.combiners.ToList()
        | "PublishManifest"
        >> beam.Map(publish_manifest, corpus, settings, job, provenance)
    )


def publish_manifest(
    reports: list[TaskReport[SummaryFigures]],
    corpus: CorpusOptions,
    settings: SummarySettings,
    job: Job,
    provenance: Mapping[str, Any],
) -> None:
    """Writes manifest.json from the reports of all tasks."""
    reports = sorted(reports, key=lambda report: report.task)
    options = settings.options
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
        **settings.model_ids,
        "extractive": list(options.methods),
        "counts": sum_counts(report.counts for report in reports),
        "failures": sum_counts(report.failures for report in reports),
        "provenance": provenance,
        **_sum_figures([report.figures for report in reports], bool(options.bundle)),
        "files": [file for report in reports for file in report.files],
        "dead_letters": [file for report in reports for file in report.dead_letters],
    }
    files.write_json(files.join(options.output, MANIFEST_FILE), manifest)


def _sum_figures(
    figures: Sequence[SummaryFigures], has_network: bool
) -> dict[str, Any]:
    """The figures of a whole run, by their names in manifest.json."""
    search = sum_counts([SearchCost().sums, *(part.search for part in figures)])
    return {
        "summary_methods": sum_counts(part.summary_methods for part in figures),
        "quality_flags": sum_counts(part.quality_flags for part in figures),
        "fallbacks": sum_counts(part.fallbacks for part in figures),
        "search": describe(search) if has_network else None,
    }


def _check(
    manifest: dict[str, Any], corpus: CorpusOptions, job: Job, failures: FailureOptions
) -> None:
    """Raises DataError where there was nothing to read or too much failed."""
    if not manifest["counts"]["read"]:
        of_split = (
            f" of the split {corpus.split!r}; check --split" if corpus.split else ""
        )
        raise DataError(f"{corpus.corpus} holds no document{of_split}")
    check_failures(
        manifest["counts"],
        manifest["failures"],
        max_failed_share=failures.max_failed_share,
        dead_letters=files.join(job.output, DEAD_LETTERS_FOLDER),
    )


def has_references(output: str, manifest: Mapping[str, Any]) -> bool:
    """Whether a document of the first file of a run has a reference summary."""
    for file in manifest["files"][:1]:
        fs, path = files.filesystem(files.join(output, file["file"]))
        with fs.open(path, "rb") as opened:
            # Threads of Arrow may outlive the command and abort it at its end.
            column = pq.ParquetFile(opened, pre_buffer=False).read(
                columns=["reference_summary"], use_threads=False
            )
            return bool(column.num_rows > column.column(0).null_count)
    return False
