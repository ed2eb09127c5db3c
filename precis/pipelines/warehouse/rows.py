"""What loads of all formats share: the rows of a run, their keys, and what it is."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from precis.model.errors import DataError, UsageError
from precis.model.progress.counters import count
from precis.pipelines.run.key_tables import numbered, open_database
from precis.pipelines.tables.finished_run import FinishedRun, open_run


def run_facts(run: FinishedRun) -> dict[str, str]:
    """What a snapshot says of the run that it holds."""
    facts = {
        "run_id": run.run_id,
        "fingerprint": run.manifest.get("fingerprint", run.run_id),
        "version": run.manifest["precis_version"],
        "schema_version": run.manifest["schema_version"],
        "files_sha256": run.files_sha256,
    }
    return {f"precis.{name}": str(value) for name, value in facts.items()}


def open_run_of_documents(folder: str) -> FinishedRun:
    """Opens a run whose rows a table takes.

    Raises:
      UsageError: no finished run, or one of `--rows groups`.
      DataError: its manifest is damaged.
    """
    run = open_run(folder)
    if run.group_output_files and not run.output_files:
        raise UsageError(
            f"{run.folder} has rows of groups alone (--rows groups), and a table holds "
            "rows of documents; summarize without --rows, or read its groups/*.parquet"
        )
    return run


def counted_rows(run: FinishedRun) -> Iterator[pa.RecordBatch]:
    """The rows of a run, counted for the display as they are taken."""
    for batch in run.batches():
        yield batch
        count(documents=batch.num_rows)


def key_rows(run: FinishedRun, key: Sequence[str]) -> pa.RecordBatchReader:
    """The columns of the key of all rows, in batches, and `place`, counted from 0."""
    schema = pa.schema([*map(run.schema.field, key), ("place", pa.int64())])
    batches = numbered(run.batches(key), "place")
    return pa.RecordBatchReader.from_batches(schema, batches)


def optional_schema(run: FinishedRun, key: Sequence[str]) -> pa.Schema:
    """The columns of a run for a table that takes other runs as well: all of them may
    be null but those of the key.
    """
    fields = map(_optional, run.schema)
    return pa.schema([each.with_nullable(each.name not in key) for each in fields])


def _optional(field: pa.Field) -> pa.Field:
    """A column that may be null, as may all fields within it.

    The description also stands where pyiceberg looks for it, and the items of lists
    have the name that they have there.
    """
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_optional(each) for each in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_optional(kind.value_field).with_name("element"))
    elif pa.types.is_timestamp(kind) and kind.tz:
        kind = pa.timestamp("us", "UTC")
    description = (field.metadata or {}).get(b"description", b"")
    metadata = {b"description": description, b"doc": description}
    return pa.field(field.name, kind, metadata=metadata)


def sql_names(names: Sequence[str]) -> str:
    """Names of columns as DuckDB reads them."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)


def check_keys(
    run: FinishedRun, key: Sequence[str], *, may_be_null: bool = False
) -> None:
    """Refuses a damaged run, and columns that do not tell its rows apart.

    Args:
      run: the run.
      key: the columns.
      may_be_null: whether a key may be null; two nulls are equal.

    Raises:
      UsageError: a column that the run does not have.
      DataError: the run is damaged, two rows have the same key, or a key is null.
    """
    run.check_output_files()
    for name in key:
        if name not in run.schema.names:
            raise UsageError(
                f"--table_key: {run.folder} has no column {name!r}; it has "
                f"{', '.join(run.schema.names)}"
            )
    names = sql_names(key)
    with open_database() as connection:
        connection.register("run", key_rows(run, key))
        connection.execute(
            f"CREATE TABLE keys AS SELECT {names}, count(*) AS count FROM run "
            f"GROUP BY {names}"
        )
        for name in () if may_be_null else key:
            nulls = f"FROM keys WHERE {sql_names([name])} IS NULL LIMIT 1"
            if connection.execute(nulls).fetchone():
                raise DataError(
                    f"{run.folder}: column {name!r} of the key is null in at least one "
                    "row; name other columns with --table_key"
                )
        repeated = connection.execute(
            "SELECT sum(count - 1) OVER (), * FROM keys WHERE count > 1 "
            "ORDER BY ALL LIMIT 1"
        ).fetchone()
    if repeated:
        values = zip(key, repeated[1:], strict=False)
        named = ", ".join(f"{name} {value!r}" for name, value in values)
        raise DataError(
            f"{run.folder}: {named} is the key of more than one row, and "
            f"{repeated[0]} rows repeat a key; make the ids of the corpus unique, "
            "which --on_duplicate_id fail checks, or name a key with the place of a "
            "document, --table_key document_id,source_file,source_position"
        )
