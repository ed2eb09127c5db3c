"""The manifest of a run: what it is made of, and what became of every record."""

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.errors import DataError, JobError
from precis.model.inference.search_cost import SearchCost, describe
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.run.accounts import (
    SourceCounts,
    check_sources,
    sum_counts,
    sum_sources,
    total_counts,
)
from precis.pipelines.run.job import Job, write_description
from precis.pipelines.run.result_files import (
    DATA_FOLDER,
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    PublishedFile,
    listed_files,
    other_files,
)
from precis.pipelines.run.source_files import describe_sources
from precis.pipelines.summarize.run_parts import RowFigures, SummaryRun, data_files
from precis.pipelines.tables.partitions import check_partitions
from precis.pipelines.tables.schema import SCHEMA_VERSION

MANIFEST_FILE = DESCRIPTION_FILES["summaries"]
_ROWS = ("written", "reused", "duplicates")  # outcomes that are rows of the run


def write_manifest(
    summarized: Iterable[TaskReport[RowFigures]],
    copied: Iterable[TaskReport[RowFigures]],
    run: SummaryRun,
) -> None:
    """Writes the manifest from the reports of all tasks, where it is checked first.

    Args:
      summarized: the reports of the tasks that summarized.
      copied: of those that copied rows for duplicates.
      run: the run.

    Raises:
      JobError: a record of the corpus is not accounted for.
      DataError: there are too many partitions.
    """
    reports = [
        *sorted(summarized, key=lambda report: report.task),
        *sorted(copied, key=lambda report: report.task),
    ]
    figures = [report.figures for report in reports]
    sources = sum_sources(report.sources for report in reports)
    published = data_files(file for report in reports for file in report.files)
    check_sources(sources, what="the run")
    check_rows(sources, [each.rows for each in figures])
    check_parts_of_run(sources, published)
    partitioning = run.layout.partitioning
    folders = {files.sha256_json(file.get("partition")) for file in published}
    check_partitions(len(folders), partitioning.names)
    options = run.settings.options
    search = sum_counts([SearchCost().sums, *(each.search for each in figures)])
    manifest = {
        "kind": "summaries",
        "schema_version": SCHEMA_VERSION,
        "precis_version": importlib.metadata.version("precis"),
        "run_id": run.job.run_id,
        "fingerprint": run.job.fingerprint,
        "created_at": run.job.created_at.isoformat(),
        "corpus": run.corpus.corpus,
        "split": run.corpus.split,
        "bundle": options.bundle or None,
        "task_prefix": options.task_prefix,
        "extractive_bundle": options.extractive_bundle or None,
        "keyphrase_bundle": options.keyphrase_bundle or None,
        **run.settings.model_ids,
        "settings_id": run.settings.settings_id,
        "settings": run.settings.described,
        "extractive": list(options.methods),
        "counts": {
            **total_counts(sources),
            "truncated": 0,
            **sum_counts(report.counts for report in reports),
        },
        **describe_sources(run.job, sources),
        "failures": sum_counts(report.failures for report in reports),
        "provenance": run.provenance,
        "summary_methods": sum_counts(each.summary_methods for each in figures),
        "quality_flags": sum_counts(each.quality_flags for each in figures),
        "fallbacks": sum_counts(each.fallbacks for each in figures),
        "search": describe(search) if options.bundle else None,
        "partition_by": partitioning.types,
        "files": published,
        "dead_letters": [file for report in reports for file in report.dead_letters],
    }
    _remove_unlisted(run.job, manifest)
    write_description(run.job, manifest)


def _remove_unlisted(job: Job, manifest: Mapping[str, Any]) -> None:
    """Removes files of this job that are not in the manifest: a task that was killed
    before its receipt may have failed when it was tried again.
    """
    listed = {file["file"] for file in listed_files(manifest)}
    for folder in (DATA_FOLDER, DEAD_LETTERS_FOLDER):
        for name in other_files(files.join(job.output, folder), ()):
            path = files.join(folder, name)
            if path not in listed and f"-{job.run_id[:8]}-" in name:
                files.remove(files.join(job.output, path))


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


def check_parts_of_run(
    sources: SourceCounts, published: Sequence[PublishedFile]
) -> None:
    """Compares the rows in the files of the parts with those of all source files.

    Raises:
      JobError: there are more or fewer, or two parts have one name.
    """
    rows = sum(file["rows"] for file in published)
    expected = sum(counts.get(name, 0) for counts in sources.values() for name in _ROWS)
    names = {file["file"] for file in published}
    if rows != expected or len(names) < len(published):
        raise JobError(
            f"the {len(names)} files of {len(published)} parts have {rows} rows, and "
            f"the run {expected}; this is a defect of precis, please report it"
        )


def check_run(corpus: CorpusOptions, manifest: Mapping[str, Any]) -> None:
    """Raises DataError where there was nothing to read."""
    counts = manifest["counts"]
    of_split = f" of the split {corpus.split!r}; check --split" if corpus.split else ""
    if not counts["read"] - counts["other_split"] - counts["not_selected"]:
        raise DataError(f"{corpus.corpus} holds no document{of_split}")
