"""Rows of a window -> an Arrow table, in which a wrong row costs only itself."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from precis.model.errors import JobError, UsageError
from precis.model.isolation import Failure, NotFiniteError, isolate
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

WRITE = "write"
# The columns that hold computed numbers. A field that is kept from the source may be
# NaN there.
_COMPUTED = (
    "extractive",
    "extractive_quality",
    "abstractive",
    "abstractive_quality",
    "other_quality",
    "reference_quality",
    "keyphrases",
)


def isolated_table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SUMMARY_SCHEMA
) -> tuple[pa.Table, list[Failure | None]]:
    """Converts rows that fit the schema and hold finite numbers.

    Returns:
      The table of the rows that can be written; and of each row the failure, or None.
    """
    tables: list[pa.Table] = []

    def convert(group: Sequence[Mapping[str, Any]]) -> list[None]:
        table = summary_table(group, schema)
        check_finite(table)
        tables.append(table)  # Reached in the order of the rows.
        return [None] * len(group)

    # Here a DataError concerns a row: its values do not fit the schema.
    stops = (UsageError, JobError, OSError)
    failures = isolate(rows, convert, stage=WRITE, stops=stops)
    if len(tables) == 1:
        return tables[0], failures
    table = pa.concat_tables([summary_table([], schema), *tables])
    return table.combine_chunks(), failures


def check_finite(table: pa.Table) -> None:
    """Refuses rows with a computed number that is NaN or infinite.

    Raises:
      NotFiniteError: there is one.
    """
    for name in _COMPUTED:
        for chunk in table.column(name).chunks:
            for within, values in _floats(chunk, name):
                if not pc.all(pc.is_finite(values), min_count=0).as_py():
                    raise NotFiniteError(
                        f"column {within!r} holds a number that is not finite"
                    )


def _floats(array: pa.Array, name: str) -> Iterator[tuple[str, pa.Array]]:
    """The arrays of floating-point numbers in nested lists and structs."""
    kind = array.type
    if pa.types.is_list(kind):
        yield from _floats(array.flatten(), f"{name}[]")
    elif pa.types.is_struct(kind):
        for number, field in enumerate(kind):
            yield from _floats(array.field(number), f"{name}.{field.name}")
    elif pa.types.is_floating(kind):
        yield name, array.drop_null()
