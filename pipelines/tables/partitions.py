"""How the rows of a run lie in its parts: columns, partitions, sizes.

    data/split=test/created_date=2026-11-22/part-1f2e3d4c-00000-of-00002.parquet

A column of the folders is not in the files. `created_date` is no column of the rows: it
is the date in UTC at which the run began, the same for all of them.
"""

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.corpus.kept_fields import kept_columns
from precis.pipelines.corpus.task import Task
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.schema import (
    SUMMARY_SCHEMA,
    summary_schema,
    without_descriptions,
)

CREATED_DATE = "created_date"
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
MAX_PARTITIONS = 10_000
# File systems allow 255 bytes for the name of a folder.
_MAX_FOLDER_BYTES = 255
# Characters beyond ASCII stay: Spark reads each %XX as a character of its own.
_QUOTED = re.compile(r"(?![A-Za-z0-9_.~-])[\x00-\x7f]")


class Partitioning(NamedTuple):
    """How the rows of a run are spread over folders.

    A partition is named by a key: the values of its row columns as JSON, dates as
    text.

    Attributes:
      columns: of the folders, from the outermost on.
      row_columns: the names of those that are columns of the rows.
      created_date: the value of that column.
    """

    columns: tuple[Any, ...] = ()
    row_columns: tuple[str, ...] = ()
    created_date: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def types(self) -> dict[str, str]:
        """The names of the columns' types, for the manifest."""
        return {column.name: str(column.type) for column in self.columns}

    def values(self, key: str) -> dict[str, Any]:
        """The values of a partition's columns, as the manifest has them."""
        row_values = dict(zip(self.row_columns, orjson.loads(key), strict=True))
        constants = {CREATED_DATE: self.created_date}
        return {name: {**constants, **row_values}[name] for name in self.names}

    def folder(self, key: str) -> str:
        """The folder of a partition, such as `split=test`; "" without columns.

        Raises:
          DataError: a value is too long for the name of a folder.
        """
        values = self.values(key)
        folders = [f"{name}={quote_value(value)}" for name, value in values.items()]
        for name, folder in zip(self.names, folders, strict=True):
            if len(folder.encode()) > _MAX_FOLDER_BYTES:
                raise DataError(
                    f"--partition_by {name}: {str(values[name])[:20]!r}... is "
                    f"too long for a folder of {_MAX_FOLDER_BYTES} bytes; partition by "
                    "another field"
                )
        return files.join(*folders) if folders else ""

    def without_columns(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the files: that of the rows without the folders' columns."""
        fields = [field for field in schema if field.name not in self.row_columns]
        return pa.schema(fields, schema.metadata)

    def split(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each partition, with its key."""
        if not self.row_columns:
            yield "[]", rows
            return
        names = list(self.row_columns)
        places = rows.select(names).append_column("_row", pa.array(range(len(rows))))
        groups = places.group_by(names, use_threads=False).aggregate([("_row", "list")])
        for group in groups.to_pylist():
            yield _key([group[name] for name in names]), rows.take(group["_row_list"])


def partitioning(
    names: Sequence[str], schema: pa.Schema, kept: Sequence[str]
) -> Partitioning:
    """Partitions by columns; `created_date` has no value yet.

    Args:
      names: of the columns, from the outermost folder on.
      schema: of the rows.
      kept: the names of the columns that travel along from the source.

    Raises:
      UsageError: a column that rows cannot be partitioned by.
    """
    known = ["split", CREATED_DATE, *kept]
    columns = []
    for name in names:
        if name not in known:
            raise UsageError(
                f"--partition_by {name}: there is no such column to partition by; "
                f"there are {', '.join(known)}, and --keep_fields adds others"
            )
        if name == CREATED_DATE:
            if CREATED_DATE in kept:
                raise UsageError(
                    f"--partition_by {name}: a field of --keep_fields has the name of "
                    "the date of the run; leave one of them out"
                )
            columns.append(pa.field(name, pa.date32()))
            continue
        field = schema.field(name)
        if not _is_possible(field.type):
            raise UsageError(
                f"--partition_by {name}: the column is {field.type}; rows are "
                "partitioned by strings, integers, dates and true or false"
            )
        columns.append(field.remove_metadata())
    return Partitioning(
        tuple(columns),
        tuple(name for name in names if name != CREATED_DATE),
    )


def _is_possible(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_string(kind)
        or types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
    )


def check_partitions(count: int, names: Sequence[str]) -> None:
    """Refuses more partitions than a warehouse takes.

    Raises:
      DataError: there are more than `MAX_PARTITIONS`.
    """
    if count > MAX_PARTITIONS:
        raise DataError(
            f"--partition_by {','.join(names)} makes more than {MAX_PARTITIONS:,} "
            "partitions, each of which is a folder with a file; partition by columns "
            "with fewer values"
        )


def _key(values: Sequence[Any]) -> str:
    """The key of a partition; orjson writes a date as text."""
    return orjson.dumps(list(values)).decode()


def quote_value(value: Any) -> str:
    """A value as it stands in the name of a folder: `a%2Fb` for `a/b`.

    As in Hive, an empty text stands there like a null: Spark refuses `section=`. The
    manifest tells them apart.
    """
    if value is None or value == "":
        return HIVE_NULL
    if isinstance(value, bool):
        return str(value).lower()
    return _QUOTED.sub(lambda found: f"%{ord(found[0]):02X}", str(value))


def as_scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value of the manifest in the type of its column."""
    if value is None:
        return pa.scalar(None, kind)
    if pa.types.is_date(kind):
        return pa.scalar(datetime.date.fromisoformat(value), kind)
    return pa.scalar(value, kind)


def with_partition(
    rows: pa.Table, partition: Mapping[str, Any], types: Mapping[str, str]
) -> pa.Table:
    """Rows with the columns that the folder of their part names, at the end.

    Args:
      rows: of a part.
      partition: the values, as in the manifest's entry of the part.
      types: of the columns, as in `partition_by` of the manifest; a column that is not
          there is a string.
    """
    for name, value in partition.items():
        if name in rows.column_names:
            continue
        kind = pa.type_for_alias(types.get(name, "string"))
        column = pa.repeat(as_scalar(value, kind), rows.num_rows)
        rows = rows.append_column(pa.field(name, kind), column)
    return rows


class PartLayout(NamedTuple):
    """How rows lie in parts.

    Attributes:
      schema: of the rows, with all columns.
      kept: the names of the columns that travel along from the source.
      partitioning: which rows share a folder.
      is_flat: whether nested columns become plain ones.
      row_group_bytes: about the size of a row group in memory.
    """

    schema: Any
    kept: tuple[str, ...] = ()
    partitioning: Partitioning = Partitioning()
    is_flat: bool = False
    row_group_bytes: int = 64 << 20

    @property
    def file_schema(self) -> pa.Schema:
        """The schema of the files."""
        schema = self.partitioning.without_columns(self.schema)
        return without_descriptions(flat_schema(schema) if self.is_flat else schema)

    def begun_at(self, moment: datetime.datetime) -> "PartLayout":
        """The layout of a run that began then, in UTC."""
        date = moment.astimezone(datetime.UTC).date().isoformat()
        return self._replace(partitioning=self.partitioning._replace(created_date=date))


def part_layout(
    tasks: Sequence[Task],
    *,
    partitions: Sequence[str],
    is_flat: bool,
    row_group_mb: int,
) -> PartLayout:
    """The layout that the flags ask for.

    Args:
      tasks: of the corpus.
      partitions: the columns whose values name folders.
      is_flat: whether nested columns become plain ones.
      row_group_mb: about the size of a row group in memory.

    Raises:
      UsageError: a kept field, a partition or a flat column that cannot be.
    """
    fields = kept_columns(tasks, taken=SUMMARY_SCHEMA.names)
    kept = tuple(field.name for field in fields)
    schema = summary_schema(fields)
    if is_flat:
        flat_schema(schema)  # refuses names that are not unique
    return PartLayout(
        schema,
        kept,
        partitioning(partitions, schema, kept),
        is_flat,
        row_group_mb << 20,
    )
