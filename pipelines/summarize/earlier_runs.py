"""Earlier runs, whose rows a job takes over instead of computing them again.

A row is taken over where its run had the same settings, and its content is the same;
`settings_id` and `content_sha256` say so.
"""

import bisect
import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.config import describe_differences
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import say
from precis.model.text.article import Article
from precis.pipelines.options.results import normal_path
from precis.pipelines.run.job import TASKS_FOLDER, Job, abandon_job
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    WAY_OUT,
    check_description,
    read_checksummed,
    read_run_manifest,
    write_checksummed,
)
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.part_files import read_part, read_row_groups

EARLIER_FILE = "earlier.json"
_OPEN_GROUPS = 4  # row groups that are held in memory
_KEY_COLUMNS = ("content_sha256", "reference_summary", "extractive")


class EarlierPart(NamedTuple):
    """A Parquet part of an earlier run.

    Attributes:
      path: the file.
      sha256: of its content, by the manifest.
      run_id: the run.
      partition: the columns that its folder names, with their values.
      rows: how many it has.
    """

    path: str
    sha256: str
    run_id: str
    partition: Mapping[str, Any]
    rows: int = 0


def find_earlier_runs(
    job: Job, folders: Sequence[str], settings: SummarySettings
) -> tuple[EarlierPart, ...]:
    """The parts of runs that a job may take rows from, the preferred ones first.

    They are looked for when the job begins and written down, so that the job goes on
    with the same ones after an interruption. A job that repairs its own result takes
    over what is whole of it.

    Args:
      job: the job.
      folders: the flag --reuse.
      settings: how documents are summarized.

    Raises:
      UsageError: a folder is no finished run and holds none.
      DataError: a part was damaged while the job was interrupted.
    """
    path = files.join(job.output, TASKS_FOLDER, EARLIER_FILE)
    is_resumed = files.exists(path)
    if not is_resumed:
        # The first run of a command that replaces its own result, or of a folder of
        # runs, finds none yet.
        own = normal_path(job.output)
        others = [
            name
            for name in folders
            if not f"{own}/".startswith(f"{name}/") or holds_runs(name)
        ]
        try:
            runs = find_runs(others)
        except UsageError:
            if not job.damaged:
                abandon_job(job)
            raise
        parts = [
            *_own_parts(job),
            *(part for folder in runs for part in _usable_parts(folder, settings)),
        ]
        write_checksummed(path, {"parts": [part._asdict() for part in parts]})
    content = read_checksummed(path, way_out=WAY_OUT, fields={"parts": list})
    earlier = tuple(EarlierPart(**part) for part in content["parts"])
    if is_resumed:  # Else they are checked when their keys are read.
        for part in earlier:
            check_part(part)
    return earlier


def _own_parts(job: Job) -> list[EarlierPart]:
    """The parts of a damaged result that are whole."""
    if not job.damaged or DESCRIPTION_FILES["summaries"] in job.damaged:
        return []
    manifest = read_run_manifest(files.join(job.output, DESCRIPTION_FILES["summaries"]))
    return [
        _set_aside(job, number, part)
        for number, (file, part) in enumerate(
            zip(manifest["files"], run_parts(job.output, manifest), strict=True)
        )
        if file["file"] not in job.damaged
    ]


def _set_aside(job: Job, number: int, part: EarlierPart) -> EarlierPart:
    """Moves a part of a result that is being repaired: its name is needed again."""
    path = files.join(job.output, TASKS_FOLDER, "whole", f"{number:05d}.rows")
    files.move(part.path, path)
    return part._replace(path=path)


def _usable_parts(folder: str, settings: SummarySettings) -> list[EarlierPart]:
    """The parts of a run; none where its settings differ, which is said."""
    manifest = read_run(folder)
    described = manifest.get("settings", {})
    if manifest.get("settings_id") == settings.settings_id:
        return run_parts(folder, manifest)
    differences = describe_differences(described, settings.described)
    say(
        f"precis summarize: nothing of {folder} is reused: "
        f"{differences or 'an older version of precis wrote it'}"
    )
    return []


def find_runs(folders: Sequence[str]) -> list[str]:
    """The finished runs among folders.

    A folder that holds finished runs stands for them, the latest first.

    Raises:
      UsageError: a folder is no finished run and holds none.
    """
    runs = []
    for folder in folders:
        if _is_finished(folder):
            runs.append(folder)
            continue
        within = [path for path in _entries(folder) if _is_finished(path)]
        if not within:
            raise UsageError(
                f"--reuse {folder}: it is no finished run and holds none; name the "
                "--output of an earlier `precis summarize`"
            )
        runs += sorted(within, key=_created_at, reverse=True)
    return runs


def _is_finished(folder: str) -> bool:
    return all(
        files.exists(files.join(folder, name))
        for name in (SUCCESS_FILE, DESCRIPTION_FILES["summaries"])
    )


def holds_runs(folder: str) -> bool:
    """Whether a folder is a finished run or holds some."""
    return any(map(_is_finished, (folder, *_entries(folder))))


