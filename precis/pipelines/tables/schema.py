"""The Arrow schemas of the Parquet tables, and strict conversion of rows.

    summaries      a row per document, from `precis summarize`
    groups         a row per group of documents, with --group_by
    scores         a row per summary with a reference, from `precis evaluate`

docs/SCHEMA.md describes them, and the dead letters of every job.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from precis.model import rouge
from precis.model.errors import DataError
from precis.pipelines.tables.columns import (
    GROUP_COLUMNS,
    SCORES_COLUMNS,
    SUMMARY_COLUMNS,
)
from precis.pipelines.tables.flat_columns import flat_schema

SCHEMA_VERSION = 9

GROUP_SCHEMA_VERSION = 1


def _facts(schema: str, version: int) -> dict[str, str]:
    """Metadata of a file about its schema."""
    return {"precis.schema": schema, "precis.schema_version": str(version)}


SUMMARY_SCHEMA = pa.schema(SUMMARY_COLUMNS, _facts("summary", SCHEMA_VERSION))
GROUP_SCHEMA = pa.schema(GROUP_COLUMNS, _facts("group", GROUP_SCHEMA_VERSION))
SCORES_SCHEMA = pa.schema(
    SCORES_COLUMNS,
    {**_facts("scores", 4), "precis.variant": rouge.describe(rouge.VARIANTS)},
)
# The scores of groups, with a group id instead of a document id.
GROUP_SCORES_SCHEMA = SCORES_SCHEMA.set(0, GROUP_SCHEMA.field("group_id"))


def summary_schema(kept: Iterable[pa.Field] = ()) -> pa.Schema:
    """The schema of the summaries of a corpus.

    Args:
      kept: the columns of kept fields of the corpus.
    """
    return pa.schema([*SUMMARY_SCHEMA, *kept], metadata=SUMMARY_SCHEMA.metadata)


def described(schema: pa.Schema) -> pa.Schema:
    """Adds to a schema of output files the descriptions of its columns, which the files
    do not contain.
    """
    known = {
        field.name: field for field in (*flat_schema(SUMMARY_SCHEMA), *SUMMARY_SCHEMA)
    }
    fields = []
    for field in schema:
        documented = known.get(field.name, field)
        if documented.type == field.type:
            field = documented.with_nullable(field.nullable)
        fields.append(field)
    return pa.schema(fields, schema.metadata)


def summary_table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SUMMARY_SCHEMA
) -> pa.Table:
    """Converts summary rows to an Arrow table.

    Args:
      rows: rows with all columns of the schema.
      schema: the schema of the table.

    Raises:
      DataError: a column is unknown or missing, a value has the wrong type, or a null
          is in a column that is not nullable. The message names the column.
      FloatingPointError: a computed number is NaN or infinite. A kept field of the
          corpus may be NaN.
    """
    names = {*schema.names}
    for number, row in enumerate(rows):
        if other := sorted(row.keys() ^ names):
            known = f"not in the schema; known: {', '.join(schema.names)}"
            fault = "missing" if other[0] in schema.names else known
            raise DataError(f"row {number}: column {other[0]!r} is {fault}")
    columns = [_array([row[field.name] for row in rows], field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        array = pa.array(values, type=field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(
            f"column {field.name!r} is not {field.type}: {error}"
        ) from error
    is_computed = field.name in SUMMARY_SCHEMA.names
    for name, within, is_nullable in _arrays_within(array, field, field.name):
        if within.null_count and not is_nullable:
            raise DataError(
                f"column {name!r} is null in at least one row, "
                "which the schema does not allow"
            )
        if is_computed and pa.types.is_floating(within.type):
            if not pc.all(pc.is_finite(within.drop_null()), min_count=0).as_py():  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
                raise FloatingPointError(
                    f"column {name!r} holds a number that is not finite"
                )
    return array


def _arrays_within(
    array: pa.Array, field: pa.Field, name: str
) -> Iterator[tuple[str, pa.Array, bool]]:
    """Yields an array and those in it, by name, and whether each may hold nulls."""
    yield name, array, field.nullable
    if pa.types.is_list(field.type):
        item = field.type.value_field
        yield from _arrays_within(array.flatten(), item, f"{name}[]")
    elif pa.types.is_struct(field.type):
        structs = array.drop_null()
        for child in field.type:
            yield from _arrays_within(
                structs.field(child.name), child, f"{name}.{child.name}"
            )
