"""The output files of a run, their counts, and its manifest.

data/part-1f2e3d4c-00003.parquet          the rows of task 3
data/part-1f2e3d4c-00003-copies.parquet   those of its documents that repeat others
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
    check_file_counts,
    sum_counts,
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
_ROWS = ("written", "reused", "duplicates")  # outcomes that are rows of the run
_COUNTED = ("summary_methods", "quality_flags", "fallbacks")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummaryRun:
    """What a run is made with.

    Attributes:
      job: the job.
      corpus: what it reads.
      settings: how documents are summarized.
      layout: how its rows lie in output files.
      provenance: of the job.
      columns: those that all rows share.
      earlier: output files of earlier runs whose rows it takes over.
      deduplicates: whether equal texts are summarized once.
      unique_ids: whether two documents with one id fail it.
      groups: which groups of documents are summarized.
      earlier_groups: output files of earlier runs whose rows of groups it takes over.
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
        """Whether keys of the documents are joined before they are summarized."""
        return bool(self.earlier) or self.deduplicates or self.unique_ids


def group_settings_id(settings: SummarySettings, groups: GroupOptions) -> str:
    """Names the settings that the summary of a group depends on."""
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
      outcomes: rows by outcome and source file.
      truncated: rows whose document a network did not read to its end.
    """

    def __init__(self, run: SummaryRun, name: str, progress: TaskProgress) -> None:
        """Stores its arguments.

        Args:
          run: of the rows.
          name: of the output file among those of the run.
          progress: of the task.
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
        """Writes rows that were taken over, with these columns and others."""
        schema = self._run.layout.schema
        of_run = [{name: row[name] for name in schema.names} for row in rows]
        self.add(summary_table(of_run, schema), of_run)

    def add(self, table: pa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes a table with all columns, and counts the rows that it was made of."""
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
        """What a task reports of its rows, beside other figures by name.

        summary_methods      rows by the method of the summary that is shown
        quality_flags        rows by each of the flags of the summary that is shown
        fallbacks            rows whose abstractive summary is not shown, by each of the
                             flags that it was held back for
        flagged              rows with a quality flag
        """
        counted = {name: dict(counts) for name, counts in self._counted.items()}
        return {**counted, "flagged": self._flagged, **others}


def data_files(published: Iterable[PublishedFile]) -> list[PublishedFile]:
    """The output files among the files of a task."""
    return [file for file in published if file["file"].startswith(f"{DATA_FOLDER}/")]


def _footer(run: SummaryRun) -> dict[str, str]:
    """Facts about a run for the metadata of its Parquet files."""
    facts = {
        "run_id": run.job.run_id,
        "settings_id": run.columns["settings_id"],
        "precis_version": installed_version(),
        **{name: model or "" for name, model in run.settings.model_ids.items()},
    }
    return {f"precis.{name}": value for name, value in facts.items()}


class RunManifest(TypedDict):
    """The content of manifest.json; docs/SCHEMA.md says what the entries mean."""

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
    dead_letters: list[PublishedFile]


def write_manifest(reports: Iterable[TaskReport], run: SummaryRun) -> None:
    """Writes the manifest from the reports of all tasks, where it is checked first.

    Args:
      reports: of the tasks, those that copied rows for duplicates and those of groups
          among them.
      run: the run.

    Raises:
      JobError: a record of the corpus is not accounted for.
    """
    reports = sorted(
        reports, key=lambda each: (each.figures.get("is_copy", False), each.task)
    )

    def sums(name: str) -> dict[str, int]:
        return sum_counts(report.figures.get(name, {}) for report in reports)

    sources = sum_file_counts(report.file_counts for report in reports)
    published = data_files(file for report in reports for file in report.files)
    check_file_counts(sources, what="the run")
    check_rows(sources, published)
    groups = {}
    if run.groups.group_by:
        documents = sum(file["rows"] for file in published)
        groups["groups"] = describe_groups(reports, run, documents=documents)
    if run.groups.rows == GROUPS:
        published = []
    options = run.settings.options
    # How much of the corpus `--limit` read, from 0 to 1; 0 without it.
    shares = [report.figures.get("share", 0) for report in reports]
    search = None
    if options.bundle:
        search = describe(sum_counts([SearchCost().sums, sums("search")]))
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
            **sum_counts(report.counts for report in reports),
        },
        "sources": sources,
        "failures": sum_counts(report.failures for report in reports),
        "provenance": run.provenance,
        "summary_methods": sums("summary_methods"),
        "quality_flags": sums("quality_flags"),
        "fallbacks": sums("fallbacks"),
        "search": search,
        "limited_to_share": max(shares, default=0) or None,
        "partition_by": run.layout.partition_types,
        "files": published,
        **groups,
        "dead_letters": [file for report in reports for file in report.dead_letters],
    }
    write_description(run.job, manifest)
    # Where too many failed, the same command asks a server again.
    for report in reports:
        if count_unanswered(report.failures):
            files.remove(receipt_path(run.step, report.task))
    _remove_unlisted(run.job, manifest)


def describe_groups(
    reports: Iterable[TaskReport], run: SummaryRun, *, documents: int
) -> dict[str, Any]:
    """The entry `groups` of the manifest.

    Args:
      reports: of all tasks, those of groups among them.
      run: of the rows.
      documents: how many have a row.

    Raises:
      JobError: the groups have other members than the documents with a row.
    """
    reports = [each for each in reports if "group_members" in each.figures]
    members = sum(report.figures["group_members"] for report in reports)
    published = [file for report in reports for file in report.files]
    if members != documents:
        raise JobError(
            f"the groups have {members} members, and {documents} documents have a row; "
            "this is a defect of precis, please report it"
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
    """Removes files of this job that are not in the manifest: a task that was killed
    before its receipt may have failed when it was tried again.
    """
    path = files.join(job.output, MANIFEST_FILE)
    listed = {file["file"] for file in listed_files(path, manifest)}
    for folder in (DATA_FOLDER, GROUPS_FOLDER, DEAD_LETTERS_FOLDER):
        for name in other_files(files.join(job.output, folder), ()):
            path = files.join(folder, name)
            if path not in listed and f"-{job.run_id[:8]}-" in name:
                files.remove(files.join(job.output, path))


def check_rows(sources: FileCounts, published: Sequence[PublishedFile]) -> None:
    """Compares the rows of the output files with the documents that must have one.

    Args:
      sources: records by outcome, for each source file.
      published: the files of the output files.

    Raises:
      JobError: there are more rows or fewer, or two output files have one name.
    """
    counts = total_counts(sources)
    total = sum(counts[name] for name in _ROWS)
    stored = sum(file["rows"] for file in published)
    names = {file["file"] for file in published}
    if stored != total or len(names) < len(published):
        raise JobError(
            f"the {len(names)} files of {len(published)} parts have {stored} rows, and "
            f"the run {total}; this is a defect of precis, please report it"
        )


def check_run(corpus: CorpusOptions, manifest: Mapping[str, Any]) -> None:
    """Raises DataError where there was nothing to read."""
    counts = manifest["counts"]
    of_split = f" of the split {corpus.split!r}; check --split" if corpus.split else ""
    if not counts["read"] - counts["other_split"] - counts["not_selected"]:
        raise DataError(f"{corpus.corpus} holds no document{of_split}")