def _entries(folder: str) -> list[str]:
    return [files.join(folder, name) for name in files.list_folder(folder)]


def _created_at(folder: str) -> str:
    return str(read_run(folder)["created_at"])


def read_run(folder: str) -> dict[str, Any]:
    """The manifest of a finished run.

    Raises:
      DataError: it is not the one that the run has written.
    """
    way_out = "repair that run by its own command, or reuse another"
    check_description(folder, "summaries", way_out=way_out, flag="--reuse")
    return read_run_manifest(files.join(folder, DESCRIPTION_FILES["summaries"]))


def run_parts(folder: str, manifest: Mapping[str, Any]) -> list[EarlierPart]:
    """The parts of a run."""
    return [
        EarlierPart(
            files.join(folder, file["file"]),
            file["sha256"],
            manifest["run_id"],
            file.get("partition", {}),
            file["rows"],
        )
        for file in manifest["files"]
    ]


class EarlierKey(NamedTuple):
    """What a document is compared with to find its row in an earlier run.

    Attributes:
      row: its place in the part.
      content_sha256: of the article.
      reference: the highlights where a summary depends on them, else None.
      offsets: tells the rows of one content apart whose offsets differ, because their
          texts differ in white space.
    """

    row: int
    content_sha256: str
    reference: str | None
    offsets: bytes


def check_part(part: EarlierPart) -> None:
    """Refuses a part that is not what its run has written.

    Raises:
      DataError: it is missing, or its checksum is another one.
    """
    if not files.exists(part.path) or files.sha256_file(part.path) != part.sha256:
        raise DataError(
            f"--reuse: {part.path} is missing or damaged: its checksum is not that of "
            "its manifest; repair that run by its own command, or reuse another"
        )


def read_part_keys(part: EarlierPart, *, uses_references: bool) -> Iterator[EarlierKey]:
    """The keys of the rows of a part, duplicates included: the offsets of a duplicate
    may be its own.

    Raises:
      DataError: the file is not what its run has written.
    """
    check_part(part)
    row = 0
    for table in read_part(part.path, _KEY_COLUMNS):
        columns = (column.to_pylist() for column in table.columns)
        for content, reference, extractive in zip(*columns, strict=True):
            used = (reference or "") if uses_references else None
            yield EarlierKey(row, content, used, _offsets_digest(extractive))
            row += 1


def _offsets_digest(extractive: Sequence[Mapping[str, int]]) -> bytes:
    offsets = [(item["start"], item["end"]) for item in extractive]
    return hashlib.blake2b(repr(offsets).encode(), digest_size=16).digest()


@contextlib.contextmanager
def _open_part(part: EarlierPart) -> Iterator[pq.ParquetFile]:
    """Opens a part whose checksum was right when its keys were read.

    Raises:
      DataError: it was damaged since then, in the block too; pages have checksums.
    """
    try:
        with files.open_read(part.path) as opened:
            yield pq.ParquetFile(
                opened, pre_buffer=False, page_checksum_verification=True
            )
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(
            f"--reuse: {part.path} cannot be read any more "
            f"({str(error).splitlines()[0]}); repair that run by its own command, or "
            "remove this --output and reuse another"
        ) from error


class EarlierRows:
    """Reads rows of the parts of earlier runs, mostly in the order of the parts."""

    def __init__(self, parts: Sequence[EarlierPart]) -> None:
        self._parts = parts
        self._groups: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()
        self._ends: dict[int, list[int]] = {}

    def read(self, part: int, row: int) -> dict[str, Any]:
        """A row as a dict, with the columns that the folder of its part names.

        Args:
          part: the number of the part.
          row: its place in the part.
        """
        ends = self._row_group_ends(part)
        group = bisect.bisect_right(ends, row)
        first = ends[group - 1] if group else 0
        (values,) = self._group(part, group).slice(row - first, 1).to_pylist()
        return {**values, **self._parts[part].partition}

    def _row_group_ends(self, part: int) -> list[int]:
        if part not in self._ends:
            with _open_part(self._parts[part]) as parquet:
                metadata = parquet.metadata
            end = 0
            self._ends[part] = []
            for group in range(metadata.num_row_groups):
                end += metadata.row_group(group).num_rows
                self._ends[part].append(end)
        return self._ends[part]

    def _group(self, part: int, group: int) -> pa.Table:
        key = (part, group)
        if key not in self._groups:
            with _open_part(self._parts[part]) as parquet:
                self._groups[key] = read_row_groups(parquet, [group])
            if len(self._groups) > _OPEN_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return self._groups[key]


def holds_for(row: Mapping[str, Any], article: Article) -> bool:
    """Whether a row is of the content of an article, and its offsets hold for the text
    as it was read, which may have other white space.
    """
    text = article.document.article
    return row["content_sha256"] == article.content_sha256 and all(
        text[item["start"] : item["end"]] == item["text"] for item in row["extractive"]
    )
