"""How the rows of a run are stored in output files: columns, partitions, sizes.

    data/split=test/section=sport/part-1f2e3d4c-00000-of-00002.parquet

Columns in folder names are not in the files.
"""

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.corpus.kept_fields import kept_columns
from precis.pipelines.corpus.records import HIVE_NULL
from precis.pipelines.corpus.task import Task
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_schema

# Quoted as by Hive and Spark; Spark reads each %XX beyond ASCII as one character.
_QUOTED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


class OutputLayout(NamedTuple):
    """How rows are stored in output files.

    The key of a partition is the JSON of its columns' values, with dates as text.

    Attributes:
      schema: the schema of the rows, with all columns.
      kept: the names of the kept fields of the corpus.
      partition_columns: the columns of the folders, from the outermost.
      is_flat: whether nested columns become plain columns.
      row_group_bytes: the approximate size of a row group in memory.
    """

    schema: Any
    kept: tuple[str, ...] = ()
    partition_columns: tuple[Any, ...] = ()
    is_flat: bool = False
    row_group_bytes: int = 64 << 20

    @property
    def partition_types(self) -> dict[str, str]:
        """The type names of the folder's columns, for the manifest."""
        return {column.name: str(column.type) for column in self.partition_columns}

    @property
    def file_schema(self) -> pa.Schema:
        """The schema of the files: the schema of the rows without the folders' columns
        and without descriptions, which would be a third of the footer.
        """
        others = self.partition_types
        fields = [field for field in self.schema if field.name not in others]
        plain = [field.remove_metadata() for field in fields]
        schema = pa.schema(plain, self.schema.metadata)
        return flat_schema(schema) if self.is_flat else schema

    def values(self, key: str) -> dict[str, Any]:
        """The values of a partition's columns, as in the manifest."""
        return dict(zip(self.partition_types, orjson.loads(key), strict=True))

    def folder(self, key: str) -> str:
        """The folder of a partition, such as `split=test`; "" without columns."""
        values = self.values(key).items()
        return "/".join(f"{name}={quote_value(value)}" for name, value in values)

    def split(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Splits rows into partitions, each with its key."""
        names = list(self.partition_types)
        if not names:
            yield "[]", rows
            return
        places = rows.select(names).append_column("_row", pa.array(range(len(rows))))
        groups = places.group_by(names, use_threads=False).aggregate([("_row", "list")])
        for group in groups.to_pylist():
            # orjson writes dates as text.
            key = orjson.dumps([group[name] for name in names]).decode()
            yield key, rows.take(group["_row_list"])


def output_layout(
    tasks: Sequence[Task], *, partitions: Sequence[str], is_flat: bool
) -> OutputLayout:
    """The layout that the flags define.

    Args:
      tasks: the tasks of the corpus.
      partitions: the columns whose values become folder names, from the outermost.
      is_flat: whether nested columns become plain columns.

    Raises:
      UsageError: a kept field, partition or flat column is not possible.
    """
    fields = kept_columns(tasks, taken=SUMMARY_SCHEMA.names)
    kept = tuple(field.name for field in fields)
    schema = summary_schema(fields)
    if is_flat:
        flat_schema(schema)  # refuses duplicate names
    known = {field.name: field for field in (schema.field("split"), *fields)}
    for name in partitions:
        given = f"--partition_by {name}"
        if name not in known:
            raise UsageError(
                f"{given}: no such column; possible are {', '.join(known)}, and "
                "--keep_fields adds others"
            )
        kind = known[name].type
        tests = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
        if not any(test(kind) for test in (*tests, pa.types.is_date32)):
            raise UsageError(
                f"{given}: the column is {kind}; name a column of strings, integers, "
                "dates or booleans"
            )
    columns = tuple(known[name].remove_metadata() for name in partitions)
    return OutputLayout(schema, kept, columns, is_flat=is_flat)


def quote_value(value: Any) -> str:
    """Quotes a value for a folder name: `a%2Fb` for `a/b`.

    As in Hive, an empty text is written like a null, because Spark refuses `section=`.
    The manifest distinguishes them.
    """
    if value is None or value == "":
        return HIVE_NULL
    if isinstance(value, bool):
        return str(value).lower()
    return _QUOTED.sub(lambda found: f"%{ord(found[0]):02X}", str(value))


def with_partition(
    rows: pa.Table, partition: Mapping[str, Any], types: Mapping[str, str]
) -> pa.Table:
    """Appends the columns that the folder of an output file defines.

    Args:
      rows: the rows of an output file.
      partition: the values, as in the file's manifest entry.
      types: the column types, as in `partition_by` of the manifest; a column that is
          not there is a string.
    """
    for name, value in partition.items():
        if name not in rows.column_names:
            kind = pa.type_for_alias(types.get(name, "string"))
            if value is not None and pa.types.is_date(kind):
                value = datetime.date.fromisoformat(value)
            column = pa.repeat(pa.scalar(value, kind), rows.num_rows)
            rows = rows.append_column(pa.field(name, kind), column)
    return rows
