"""A finished run of `precis summarize`, as a warehouse reads it.

    run/manifest.json                                run_id, files, ...
    run/_SUCCESS
    run/data/split=test/part-0cdf8bee-00000-of-00003.parquet

The parts are read in batches, so that a run of any size needs the memory of one batch.
The columns of the folders of --partition_by, such as `split=test`, are columns of the
run.
"""

import dataclasses
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.run.result_files import check_description, listed_names, no_run
from precis.pipelines.tables.partitions import HIVE_NULL, as_scalar
from precis.pipelines.tables.schema import described

_BATCH_ROWS = 1024
_READ_AHEAD_BYTES = 4 << 20


class RunPart(NamedTuple):
    """A Parquet file of a run.

    Attributes:
      name: its path within the run.
      path: where it lies.
      rows, bytes, sha256: what the manifest says of it.
      partition: the values of the columns of its folders, as the manifest has them.
    """

    name: str
    path: str
    rows: int
    bytes: int
    sha256: str
    partition: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run whose manifest and `_SUCCESS` are there.

    Attributes:
      folder: where it lies.
      run_id, fingerprint, precis_version, schema_version: from its manifest.
      parts: its Parquet files.
      schema: the columns of all parts, those in the names of folders among them.
      flags: of the command that wrote it.
    """

    folder: str
    run_id: str
    fingerprint: str
    precis_version: str
    schema_version: int
    parts: Sequence[RunPart]
    schema: pa.Schema
    flags: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def files_sha256(self) -> str:
        """One checksum of all parts: two loads with the same one have the same rows."""
        return files.sha256_json(sorted(part.sha256 for part in self.parts))

    @property
    def partition_columns(self) -> list[str]:
        """The columns in the names of folders."""
        return list(self.parts[0].partition) if self.parts else []

    @property
    def facts(self) -> dict[str, str]:
        """What a snapshot says of the run that it holds."""
        return {
            "precis.run_id": self.run_id,
            "precis.fingerprint": self.fingerprint,
            "precis.version": self.precis_version,
            "precis.schema_version": str(self.schema_version),
            "precis.files_sha256": self.files_sha256,
        }

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of all parts in order.

        Args:
          columns: the columns to read; all of them if None.
        """
        names = list(self.schema.names if columns is None else columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        for part in self.parts:
            with files.open_read(part.path) as file:
                yield from _read(file, part, schema)

    def check_parts(self) -> None:
        """Compares every part with its size and checksum in the manifest.

        Raises:
          DataError: naming the part that differs or is not there.
        """
        for part in self.parts:
            way_out = "run the same `precis summarize` again"
            if not files.exists(part.path):
                raise DataError(
                    f"{part.path} is named in the manifest and is not there; {way_out}"
                )
            if files.sha256_file(part.path) != part.sha256:
                raise DataError(
                    f"{part.path} is not the file that the run wrote: its sha256 is "
                    f"not the one in the manifest; {way_out}"
                )


def open_run(folder: str) -> FinishedRun:
    """Reads the manifest of a run and the schemas of its parts.

    Raises:
      UsageError: the folder holds no finished run.
      DataError: the manifest or a part is damaged.
    """
    manifest_path = files.join(folder, "manifest.json")
    if not files.exists(manifest_path):
        raise no_run(folder)
    if not files.exists(files.join(folder, "_SUCCESS")):
        raise UsageError(
            f"{folder} holds a run that is not finished: _SUCCESS is not there; start "
            "the same `precis summarize` again"
        )
    way_out = "run the same `precis summarize` again, which repairs the run"
    check_description(folder, "summaries", way_out=way_out)
    try:
        manifest = files.read_json(manifest_path)
        listed_names(manifest_path, manifest)
        parts = [_part(folder, entry) for entry in manifest["files"]]
        types = {
            name: pa.type_for_alias(kind)
            for name, kind in manifest.get("partition_by", {}).items()
        }
        facts = {name: str(manifest[name]) for name in ("run_id", "precis_version")}
        fingerprint = str(manifest.get("fingerprint", manifest["run_id"]))
        schema_version = int(manifest["schema_version"])
        flags = dict(manifest.get("provenance", {}).get("flags", {}))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{manifest_path} is damaged or no manifest of a run "
            f"({type(error).__name__}: {error}); run `precis summarize` again"
        ) from error
    return FinishedRun(
        folder=folder,
        **facts,
        fingerprint=fingerprint,
        schema_version=schema_version,
        parts=parts,
        schema=described(_common_schema(parts, types)),
        flags=flags,
    )


def _part(folder: str, entry: Mapping[str, Any]) -> RunPart:
    """A part as the manifest describes it."""
    name = str(entry["file"])
    folders = _folder_values(name)
    values = entry.get("partition", folders)
    return RunPart(
        name=name,
        path=files.join(folder, name),
        rows=int(entry["rows"]),
        bytes=int(entry["bytes"]),
        sha256=str(entry["sha256"]),
        partition={column: values[column] for column in folders},
    )


def _folder_values(name: str) -> dict[str, str | None]:
    """The columns of the folders of a part, from the outermost on, with their values.

    `{"split": "test"}` for `split=test/part-00000.parquet`.
    """
    values: dict[str, str | None] = {}
    for folder in name.split("/")[:-1]:
        column, sign, value = folder.partition("=")
        if sign:
            is_null = value == HIVE_NULL
            values[column] = None if is_null else urllib.parse.unquote(value)
    return values


def _common_schema(
    parts: Sequence[RunPart], types: Mapping[str, pa.DataType]
) -> pa.Schema:
    """The schema that all parts have.

    Args:
      parts: of the run.
      types: those of the columns of its folders that are no strings.

    Raises:
      DataError: a part is no Parquet file, or has other columns than the first one.
    """
    schema = None
    for part in parts:
        try:
            with files.open_read(part.path) as file:
                metadata = pq.ParquetFile(file).metadata
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"{part.path} cannot be read: {error}; run the same `precis summarize` "
                "again"
            ) from error
        own = metadata.schema.to_arrow_schema()
        for name in part.partition:
            if name not in own.names:
                own = own.append(pa.field(name, types.get(name, pa.string())))
        if metadata.num_rows != part.rows:
            raise DataError(
                f"{part.path} has {metadata.num_rows} rows and the manifest says "
                f"{part.rows}; run the same `precis summarize` again"
            )
        if schema is not None and not own.equals(schema):
            raise DataError(
                f"{part.path} has other columns than {parts[0].path}; run the same "
                "`precis summarize` again in an empty folder"
            )
        schema = own
    return (schema or pa.schema([])).remove_metadata()


def _read(file: Any, part: RunPart, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a part as batches of the schema."""
    parquet = pq.ParquetFile(file, buffer_size=_READ_AHEAD_BYTES)
    own = [name for name in schema.names if name in parquet.schema_arrow.names]
    for batch in parquet.iter_batches(_BATCH_ROWS, columns=own):
        columns = [
            batch.column(field.name)
            if field.name in own
            else pa.repeat(
                as_scalar(part.partition[field.name], field.type), batch.num_rows
            )
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
