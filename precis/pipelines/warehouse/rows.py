"""Reads the rows of a run, its keys and metadata, for loads in all formats."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from precis.model.config import suggestion
from precis.model.errors import DataError, UsageError
from precis.model.progress.counters import count
from precis.pipelines.run.key_tables import numbered, open_database
from precis.pipelines.tables.finished_run import FinishedRun, open_run


class Loaded(NamedTuple):
    """What a load did.

    Attributes:
      version: the version of the table that holds the run.
      replaced: the number of replaced rows; None if the table already had the run.
      replaced_nuls: how many NUL characters were replaced by U+FFFD.
    """

    version: str
    replaced: int | None
    replaced_nuls: int = 0


def run_facts(run: FinishedRun) -> dict[str, str]:
    """The metadata of a snapshot about its run."""
    facts = {
        "run_id": run.run_id,
        "fingerprint": run.manifest.get("fingerprint", run.run_id),
        "version": run.manifest["precis_version"],
        "schema_version": run.manifest["schema_version"],
        "files_sha256": run.files_sha256,
    }
    return {f"precis.{name}": str(value) for name, value in facts.items()}


def open_run_of_documents(folder: str) -> FinishedRun:
    """Opens a run that has rows of documents.

    Raises:
      UsageError: the run is not finished, or was made with `--rows groups`.
      DataError: its manifest is damaged.
    """
    run = open_run(folder)
    if run.group_output_files and not run.output_files:
        raise UsageError(
            f"{run.folder} has only rows of groups (--rows groups), but a table needs "
            "rows of documents; summarize without --rows, or read its groups/*.parquet"
        )
    return run


def with_columns(
    run: FinishedRun, key: Sequence[str], columns: Sequence[str]
) -> FinishedRun:
    """The run with the columns of the key and some others; with all if none is named.

    Raises:
      UsageError: the run does not have one of the columns.
    """
    _check_names(run, "--table_key", key)
    _check_names(run, "--columns", columns)
    return dataclasses.replace(run, columns=(*key, *columns) if columns else ())


def _check_names(run: FinishedRun, flag: str, names: Sequence[str]) -> None:
    known = run.schema.names
    for name in names:
        if name not in known:
            way_out = suggestion(name, known) or f"its columns are {', '.join(known)}"
            raise UsageError(f"{flag}: {run.folder} has no column {name!r}; {way_out}")


def counted_rows(run: FinishedRun) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a run, and counts them for the display."""
    for batch in run.batches():
        yield batch
        count(documents=batch.num_rows)


def key_rows(run: FinishedRun, key: Sequence[str]) -> pa.RecordBatchReader:
    """Reads the key columns of all rows in batches, and `place`, numbers from 0."""
    schema = pa.schema([*map(run.schema.field, key), ("place", pa.int64())])
    batches = numbered(run.batches(key), "place")
    return pa.RecordBatchReader.from_batches(schema, batches)


def optional_schema(run: FinishedRun, key: Sequence[str]) -> pa.Schema:
    """The columns of a run for a table that can also hold other runs: only the key's
    columns are never null.
    """
    fields = map(_optional, run.schema)
    return pa.schema([each.with_nullable(each.name not in key) for each in fields])


def _optional(field: pa.Field) -> pa.Field:
    """A column that may be null, and so may all fields in it.

    It has the description where pyiceberg looks for it, and pyiceberg's name for the
    items of lists.
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
    """Quotes column names for DuckDB."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)


def check_keys(
    run: FinishedRun, key: Sequence[str], *, may_be_null: bool = False
) -> None:
    """Refuses a damaged run, and a key that does not identify its rows.

    Args:
      run: the run to check.
      key: the columns of the key.
      may_be_null: whether keys may be null; two nulls are equal.

    Raises:
      UsageError: the run does not have one of the columns.
      DataError: the run is damaged, two rows have the same key, or a key is null.
    """
    run.check_output_files()
    _check_names(run, "--table_key", key)
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
                    f"{run.folder}: key column {name!r} is null in a row; name "
                    "other columns with --table_key"
                )
        repeated = connection.execute(
            "SELECT sum(count - 1) OVER (), * FROM keys WHERE count > 1 "
            "ORDER BY ALL LIMIT 1"
        ).fetchone()
    if repeated:
        values = zip(key, repeated[1:], strict=False)
        named = ", ".join(f"{name} {value!r}" for name, value in values)
        raise DataError(
            f"{run.folder}: {repeated[0]} rows repeat a key, such as {named}; make "
            "the ids of the corpus unique (--on_duplicate_id fail checks them), or "
            "give --table_key document_id,source_file,source_position"
        )
