"""Reads a finished run of `precis summarize`, for commands that use it.

    run/manifest.json                                run_id, files, ...
    run/_SUCCESS
    run/data/split=test/part-0cdf8bee-00000-of-00003.parquet

The rows are read in batches or row groups, so that runs of any size need little memory.
The folder columns of --partition_by, such as `split=test`, are columns of the run.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.finished import (
    damage_of,
    listed_files,
    success_damage,
)
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.options import option_names, read_flags
from precis.pipelines.run.result_files import (
    DATA_FOLDER,
    DESCRIPTION_FILES,
    GROUPS_FOLDER,
)
from precis.pipelines.tables.output_files import is_pattern, read_output_file
from precis.pipelines.tables.partitions import with_partition
from precis.pipelines.tables.schema import described

MANIFEST_FILE = DESCRIPTION_FILES["summaries"]
_FIELDS = {
    **dict.fromkeys(("counts", "failures"), dict),
    **dict.fromkeys(("dead_letters", "files"), list),
    **{"run_id": str, "schema_version": int},
}
_BATCH_ROWS = 1024
_READ_AHEAD_BYTES = 4 << 20
_WAY_OUT = (
    "repair the run with the `precis summarize` that wrote it; `precis verify` lists "
    "all damage"
)


class OutputFile(NamedTuple):
    """A Parquet file of a run.

    Attributes:
      name: the path within the run.
      path: the full path.
      rows, sha256: values from the manifest.
      partition: the values of the folder's columns, as in the manifest.
    """

    name: str
    path: str
    rows: int
    sha256: str
    partition: Mapping[str, Any]

    @property
    def is_of_groups(self) -> bool:
        """Whether its rows are groups, not documents."""
        return self.name.startswith(f"{GROUPS_FOLDER}/")


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """A run whose manifest has the checksum in `_SUCCESS`.

    Attributes:
      folder: the path of its folder.
      manifest: the content of manifest.json.
      output_files: its Parquet files with rows of documents.
      group_output_files: its Parquet files with rows of groups, if any.
      columns: the columns to read; empty for all.
    """

    folder: str
    manifest: Mapping[str, Any]
    output_files: Sequence[OutputFile]
    group_output_files: Sequence[OutputFile]
    columns: Sequence[str] = ()

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.manifest["run_id"])

    @property
    def rows(self) -> int:
        """The number of rows in all output files."""
        return sum(each.rows for each in self.output_files)

    @property
    def files_sha256(self) -> str:
        """A checksum of all output files, and of the columns if they are not all; runs
        with equal files have the same.
        """
        sums = sorted(each.sha256 for each in self.output_files)
        return files.sha256_json([*sums, *sorted({*self.columns})])

    @property
    def partition_columns(self) -> list[str]:
        """The columns to read that folder names contain."""
        names = self.output_files[0].partition if self.output_files else ()
        return [name for name in names if name in self.schema.names]

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns as stored, with the folder's columns last."""
        if not self.output_files:
            return pa.schema([])
        output_file = self.output_files[0]
        with files.open_read(output_file.path) as file:
            rows = pq.ParquetFile(file).schema_arrow.empty_table()
        rows = with_partition(rows, output_file.partition, self._partition_types)
        names = self.columns or rows.column_names
        fields = [field for field in rows.schema if field.name in names]
        return described(pa.schema(fields))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Reads the rows as stored, in the order of the output files.

        Args:
          columns: the columns to read; all if None.
        """
        names = list(self.schema.names if columns is None else columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        types = self._partition_types
        for output_file in self.output_files:
            with files.open_read(output_file.path) as file:
                parquet = pq.ParquetFile(file, buffer_size=_READ_AHEAD_BYTES)
                own = [name for name in names if name in parquet.schema_arrow.names]
                for batch in parquet.iter_batches(_BATCH_ROWS, columns=own):
                    stored = pa.Table.from_batches([batch])
                    rows = with_partition(stored, output_file.partition, types).select(
                        names
                    )
                    yield from pa.table(rows.columns, schema=schema).to_batches()

    def tables(
        self, columns: Sequence[str] | None = None, *, of_groups: bool = False
    ) -> Iterator[pa.Table]:
        """Reads the rows with nested columns, a table for each row group.

        Args:
          columns: the columns, as for `output_files.read_output_file`.
          of_groups: whether to read rows of groups.
        """
        for output_file in self.group_output_files if of_groups else self.output_files:
            of_file = {
                "partition": output_file.partition,
                "types": self._partition_types,
            }
            yield from read_output_file(output_file.path, columns, **of_file)

    def dead_letters(self) -> Iterator[dict[str, Any]]:
        """Reads the dead letters in the order of their files.

        Raises:
          DataError: one of the files is damaged.
        """
        for file in self.manifest["dead_letters"]:
            self._check(file)
            yield from read_dead_letters(files.join(self.folder, file["file"]))

    def check_output_files(self) -> None:
        """Checks the size and checksum of every output file against the manifest.

        Raises:
          DataError: an output file is missing or has been changed.
        """
        for file in _listed_files(self.manifest):
            self._check(file)

    def _check(self, file: Mapping[str, Any]) -> None:
        damage = damage_of(self.folder, file)
        if damage:
            path = files.join(self.folder, file["file"])
            raise DataError(f"{path}: {damage}; {_WAY_OUT}")

    @property
    def _partition_types(self) -> Mapping[str, str]:
        return self.manifest.get("partition_by") or {}


def open_run(folder: str) -> FinishedRun:
    """Opens a finished run and reads its manifest.

    Raises:
      UsageError: the folder is not a run.
      DataError: the run is not finished, or the manifest or _SUCCESS is damaged.
    """
    path = files.join(folder, MANIFEST_FILE)
    if not any(files.exists(p) for p in (path, files.join(folder, DATA_FOLDER))):
        reason = "does not exist"
        if files.exists(folder):
            reason = f"holds no run: {MANIFEST_FILE} is missing"
        raise UsageError(f"{folder} {reason}; give the --output of `precis summarize`")
    run = read_run(folder)
    damaged, problem = success_damage(path, run.manifest)
    if damaged:
        raise DataError(f"{files.join(folder, damaged)}: {problem}; {_WAY_OUT}")
    return run


def read_run(folder: str) -> FinishedRun:
    """Reads the manifest of a run, with or without `_SUCCESS`.

    Raises:
      DataError: the manifest is damaged or names a file outside the run.
    """
    path = files.join(folder, MANIFEST_FILE)
    manifest = files.read_object(path, way_out=_WAY_OUT, fields=_FIELDS)
    output_files = []
    with files.naming_damage(path, way_out=_WAY_OUT):
        listed_files(path, manifest)
        for file in _listed_files(manifest):
            # Columns are in the order of the folders.
            folders = [name.partition("=") for name in file["file"].split("/")[:-1]]
            values = {
                name: file["partition"][name] for name, sign, _ in folders if sign
            }
            place = file["file"], files.join(folder, file["file"]), int(file["rows"])
            output_files.append(OutputFile(*place, file["sha256"], values))
    of_documents = [each for each in output_files if not each.is_of_groups]
    of_groups = [each for each in output_files if each.is_of_groups]
    return FinishedRun(folder, manifest, of_documents, of_groups)


def corpus_of_run(
    manifest: Mapping[str, Any], changes: Mapping[str, Any] = {}
) -> CorpusOptions:
    """The corpus options of a run, with some flags changed.

    Raises:
      UsageError: this version cannot read the corpus.
    """
    values = {**manifest["provenance"]["flags"], **changes}
    names = option_names([CorpusOptions])
    given = {name: values[name] for name in names if name in values}
    (corpus,) = read_flags([CorpusOptions], given)
    return corpus


def _listed_files(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The output files of documents and groups that the manifest lists."""
    return [*manifest["files"], *manifest.get("groups", {}).get("files", ())]


def parquet_files(source: str, *, of_groups: bool = False) -> list[str]:
    """Lists the Parquet files of a finished, undamaged run or of a pattern, sorted.

    Args:
      source: the folder of the run, or the pattern.
      of_groups: whether to list files with rows of groups.

    Raises:
      UsageError: the files or the run do not exist, or the run has not finished.
      DataError: a file of the run is missing or damaged.
    """
    if is_pattern(source):
        paths = files.glob(source)
        if not paths:
            raise UsageError(f"no file matches {source}")
        return paths
    run = open_run(source)
    run.check_output_files()
    output_files = run.group_output_files if of_groups else run.output_files
    if not output_files:
        way_out = " of groups; run `precis summarize` with --group_by again"
        raise UsageError(f"{source} has no rows{way_out if of_groups else ''}")
    return sorted(each.path for each in output_files)
