"""A finished run of `precis summarize`, as the commands read it that come behind.

    run/manifest.json                                run_id, files, ...
    run/_SUCCESS
    run/data/split=test/part-0cdf8bee-00000-of-00003.parquet

The rows are read in batches or by row groups, so that a run of any size needs little
memory. The columns of the folders of --partition_by, such as `split=test`, are columns
of the run.
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
    "run the `precis summarize` of that run again, which repairs it; `precis verify` "
    "names all that is wrong"
)


class OutputFile(NamedTuple):
    """A Parquet file of a run.

    Attributes:
      name: its path within the run.
      path: where it lies.
      rows, sha256: what the manifest says of it.
      partition: the values of the columns of its folders, as the manifest has them.
    """

    name: str
    path: str
    rows: int
    sha256: str
    partition: Mapping[str, Any]

    @property
    def is_of_groups(self) -> bool:
        """Whether its rows are of groups, and not of documents."""
        return self.name.startswith(f"{GROUPS_FOLDER}/")


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """A run whose manifest is the one that `_SUCCESS` names.

    Attributes:
      folder: where it lies.
      manifest: the content of manifest.json.
      output_files: its Parquet files.
      group_output_files: those with the rows of groups; none without --group_by.
    """

    folder: str
    manifest: Mapping[str, Any]
    output_files: Sequence[OutputFile]
    group_output_files: Sequence[OutputFile]

    @property
    def run_id(self) -> str:
        """The run."""
        return str(self.manifest["run_id"])

    @property
    def rows(self) -> int:
        """The rows of all output files."""
        return sum(output_file.rows for output_file in self.output_files)

    @property
    def files_sha256(self) -> str:
        """One checksum of all output files; runs with equal rows have the same."""
        return files.sha256_json(
            sorted(output_file.sha256 for output_file in self.output_files)
        )

    @property
    def partition_columns(self) -> list[str]:
        """The columns in the names of folders."""
        return list(self.output_files[0].partition) if self.output_files else []

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns as they are stored, the columns of the folders last."""
        if not self.output_files:
            return pa.schema([])
        output_file = self.output_files[0]
        with files.open_read(output_file.path) as file:
            rows = pq.ParquetFile(file).schema_arrow.empty_table()
        rows = with_partition(rows, output_file.partition, self._partition_types)
        return described(rows.schema.remove_metadata())

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as they are stored, in the order of the output files.

        Args:
          columns: the columns to read; all of them if None.
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
        """The rows with nested columns, a table for each row group.

        Args:
          columns: as in `output_files.read_output_file`.
          of_groups: whether the rows of groups are asked for.
        """
        for output_file in self.group_output_files if of_groups else self.output_files:
            of_file = {
                "partition": output_file.partition,
                "types": self._partition_types,
            }
            yield from read_output_file(output_file.path, columns, **of_file)

    def dead_letters(self) -> Iterator[dict[str, Any]]:
        """The dead letters in the order of their files.

        Raises:
          DataError: a file of them is damaged.
        """
        for file in self.manifest["dead_letters"]:
            self._check(file)
            yield from read_dead_letters(files.join(self.folder, file["file"]))

    def check_output_files(self) -> None:
        """Compares every output file with its size and checksum in the manifest.

        Raises:
          DataError: an output file is missing or was changed.
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
    """Reads the manifest of a finished run.

    Raises:
      UsageError: the folder holds no run.
      DataError: the run is not finished, or the manifest or _SUCCESS is damaged.
    """
    path = files.join(folder, MANIFEST_FILE)
    if not any(files.exists(p) for p in (path, files.join(folder, DATA_FOLDER))):
        reason = "does not exist"
        if files.exists(folder):
            reason = f"holds no run: {MANIFEST_FILE} is not there"
        raise UsageError(f"{folder} {reason}; give the --output of `precis summarize`")
    run = read_run(folder)
    damaged, problem = success_damage(path, run.manifest)
    if damaged:
        raise DataError(f"{files.join(folder, damaged)}: {problem}; {_WAY_OUT}")
    return run


def read_run(folder: str) -> FinishedRun:
    """Reads the manifest of a run, whether its `_SUCCESS` is there or not.

    Raises:
      DataError: the manifest is damaged or names a file outside of the run.
    """
    path = files.join(folder, MANIFEST_FILE)
    manifest = files.read_object(path, way_out=_WAY_OUT, fields=_FIELDS)
    output_files = []
    with files.naming_damage(path, way_out=_WAY_OUT):
        listed_files(path, manifest)
        for file in _listed_files(manifest):
            # The order of the columns is that of the folders.
            folders = [name.partition("=") for name in file["file"].split("/")[:-1]]
            values = {
                name: file["partition"][name] for name, sign, _ in folders if sign
            }
            output_file = (
                file["file"],
                files.join(folder, file["file"]),
                int(file["rows"]),
            )
            output_files.append(OutputFile(*output_file, file["sha256"], values))
    of_documents = [
        output_file for output_file in output_files if not output_file.is_of_groups
    ]
    of_groups = [
        output_file for output_file in output_files if output_file.is_of_groups
    ]
    return FinishedRun(folder, manifest, of_documents, of_groups)


def corpus_of_run(
    manifest: Mapping[str, Any], changes: Mapping[str, Any] = {}
) -> CorpusOptions:
    """How a run has read its corpus, but for flags that are changed.

    Raises:
      UsageError: this version does not read such a corpus.
    """
    values = {**manifest["provenance"]["flags"], **changes}
    names = option_names([CorpusOptions])
    given = {name: values[name] for name in names if name in values}
    (corpus,) = read_flags([CorpusOptions], given)
    return corpus


def _listed_files(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The output files of documents and of groups, as the manifest lists them."""
    return [*manifest["files"], *manifest.get("groups", {}).get("files", ())]


def parquet_files(source: str, *, of_groups: bool = False) -> list[str]:
    """The Parquet files of a finished run, which are whole, or of a pattern; sorted.

    Args:
      source: the folder of the run, or the pattern.
      of_groups: whether those with the rows of groups are asked for.

    Raises:
      UsageError: no such files, no run, or a run that has not finished.
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
    return sorted(output_file.path for output_file in output_files)
