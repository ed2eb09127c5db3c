"""The manifest of a run: what it is made of, and what became of every record."""

import importlib.metadata
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import DataError, JobError
from precis.model.inference.search_cost import SearchCost, describe
from precis.pipelines.corpus.dead_letters import check_failures
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.run.accounts import (
    SourceCounts,
    check_sources,
    sum_counts,
    sum_sources,
    total_counts,
)
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.result_files import (
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    read_run_manifest,
)
from precis.pipelines.run.source_files import describe_sources
from precis.pipelines.summarize.join_keys import JoinFigures
from precis.pipelines.summarize.publish_parts import PartFigures
from precis.pipelines.summarize.summarize_task import SummaryFigures
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.part_layout import PartLayout
from precis.pipelines.tables.schema import SCHEMA_VERSION

MANIFEST_FILE = DESCRIPTION_FILES["summaries"]
_ROWS = ("written", "reused", "duplicates")  # outcomes that are rows of the run


class RunDescription(NamedTuple):
    """What a run is made with.

    Attributes:
      corpus: what it reads.
      settings: how documents are summarized.
      provenance: of the job.
      layout: how its rows lie in parts.
    """

    corpus: CorpusOptions
    settings: SummarySettings
    provenance: Mapping[str, Any]
    layout: PartLayout


def run_footer(job: Job, description: RunDescription) -> dict[str, str]:
    """Facts about a run for the metadata of its Parquet files."""
    models = {
        name: model or "" for name, model in description.settings.model_ids.items()
    }
    facts = {
        "run_id": job.run_id,
        "settings_id": description.settings.settings_id,
        "precis_version": importlib.metadata.version("precis"),
        **models,
    }
    return {f"precis.{name}": value for name, value in facts.items()}


def write_manifest(
    published: Iterable[TaskReport[PartFigures]],
    joined: Iterable[TaskReport[JoinFigures]],
    inferred: Iterable[TaskReport[SummaryFigures]],
    job: Job,
    description: RunDescription,
) -> None:
    """Writes the manifest from the reports of all tasks, where it is checked first.

    Raises:
      JobError: a record of the corpus is not accounted for.
    """
    parts = sorted(published, key=lambda report: report.task)
    tasks = sorted(inferred, key=lambda report: report.task)
    all_reports: list[TaskReport[Any]] = [*tasks, *parts]
    sources = sum_sources(report.sources for report in all_reports)
    check_sources(sources, what="the run")
    check_rows(sources, [part.figures.rows_by_source for part in parts])
    corpus, settings = description.corpus, description.settings
    options = settings.options
    search = sum_counts(
        [SearchCost().sums, *(report.figures.search for report in tasks)]
    )
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
        "settings_id": settings.settings_id,
        "settings": settings.described,
        "extractive": list(options.methods),
        "counts": {
            **total_counts(sources),
            "truncated": 0,
            **sum_counts(report.counts for report in all_reports),
            "repeated_ids": sum(report.figures.repeated_ids for report in joined),
        },
        **describe_sources(job, sources),
        "failures": sum_counts(report.failures for report in all_reports),
        "provenance": description.provenance,
        "summary_methods": sum_counts(part.figures.summary_methods for part in parts),
        "quality_flags": sum_counts(part.figures.quality_flags for part in parts),
        "fallbacks": sum_counts(part.figures.fallbacks for part in parts),
        "search": describe(search) if options.bundle else None,
        "partition_by": description.layout.partitioning.types,
        "files": [file for part in parts for file in part.files],
        "dead_letters": [
            file for report in all_reports for file in report.dead_letters
        ],
    }
    files.write_json(_pending_path(job), manifest)


def _pending_path(job: Job) -> str:
    return files.join(job.output, TASKS_FOLDER, MANIFEST_FILE)


def publish_manifest(job: Job) -> None:
    """Puts the manifest in its place; the result that it replaces is there till then.

    A manifest that _SUCCESS does not name would seem to be damaged, so the result is
    not finished from here until `finish_job` has ended.
    """
    content = files.read_bytes(_pending_path(job))
    files.remove(files.join(job.output, SUCCESS_FILE))
    files.write_bytes(files.join(job.output, MANIFEST_FILE), content)


def check_rows(sources: SourceCounts, written: Iterable[Mapping[str, int]]) -> None:
    """Compares the rows of the parts with the documents that must have one.

    Args:
      sources: records by outcome, for each source file.
      written: rows by source file, for each part.

    Raises:
      JobError: a source file has more rows or fewer.
    """
    rows = sum_counts(written)
    for source, counts in sources.items():
        expected = sum(counts.get(name, 0) for name in _ROWS)
        if rows.get(source, 0) != expected:
            raise JobError(
                f"the parts have {rows.get(source, 0)} rows of {source}, which must "
                f"have {expected}; this is a defect of precis, please report it"
            )


def check_run(job: Job, corpus: CorpusOptions, failures: FailureOptions) -> None:
    """Raises DataError where there was nothing to read or too much failed."""
    manifest = read_run_manifest(_pending_path(job))
    counts = manifest["counts"]
    of_split = f" of the split {corpus.split!r}; check --split" if corpus.split else ""
    if not counts["read"] - counts["other_split"] - counts["not_selected"]:
        raise DataError(f"{corpus.corpus} holds no document{of_split}")
    check_failures(
        counts,
        manifest["failures"],
        allowed=failures,
        dead_letters=files.join(job.output, DEAD_LETTERS_FOLDER),
    )
