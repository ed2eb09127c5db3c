"""The Arrow schemas of the Parquet tables, strict conversion of rows, and the writer.

    summaries      a row per document, by `precis summarize`
    scores         a row per summary with a reference, by `precis evaluate`
    dead letters   a row per record or document that failed, by every job

`python -m precis.pipelines.tables.schema > docs/SCHEMA.md` writes the page about them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files, rouge
from precis.model.errors import DataError
from precis.model.quality.flags import FLAGS
from precis.pipelines.tables.columns import SUMMARY_COLUMNS
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.result_columns import DEAD_LETTER_COLUMNS, SCORES_COLUMNS

SCHEMA_VERSION = 5

SUMMARY_SCHEMA = pa.schema(
    SUMMARY_COLUMNS,
    metadata={"precis.schema": "summary", "precis.schema_version": str(SCHEMA_VERSION)},
)

SCORES_SCHEMA = pa.schema(
    SCORES_COLUMNS,
    metadata={
        "precis.schema": "scores",
        "precis.schema_version": "2",
        "precis.variant": rouge.VARIANT,
    },
)

DEAD_LETTER_SCHEMA = pa.schema(DEAD_LETTER_COLUMNS)

# For docs/SCHEMA.md.
_LAYOUT = (
    "Each row group of `data/` is sorted by `document_id`, `source_file` and "
    "`source_position`. "
    "Pages have checksums, an index, and statistics of all columns but summaries and "
    "lists. The footer has `precis.run_id`, "
    "`precis.schema_version`, `precis.settings_id`, `precis.precis_version` and the "
    "fingerprints of the models; the descriptions above are not in the files.",
    "",
    "With `--partition_by split,created_date` the parts lie in folders as in Hive, "
    "`data/split=test/created_date=2026-11-22/`, and do not hold these columns; "
    "`created_date` is the date in UTC at which the run began. A slash in a value is "
    "written as `%2F`, and so is every ASCII character but letters, digits and `_.~-`; "
    "a null and an empty text are `__HIVE_DEFAULT_PARTITION__`. In the manifest, the "
    "entry of a part has the values as `partition`; `partition_by` has the types.",
    "",
    "With `--flat` no column is nested. A field of a struct becomes a column with both "
    "names: `extractive_quality.words` is `extractive_quality_words`. It may be null "
    "where the struct may. A list becomes JSON text, also within a struct: "
    '`quality_flags` is `["too_short"]`, `extractive` is `[{"method": "lead", "rank": '
    "1, ...}]`, `extractive_quality_flags` is a list again. A kept field that is a "
    "struct becomes JSON text as a whole if all its fields may be null. There, a date "
    "or time is ISO 8601 text, bytes are base64, a decimal is text, and a number that "
    "is not finite is the text `nan`, `inf` or `-inf`. The footer says "
    "`precis.flat: true`, and `evaluate` and `--reuse` read flat runs as any other.",
)


def summary_schema(kept: Iterable[pa.Field] = ()) -> pa.Schema:
    """The schema of the summaries of a corpus.

    Args:
      kept: the columns that travel along from the source.
    """
    return pa.schema([*SUMMARY_SCHEMA, *kept], metadata=SUMMARY_SCHEMA.metadata)


def without_descriptions(schema: pa.Schema) -> pa.Schema:
    """A schema whose fields have no metadata.

    Parts are written so: the descriptions would be a third of their footers.
    """
    return pa.schema([_bare(field) for field in schema], schema.metadata)


def described(schema: pa.Schema) -> pa.Schema:
    """A schema of parts with the descriptions of the columns of the summaries.

    They are not in the files. A field that has metadata of its own keeps it.
    """
    known = {field.name: field for field in flat_schema(SUMMARY_SCHEMA)}
    known |= {field.name: field for field in SUMMARY_SCHEMA}
    return pa.schema(
        [_described(field, known.get(field.name)) for field in schema], schema.metadata
    )


def _described(field: pa.Field, known: pa.Field | None) -> pa.Field:
    if known is None:
        return field
    kind = field.type
    metadata = field.metadata or known.metadata
    if pa.types.is_struct(kind) and pa.types.is_struct(known.type):
        children = {child.name: child for child in known.type}
        kind = pa.struct(
            [_described(child, children.get(child.name)) for child in kind]
        )
    elif pa.types.is_list(kind) and pa.types.is_list(known.type):
        kind = pa.list_(_described(kind.value_field, known.type.value_field))
    return pa.field(field.name, kind, field.nullable, metadata)


def _bare(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_bare(child) for child in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_bare(kind.value_field))
    return pa.field(field.name, kind, field.nullable)


def summary_table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SUMMARY_SCHEMA
) -> pa.Table:
    """Summary rows as an Arrow table.

    Args:
      rows: each has all columns of the schema.
      schema: of the table.

    Raises:
      DataError: a key is unknown or missing, a value has the wrong type, or a column
          that is not nullable has a null. The message names the column.
    """
    return _table(rows, schema)


def write_parquet(
    path: str, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> int:
    """Writes a Parquet file with a row group for each batch, and publishes it when it
    is complete.

    Equal batches give equal bytes. Empty batches are left out.

    Returns:
      The number of rows.

    Raises:
      DataError: a batch has another schema.
    """
    rows = 0
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", use_compliant_nested_type=True
        ) as writer,
    ):
        for batch in batches:
            if not batch.schema.equals(schema):
                raise DataError(
                    f"{path}: a batch with columns {batch.schema.names} "
                    "does not have the schema of the file"
                )
            if not batch.num_rows:
                continue
            table = batch
            if isinstance(batch, pa.RecordBatch):
                table = pa.Table.from_batches([batch])
            writer.write_table(table, row_group_size=table.num_rows)
            rows += table.num_rows
    return rows


def _table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    keys = _keys_of(schema)
    for row, values in enumerate(rows):
        _check_keys(values, keys, row)
    columns = [
        _array([values[field.name] for values in rows], field) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


class _Keys(NamedTuple):
    """The keys of a row or of a struct.

    Attributes:
      names: all of them, in the order of the schema.
      structs: the keys of those that hold a struct.
      lists: the keys of the structs that the others hold lists of.
    """

    names: dict[str, None]
    structs: "dict[str, _Keys]"
    lists: "dict[str, _Keys]"


def _keys_of(fields: Iterable[pa.Field]) -> _Keys:
    keys = _Keys({}, {}, {})
    for field in fields:
        kind = field.type
        keys.names[field.name] = None
        if pa.types.is_struct(kind):
            keys.structs[field.name] = _keys_of(kind)
        elif pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            keys.lists[field.name] = _keys_of(kind.value_type)
    return keys


def _check_keys(values: Any, keys: _Keys, row: int, within: str = "") -> None:
    """Refuses unknown and missing keys, also within lists.

    Arrow itself drops unknown keys and makes missing ones null.
    """
    if not isinstance(values, Mapping):
        raise DataError(
            f"row {row}: column {within.rstrip('.')!r} holds a "
            f"{type(values).__name__} where a mapping is needed"
        )
    if values.keys() != keys.names.keys():
        _refuse_keys(values, keys, row, within)
    for name, inner in keys.structs.items():
        if values[name] is not None:
            _check_keys(values[name], inner, row, f"{within}{name}.")
    for name, inner in keys.lists.items():
        if isinstance(values[name], list | tuple):
            for item in values[name]:
                _check_keys(item, inner, row, f"{within}{name}.")


def _refuse_keys(
    values: Mapping[str, Any], keys: _Keys, row: int, within: str
) -> NoReturn:
    """Names the first key that is unknown, or else missing."""
    for name in values:
        if name not in keys.names:
            known = ", ".join(keys.names)
            raise DataError(
                f"row {row}: column {within + name!r} is not in the schema; "
                f"known: {known}"
            )
    name = next(name for name in keys.names if name not in values)
    raise DataError(f"row {row}: column {within + name!r} is missing")


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        array = pa.array(values, type=field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"column {field.name!r} is no {field.type}: {error}") from error
    for name in _columns_with_forbidden_nulls(array, field, field.name):
        raise DataError(
            f"column {name!r} is null in at least one row, "
            "which the schema does not allow"
        )
    return array


def _columns_with_forbidden_nulls(
    array: pa.Array, field: pa.Field, name: str
) -> Iterator[str]:
    if array.null_count and not field.nullable:
        yield name
    if pa.types.is_list(field.type):
        items = array.flatten()
        if items.null_count:
            yield f"{name}[]"
        if pa.types.is_struct(items.type):
            yield from _nulls_within(items, name)
    elif pa.types.is_struct(field.type):
        yield from _nulls_within(array.drop_null(), name)


def _nulls_within(structs: pa.StructArray, name: str) -> Iterator[str]:
    for child in structs.type:
        yield from _columns_with_forbidden_nulls(
            structs.field(child.name), child, f"{name}.{child.name}"
        )


def as_markdown() -> str:
    """The text of docs/SCHEMA.md: every column of the tables."""
    tables = {
        "Summaries: `data/part-*.parquet`": SUMMARY_SCHEMA,
        "Scores of `precis evaluate`: `scores/part-*.parquet`": SCORES_SCHEMA,
        "Dead letters: `dead_letters/*.jsonl.gz`": DEAD_LETTER_SCHEMA,
    }
    lines = [
        "# The Parquet tables",
        "",
        f"Schema version {SCHEMA_VERSION}. Columns are not null unless they say so. "
        "Files are compressed with zstd.",
    ]
    for title, schema in tables.items():
        lines += ["", f"## {title}", "", "| column | type | |", "|---|---|---|"]
        lines += _schema_rows(schema)
    lines += [
        "",
        "## Layout of the files",
        "",
        *_LAYOUT,
        "",
        "## Flags",
        "",
        "In `quality_flags` and in `flags` of every quality, in this order.",
        "",
        "| flag | |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in FLAGS.items()]
    return "\n".join(lines) + "\n"


def _schema_rows(fields: Iterable[pa.Field], within: str = "") -> Iterator[str]:
    for field in fields:
        description = field.metadata[b"description"].decode()
        kind = _kind(field.type) + (", nullable" if field.nullable else "")
        yield f"| `{within}{field.name}` | {kind} | {description} |"
        if pa.types.is_struct(field.type):
            yield from _schema_rows(field.type, f"{within}{field.name}.")
        elif pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            yield from _schema_rows(field.type.value_type, f"{within}{field.name}[].")


def _kind(kind: pa.DataType) -> str:
    """The name of a type; the fields of a struct have rows of their own."""
    if pa.types.is_struct(kind):
        return "struct"
    if not pa.types.is_list(kind):
        return str(kind)
    if pa.types.is_struct(kind.value_type):
        return "list"
    return f"list of {kind.value_type}"


if __name__ == "__main__":
    print(as_markdown(), end="")
