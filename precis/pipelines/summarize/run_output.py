"""Writes the output files of a run, counts their rows and writes the manifest.

data/part-1f2e3d4c-00003.parquet          the rows of task 3
data/part-1f2e3d4c-00003-copies.parquet   the rows of its duplicate documents
groups/part-1f2e3d4c-00000.parquet        the rows of groups, with --group_by
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pyarrow as pa

from precis.model import files
from precis.model.config import flag_info, installed_version
from precis.model.errors import DataError, JobError
from precis.model.finished import listed_files
from precis.model.inference.search_cost import SearchCost, describe
from precis.model.quality.flags import ABSTRACTIVE, SOURCE, rejects
from precis.pipelines.corpus.dead_letters import count_unanswered
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.engines.tasks import Step, TaskReport, receipt_path
from precis.pipelines.run.accounts import (
    FileCounts,
    add_counts,
    check_file_counts,
    sum_file_counts,
    total_counts,
)
from precis.pipelines.run.job import Job, write_description
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import (
    DATA_FOLDER,
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    GROUPS_FOLDER,
    TASKS_FOLDER,
    PublishedFile,
    other_files,
)
from precis.pipelines.summarize.options import GROUPS, GroupOptions
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.finished_run import OutputFile
from precis.pipelines.tables.output_writing import OutputWriter
from precis.pipelines.tables.partitions import OutputLayout
from precis.pipelines.tables.schema import (
    GROUP_SCHEMA_VERSION,
    SCHEMA_VERSION,
    summary_table,
)

MANIFEST_FILE = DESCRIPTION_FILES["summaries"]
# The folder of an unfinished run for the files of its batches.
BATCHES = files.join(TASKS_FOLDER, "batches")
_ROWS = ("written", "reused", "duplicates")  # outcomes that give a row
_COUNTED = ("summary_methods", "quality_flags", "fallbacks")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummaryRun:
    """Everything that the tasks of a run need.

    Attributes:
      job: the job of the run.
      corpus: the options of the corpus.
      settings: how documents are summarized.
      layout: how rows are written to output files.
      provenance: the provenance of the job.
      columns: the columns that all rows share.
      earlier: output files of earlier runs whose rows can be reused.
      deduplicates: whether equal texts are summarized only once.
      unique_ids: whether the run fails if two documents have the same id.
      groups: the options of groups of documents.
      earlier_groups: output files of earlier runs whose rows of groups can be reused.
    """

    job: Job
    corpus: CorpusOptions
    settings: SummarySettings
    layout: OutputLayout
    provenance: Mapping[str, Any]
    columns: Mapping[str, Any]
    earlier: tuple[OutputFile, ...] = ()
    deduplicates: bool = False
    unique_ids: bool = False
    groups: GroupOptions = GroupOptions()
    earlier_groups: tuple[OutputFile, ...] = ()

    @property
    def step(self) -> Step:
        """The step that summarizes."""
        return Step(self.job, "summarize")

    @property
    def has_keys(self) -> bool:
        """Whether a join of document keys comes before the summaries."""
        return bool(self.earlier) or self.deduplicates or self.unique_ids


def group_settings_id(settings: SummarySettings, groups: GroupOptions) -> str:
    """The hash of the settings that the summary of a group depends on."""
    of_groups = {
        field.name: getattr(groups, field.name)
        for field in dataclasses.fields(groups)
        if flag_info(field).affects == GROUPS
    }
    of_groups["group_schema_version"] = GROUP_SCHEMA_VERSION
    return files.sha256_json({**settings.described, **of_groups})[:16]


class RowWriter(OutputWriter):
    """Writes the rows of a task, and counts them.

    Attributes:
      outcomes: the number of rows by outcome and source file.
      truncated: the number of rows whose document a network did not read to its end.
    """

    def __init__(self, run: SummaryRun, name: str, progress: TaskProgress) -> None:
        """Stores its arguments.

        Args:
          run: the run that the rows belong to.
          name: the end of the file's name, such as `00003` or `00003-copies`.
          progress: the progress of the task.
        """
        file = f"part-{run.job.run_id[:8]}-{name}.parquet"
        super().__init__(run.job.output, file, run.layout, _footer(run))
        self.outcomes = {name: Counter[str]() for name in _ROWS}
        self.truncated = 0
        self._run = run
        self._progress = progress
        self._counted = {name: Counter[str]() for name in _COUNTED}
        self._flagged = 0

    def add_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes reused rows, which have these columns and others."""
        schema = self._run.layout.schema
        of_run = [{name: row[name] for name in schema.names} for row in rows]
        self.add(summary_table(of_run, schema), of_run)

    def add(self, table: pa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes a table with all columns, and counts the rows it was made from."""
        self.write(table)
        for row in rows:
            self._count(row)

    def _count(self, row: Mapping[str, Any]) -> None:
        method, flags = row["summary_method"], row["quality_flags"]
        outcome = "reused" if row["reused_from"] is not None else "written"
        if row["duplicate_of"] is not None:
            outcome = "duplicates"
        self.outcomes[outcome][row["source_file"]] += 1
        self.truncated += bool(row["truncated"])
        self._flagged += bool(flags)
        self._progress.add("flagged", bool(flags))
        self._counted["summary_methods"][method] += 1
        self._counted["quality_flags"].update(flags)
        quality = row["abstractive_quality"]
        if quality and method not in (ABSTRACTIVE, SOURCE):
            fallback = self._run.settings.fallback
            held_back = (flag for flag in quality["flags"] if rejects(flag, fallback))
            self._counted["fallbacks"].update(held_back)

    def figures(self, **others: Any) -> dict[str, Any]:
        """The figures that a task reports on its rows, and other figures by name.

        summary_methods      rows by the method of the summary that is shown
        quality_flags        rows by quality flag of the summary that is shown
        fallbacks            rows whose abstractive summary is not shown, by the quality
                             flag that rejected it
        flagged              rows with a quality flag
        """
        counted = {name: dict(counts) for name, counts in self._counted.items()}
        return {**counted, "flagged": self._flagged, **others}


def data_files(published: Iterable[PublishedFile]) -> list[PublishedFile]:
    """The output files among the files of a task."""
    return [file for file in published if file["file"].startswith(f"{DATA_FOLDER}/")]


def _footer(run: SummaryRun) -> dict[str, str]:
    """Metadata about a run for its Parquet files."""
    facts = {
        "run_id": run.job.run_id,
        "settings_id": run.columns["settings_id"],
        "precis_version": installed_version(),
        **{name: model or "" for name, model in run.settings.model_ids.items()},
    }
    return {f"precis.{name}": value for name, value in facts.items()}


class RunManifest(TypedDict):
    """The content of manifest.json; docs/SCHEMA.md explains the entries."""

    kind: str
    schema_version: int
    precis_version: str
    run_id: str
    fingerprint: str
    created_at: str
    corpus: str
    split: str
    bundle: str | None
    task_prefix: str
    extractive_bundle: str | None
    keyphrase_bundle: str | None
    checker: str | None
    model_id: str | None
    decode_id: str | None
    extractive_model_id: str | None
    keyphrase_model_id: str | None
    checker_model_id: str | None
    settings_id: str
    settings: dict[str, Any]
    extractive: list[str]
    counts: dict[str, int]
    sources: dict[str, dict[str, int]]
    failures: dict[str, int]
    provenance: dict[str, Any]
    summary_methods: dict[str, int]
    quality_flags: dict[str, int]
    fallbacks: dict[str, int]
    search: dict[str, Any] | None
    limited_to_share: float | None
    partition_by: dict[str, str]
    files: list[PublishedFile]
    groups: NotRequired[dict[str, Any]]
    batches: NotRequired[list[str]]
    dead_letters: list[PublishedFile]


def write_manifest(reports: Iterable[TaskReport], run: SummaryRun) -> None:
    """Writes the manifest from the reports of all tasks, to be checked later.

    Args:
      reports: the reports of all tasks, including copies of duplicates and groups.
      run: the run.

    Raises:
      JobError: the outcomes of the records do not add up.
    """
    reports = sorted(
        reports, key=lambda each: (each.figures.get("is_copy", False), each.task)
    )

    def sums(name: str) -> dict[str, int]:
        return add_counts(report.figures.get(name, {}) for report in reports)

    sources = sum_file_counts(report.file_counts for report in reports)
    published = data_files(file for report in reports for file in report.files)
    check_file_counts(sources, what="the run")
    check_rows(sources, published)
    groups = {}
    if run.groups.group_by:
        documents = sum(file["rows"] for file in published)
        groups["groups"] = describe_groups(reports, run, documents=documents)
    batches = {}
    if run.settings.options.is_batch:
        from precis.model.inference.batch_client import batch_ids

        batches["batches"] = batch_ids(files.join(run.job.output, BATCHES))
    if run.groups.rows == GROUPS:
        published = []
    options = run.settings.options
    # The share of the corpus that `--limit` read, from 0 to 1; 0 without it.
    shares = [report.figures.get("share", 0) for report in reports]
    search = None
    if options.bundle:
        search = describe(add_counts([SearchCost().sums, sums("search")]))
    manifest = {
        "kind": "summaries",
        "schema_version": SCHEMA_VERSION,
        "precis_version": installed_version(),
        "run_id": run.job.run_id,
        "fingerprint": run.job.fingerprint,
        "created_at": run.job.created_at.isoformat(),
        "corpus": run.corpus.corpus,
        "split": run.corpus.split,
        "bundle": options.bundle or None,
        "task_prefix": options.task_prefix,
        "extractive_bundle": options.selector or None,
        "keyphrase_bundle": options.keyphrase_bundle or None,
        "checker": options.checker or None,
        **run.settings.model_ids,
        "settings_id": run.settings.settings_id,
        "settings": run.settings.described,
        "extractive": list(options.methods),
        "counts": {
            **total_counts(sources),
            "truncated": 0,
            **add_counts(report.counts for report in reports),
        },
        "sources": sources,
        "failures": add_counts(report.failures for report in reports),
        "provenance": run.provenance,
        "summary_methods": sums("summary_methods"),
        "quality_flags": sums("quality_flags"),
        "fallbacks": sums("fallbacks"),
        "search": search,
        "limited_to_share": max(shares, default=0) or None,
        "partition_by": run.layout.partition_types,
        "files": published,
        **groups,
        **batches,
        "dead_letters": [file for report in reports for file in report.dead_letters],
    }
    write_description(run.job, manifest)
    # If too many records failed, the same command asks a server again.
    for report in reports:
        if count_unanswered(report.failures):
            files.remove(receipt_path(run.step, report.task))
    _remove_unlisted(run.job, manifest)


def describe_groups(
    reports: Iterable[TaskReport], run: SummaryRun, *, documents: int
) -> dict[str, Any]:
    """The entry `groups` of the manifest.

    Args:
      reports: the reports of all tasks, including groups.
      run: the run that the rows belong to.
      documents: the number of documents with a row.

    Raises:
      JobError: the documents of the groups differ from the documents with a row.
    """
    reports = [each for each in reports if "group_members" in each.figures]
    members = sum(report.figures["group_members"] for report in reports)
    published = [file for report in reports for file in report.files]
    if members != documents:
        raise JobError(
            f"the groups have {members} members, but {documents} documents have a row; "
            "this is a bug of precis, please report it"
        )
    return {
        "group_by": run.groups.group_by,
        "rows": run.groups.rows,
        "settings_id": group_settings_id(run.settings, run.groups),
        "schema_version": GROUP_SCHEMA_VERSION,
        "counts": {
            "groups": sum(file["rows"] for file in published),
            "members": members,
        },
        "files": published,
    }


def _remove_unlisted(job: Job, manifest: Mapping[str, Any]) -> None:
    """Removes this job's files that are not in the manifest: a task killed before its
    receipt may have failed in its second run.
    """
    path = files.join(job.output, MANIFEST_FILE)
    listed = {file["file"] for file in listed_files(path, manifest)}
    for folder in (DATA_FOLDER, GROUPS_FOLDER, DEAD_LETTERS_FOLDER):
        for name in other_files(files.join(job.output, folder), ()):
            path = files.join(folder, name)
            if path not in listed and f"-{job.run_id[:8]}-" in name:
                files.remove(files.join(job.output, path))


def check_rows(sources: FileCounts, published: Sequence[PublishedFile]) -> None:
    """Checks that the output files have a row for each document that needs one.

    Args:
      sources: the number of records by outcome, for each source file.
      published: the output files.

    Raises:
      JobError: the number of rows is wrong, or two output files have the same name.
    """
    counts = total_counts(sources)
    total = sum(counts[name] for name in _ROWS)
    stored = sum(file["rows"] for file in published)
    names = {file["file"] for file in published}
    if stored != total or len(names) < len(published):
        raise JobError(
            f"the {len(names)} files of {len(published)} output files have {stored} "
            f"rows, but the run {total}; this is a bug of precis, please report it"
        )


def check_run(corpus: CorpusOptions, manifest: Mapping[str, Any]) -> None:
    """Raises DataError if there was nothing to read."""
    counts = manifest["counts"]
    of_split = f" of the split {corpus.split!r}; check --split" if corpus.split else ""
    if not counts["read"] - counts["other_split"] - counts["not_selected"]:
        raise DataError(f"{corpus.corpus} holds no documents{of_split}")
