"""Finds earlier runs, whose rows a job reuses.

A row is reused if the settings of its run and its content are the same, according to
`settings_id` and `content_sha256`.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.config import describe_differences
from precis.model.errors import DataError, UsageError
from precis.model.finished import SUCCESS_FILE
from precis.model.progress.stages import say
from precis.pipelines.run.job import TASKS_FOLDER, Job, clear_tasks
from precis.pipelines.run.options import normal_path
from precis.pipelines.run.result_files import (
    WAY_OUT,
    read_checksummed,
    write_checksummed,
)
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.finished_run import (
    MANIFEST_FILE,
    OutputFile,
    open_run,
    read_run,
)
from precis.pipelines.tables.output_files import read_output_file, read_row_group

EARLIER_FILE = "earlier.json"
_OPEN_GROUPS = 4  # number of row groups that are kept in memory
# The place of a row of an earlier run.
PLACE = pa.struct(dict.fromkeys(("output_file", "row_group", "row"), pa.int64()))


def find_earlier_runs(
    job: Job, folders: Sequence[str], settings: SummarySettings
) -> tuple[OutputFile, ...]:
    """Lists output files whose rows a job may reuse, in order of preference.

    The list is made when the job begins, and stored, so that an interrupted job resumes
    with the same files. A job that repairs its own result reuses its undamaged files.

    Args:
      job: the job that reuses rows.
      folders: the value of the flag --reuse.
      settings: how the job summarizes.

    Raises:
      UsageError: a folder neither is nor contains a finished run.
    """
    path = files.join(job.output, TASKS_FOLDER, EARLIER_FILE)
    if not files.exists(path):
        try:
            runs = _find_runs(folders, own=normal_path(job.output))
        except UsageError:
            if not job.damaged:
                clear_tasks(job.output)
            raise
        output_files = [
            *_kept_files(job),
            *(each for folder in runs for each in _usable_files(folder, settings)),
        ]
        write_checksummed(path, {"files": [each._asdict() for each in output_files]})
    content = read_checksummed(path, way_out=WAY_OUT, fields={"files": list})
    return tuple(OutputFile(**each) for each in content["files"])


def _kept_files(job: Job) -> list[OutputFile]:
    """The undamaged output files of a damaged result.

    They are moved, because the job writes files of the same names.
    """
    if not job.damaged or MANIFEST_FILE in job.damaged:
        return []
    kept = []
    for number, output_file in enumerate(read_run(job.output).output_files):
        if output_file.name not in job.damaged:
            path = files.join(job.output, TASKS_FOLDER, "whole", f"{number:05d}.rows")
            files.move(output_file.path, path)
            kept.append(output_file._replace(path=path))
    return kept


def _usable_files(folder: str, settings: SummarySettings) -> list[OutputFile]:
    """The output files of a run; none, with a message, if its settings differ."""
    run = open_run(folder)
    if run.manifest.get("settings_id") == settings.settings_id:
        return [*run.output_files, *run.group_output_files]
    described = run.manifest.get("settings", {})
    here = {**dict.fromkeys(described), **settings.described}
    differences = describe_differences(described, here)
    say(f"precis summarize: nothing of {folder} is reused: {differences}")
    return []


def _find_runs(folders: Sequence[str], *, own: str) -> list[str]:
    """Finds the finished runs in folders.

    A folder is a finished run itself, or contains finished runs.

    Args:
      folders: the paths of the folders.
      own: the job's output. The first run in a folder of runs finds none yet.

    Raises:
      UsageError: a folder neither is nor contains a finished run.
    """
    runs = []
    for folder in folders:
        found = [folder]
        if not _is_finished(folder):
            within = (files.join(folder, name) for name in files.list_folder(folder))
            found = sorted(filter(_is_finished, within), reverse=True)
        if not found and not f"{own}/".startswith(f"{folder}/"):
            raise UsageError(
                f"--reuse {folder}: this is not a finished run or a folder of runs; "
                "name the --output of an earlier `precis summarize`"
            )
        runs += found
    return runs


def _is_finished(folder: str) -> bool:
    names = (SUCCESS_FILE, MANIFEST_FILE)
    return all(files.exists(files.join(folder, name)) for name in names)


def placed_rows(
    output_files: Sequence[OutputFile], columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Reads the rows of output files, a table for each row group.

    The column `earlier` is the place of each row, for `EarlierRows.read`.

    Args:
      output_files: the output files of earlier runs.
      columns: the columns to read.

    Raises:
      DataError: an output file is missing, or its checksum differs.
    """
    for number, output_file in enumerate(output_files):
        if (
            not files.exists(output_file.path)
            or files.sha256_file(output_file.path) != output_file.sha256
        ):
            raise DataError(
                f"--reuse: {output_file.path} is missing or not as its manifest says; "
                "repair that run with the command that wrote it, or reuse another run"
            )
        for group, rows in enumerate(read_output_file(output_file.path, columns)):
            size = len(rows)
            place = [pa.repeat(number, size), pa.repeat(group, size)]
            place.append(pa.array(range(size), pa.int64()))
            places = pa.StructArray.from_arrays(place, fields=[*PLACE])
            yield rows.append_column("earlier", places)


class EarlierRows:
    """Reads rows from the output files of earlier runs, mostly in file order."""

    def __init__(self, output_files: Sequence[OutputFile]) -> None:
        self._output_files = output_files
        self._group = functools.lru_cache(_OPEN_GROUPS)(self._read_group)

    def read(self, output_file: int, row_group: int, row: int) -> dict[str, Any]:
        """Reads a row as a dict, without the partition columns of its file's folder.

        Args:
          output_file: the number of the output file.
          row_group: the number of the row group in the file.
          row: the number of the row in its row group.

        Raises:
          DataError: the output file was damaged after its keys were read.
        """
        (values,) = self._group(output_file, row_group).slice(row, 1).to_pylist()
        return dict(values)

    def _read_group(self, output_file: int, row_group: int) -> pa.Table:
        path = self._output_files[output_file].path
        try:
            with files.open_read(path) as opened:
                parquet = pq.ParquetFile(
                    opened, pre_buffer=False, page_checksum_verification=True
                )
                return read_row_group(parquet, row_group)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(
                f"--reuse: {path} can no longer be read "
                f"({str(error).splitlines()[0]}); repair that run with its command, "
                "or remove this --output and reuse another run"
            ) from error
