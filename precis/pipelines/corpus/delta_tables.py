"""`delta:FOLDER[@VERSION]`: the rows of one version of a Delta table.

The table's log names the Parquet files of the version when the corpus is listed. The
tasks are tasks of `parquet:`, so that workers do not need deltalake, and read these
files, whatever is written to the table meanwhile. Columns that a file lacks are null.
"""

from typing import NoReturn

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from precis.model import files
from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.pipelines.corpus import listing, parquet, records
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import Task


def list_tasks(where: str, options: CorpusOptions) -> list[Task]:
    """Groups the row groups of a version's files into tasks.

    Raises:
      UsageError: there is no such table or version, a file is missing, a field is
          missing, or the Parquet files alone do not hold the rows.
    """
    # As in the addresses of `precis load`.
    place, _, version = where.removeprefix("//").rpartition("@")
    if not place or not version.isdecimal():
        place, version = where.removeprefix("//"), ""
    place = listing.absolute_path(place) if files.is_local(place) else place
    table = _open(place, version)
    where = f"delta:{place}@{table.version()}"
    if not version:
        say(f"precis: note: the corpus is {where}, the newest version of the table")
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        _refuse(where, "its columns have other names in its files (column mapping)")
    if any(batch.num_rows for batch in table.deletion_vectors()):
        _refuse(where, "deleted rows are still in its files (deletion vectors)")
    table_files = listing.named_files(table.file_uris())
    for file in table_files:
        if file.problem:
            raise UsageError(
                f"{where}: {file.path} cannot be read ({file.detail}); restore it, or "
                "name a version whose files are all there"
            )
        folders = records.folder_values(file.path)
        for name in table.metadata().partition_columns:
            if name not in folders:
                _refuse(where, f"{file.path} has no folder {name}=... of its partition")
    tasks = parquet.list_tasks(table_files, options, pa.schema(table.schema()))
    return [task._replace(scheme=task.scheme or "parquet") for task in tasks]


def _open(place: str, version: str) -> DeltaTable:
    try:
        return DeltaTable(place, version=int(version) if version else None)
    except (DeltaError, OSError) as error:
        raise UsageError(
            f"delta:{place}{f'@{version}' if version else ''} cannot be opened "
            f"({str(error).splitlines()[0]}); write delta:FOLDER or "
            "delta:FOLDER@VERSION, with the folder that holds _delta_log"
        ) from error


def _refuse(where: str, reason: str) -> NoReturn:
    raise UsageError(
        f"{where} cannot be read file by file: {reason}; write its rows to another "
        "folder, as with CREATE TABLE ... AS SELECT, or run REORG TABLE ... APPLY "
        "(PURGE) if only rows were deleted"
    )
