"""Converts elements to rows with a Beam schema, for Beam YAML and other languages.

    Arrow     string   list<struct<start: int64>>   date   timestamp
    Beam row  str      Sequence[Row(start)]         date   Timestamp

With `error_handling`, a transform has the outputs of a Beam YAML transform: `good`, and
the given name for dead letters as rows.
"""

import datetime
import functools
from collections.abc import Iterable, Mapping
from typing import Any, Optional

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection, Row
from apache_beam.typehints.arrow_type_compatibility import (
    arrow_schema_from_beam_schema,
    beam_schema_from_arrow_schema,
)
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import (
    named_fields_from_element_type,
    named_fields_from_schema,
    named_fields_to_schema,
    named_tuple_from_schema,
)
from apache_beam.typehints.typehints import DictConstraint
from apache_beam.utils.timestamp import Timestamp

from precis.model.errors import DataError, UsageError
from precis.pipelines.corpus.dead_letters import letter_values
from precis.pipelines.corpus.kept_fields import kept_column
from precis.pipelines.corpus.task import DeadLetter, KeptField
from precis.pipelines.tables.schema import GROUP_SCHEMA, SUMMARY_SCHEMA

# Types that Beam's conversion does not support.
_TIMES = {pa.date32(): datetime.date, pa.timestamp("us", tz="UTC"): Timestamp}
_LETTER_KINDS = {int: pa.int64(), bool: pa.bool_()}
_LETTER_SCHEMA = pa.schema(
    [
        pa.field(name, _LETTER_KINDS.get(kind, pa.string()))
        for name, kind in DeadLetter.__annotations__.items()
    ]
)


def row_type(schema: pa.Schema, kept: Mapping[str, Any] = {}) -> RowTypeConstraint:
    """The type of rows with the columns of a schema.

    Args:
      schema: the schema of a table.
      kept: the types of further fields, by name.
    """
    fields = []
    for field in schema:
        if field.type in _TIMES:
            fields.append((field.name, _optional(_TIMES[field.type])))
        else:
            beam_schema = beam_schema_from_arrow_schema(pa.schema([field]))
            fields += named_fields_from_schema(beam_schema)
    return RowTypeConstraint.from_fields([*fields, *kept.items()])


def _optional(kind: type) -> Any:
    """The type or None; Beam would treat `kind | None` as any value and pickle it."""
    return Optional[kind]  # noqa: UP045


def fields_of(rows: PCollection) -> dict[str, Any] | None:
    """The field types of elements with a schema, by name; None without a schema."""
    kind: Any = rows.element_type or Any
    try:
        return dict(named_fields_from_element_type(kind))
    except TypeError:
        return None


class KeptRows(DictConstraint):
    """The type of summary rows as dicts with kept fields; for Beam it is `dict[str,
    Any]`.

    Attributes:
      columns: the Arrow columns by field; None if the type is unknown.
    """

    def __init__(self, documents: Any, kept: Iterable[KeptField]) -> None:
        super().__init__(str, Any)
        known = {each.name: each for each in getattr(documents, "kept_columns", ())}
        self.columns = {
            name: kept_column(name, kind) if kind else known.get(name)
            for name, kind in kept
        }

    def bind_type_variables(self, bindings: Any) -> "KeptRows":
        """Returns itself; Beam would make another type."""
        return self


def row_schema(rows: PCollection) -> pa.Schema:
    """The Arrow schema of rows of `SummarizeDocuments` or `SummarizeGroups`, with their
    kept fields: `WriteToParquet(path, row_schema(result.rows))`.

    Raises:
      UsageError: the type of a kept field is unknown, or not possible in Arrow.
    """
    if not isinstance(rows.element_type, KeptRows):
        return table_schema(fields_of(rows))
    columns = rows.element_type.columns
    for name in columns:
        if columns[name] is None:
            raise UsageError(
                f"keep_fields {name}: the documents give no type for it; give "
                f"SummarizeDocuments a type, such as {name}:string"
            )
    return pa.schema([*SUMMARY_SCHEMA, *columns.values()], SUMMARY_SCHEMA.metadata)


def table_schema(fields: Mapping[str, Any] | None) -> pa.Schema:
    """The Arrow schema of rows of summaries or groups, with further fields.

    Args:
      fields: the field types of the rows; None for dicts.

    Raises:
      UsageError: Arrow does not have the type of a field.
    """
    fields = fields or {}
    known = GROUP_SCHEMA if {*GROUP_SCHEMA.names} <= {*fields} else SUMMARY_SCHEMA
    kept = [_column(*field) for field in fields.items() if field[0] not in known.names]
    return pa.schema([*known, *kept], known.metadata)


def _column(name: str, kind: Any) -> pa.Field:
    for column, of_time in _TIMES.items():
        if kind in (of_time, _optional(of_time)):
            return pa.field(name, column)
    try:
        schema = arrow_schema_from_beam_schema(named_fields_to_schema([(name, kind)]))
    except (NotImplementedError, ValueError) as error:
        raise UsageError(
            f"the field {name!r} of the rows is {kind}, which a column cannot hold; "
            "convert it to a text, number, date or time, or leave it out"
        ) from error
    return schema.field(name).with_nullable(True).remove_metadata()


def to_row(
    values: Mapping[str, Any], schema: pa.Schema, kept: Mapping[str, Any] = {}
) -> Row:
    """Converts a table row to a Beam row.

    Args:
      values: the values by column.
      schema: the schema of the table.
      kept: the values of further fields, which are Beam values already.
    """
    row = {field.name: _to_beam(values[field.name], field.type) for field in schema}
    return Row(**row, **kept)


def from_row(value: Any) -> Any:
    """Converts rows, dicts and their values to Arrow's form, at any depth."""
    if isinstance(value, Timestamp):
        return value.to_utc_datetime(has_tz=True)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: from_row(each) for name, each in value.items()}
    return list(map(from_row, value)) if isinstance(value, list | tuple) else value


def _to_beam(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_to_beam(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        values = (_to_beam(value[field.name], field.type) for field in kind)
        return _tuple_type(kind)(*values)
    return Timestamp.from_utc_datetime(value) if pa.types.is_timestamp(kind) else value


@functools.cache
def _tuple_type(kind: pa.StructType) -> Any:
    """A named tuple, which Arrow converts to a struct, unlike Beam's Row."""
    return named_tuple_from_schema(beam_schema_from_arrow_schema(pa.schema([*kind])))


def error_output(error_handling: Any) -> str:
    """The name of the output for dead letters; "" if there is none.

    Raises:
      UsageError: the value is not a name, or the name of the rows' output.
    """
    if not error_handling:
        return ""
    # Beam's provider `pythonPackage` passes a row.
    given = getattr(error_handling, "_asdict", lambda: error_handling)()
    match given:
        case {"output": str(name)} if len(given) == 1 and name not in ("", "good"):
            return name
    raise UsageError(
        "error_handling needs only the name of an output for dead letters, such as "
        "{output: dead_letters}, other than good, which is the output of the rows; it "
        f"is {given!r}"
    )


def with_errors(good: PCollection, letters: PCollection, name: str) -> Any:
    """Names the outputs of a transform of rows.

    Args:
      good: the rows.
      letters: the dead letters.
      name: the output for dead letters; with "", the first one fails the pipeline.
    """
    if not name:
        _ = letters | "RefuseDeadLetters" >> beam.Map(_refuse)
        return good
    rows = letters | "MakeErrors" >> beam.Map(
        lambda letter: to_row(letter_values(letter), _LETTER_SCHEMA)
    ).with_output_types(row_type(_LETTER_SCHEMA))
    return {"good": good, name: rows}


def _refuse(letter: DeadLetter) -> None:
    """Fails the pipeline.

    Raises:
      DataError: always, with the reason of the letter.
    """
    place = f"{letter.source_file} {letter.source_position}".strip()
    raise DataError(
        f"{letter.stage}/{letter.reason}: {letter.detail} (document "
        f"{letter.document_id}{place and f', {place}'}); set error_handling: {{output: "
        "NAME} to collect such records"
    )
