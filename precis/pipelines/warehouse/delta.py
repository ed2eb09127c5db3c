"""Loads a run as one version of a Delta Lake table.

Each run is an application transaction in the table's log. Checkpoints keep transactions
after the versions are gone, so a second load is noticed. New columns are added in a
separate version before.
"""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from precis.model.errors import DataError, JobError
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.warehouse.options import TableAddress
from precis.pipelines.warehouse.rows import (
    Loaded,
    check_keys,
    counted_rows,
    optional_schema,
    run_facts,
)


def load_delta(run: FinishedRun, address: TableAddress, key: Sequence[str]) -> Loaded:
    """Loads a run, unless the table already has it.

    Returns:
      The version of the table, and the number of replaced rows.

    Raises:
      DataError: the run is damaged, its key is not unique, its types do not fit, or
          delta-rs cannot write the table.
      JobError: another writer changed the table at the same time.
    """
    folder = address.place
    application = f"precis/{run.run_id}/{run.files_sha256}"
    table = DeltaTable(folder) if DeltaTable.is_deltatable(folder) else None
    if table and table.transaction_version(application) is not None:
        return Loaded(str(table.version()), None)
    check_keys(run, key)
    properties = CommitProperties(
        custom_metadata=run_facts(run), app_transactions=[Transaction(application, 1)]
    )
    _check_types(run, folder, table)
    _check_partitions(run, folder, table)
    try:
        replaced = _write(run, folder, table, key, properties)
    except (DeltaError, pa.ArrowException) as error:
        # delta-rs has one error for conflicts and for what a table forbids. It updates
        # `table` to the versions that it writes.
        if table and DeltaTable(folder).version() != table.version():
            raise JobError(
                f"another writer changed {folder} at the same time, so nothing was "
                f"loaded; run the same command again ({error})"
            ) from error
        raise _refusal(folder, str(error)) from error
    return Loaded(str(DeltaTable(folder).version()), replaced)


def _write(
    run: FinishedRun,
    folder: str,
    table: DeltaTable | None,
    key: Sequence[str],
    properties: CommitProperties,
) -> int:
    """Writes one version of the table; returns the number of replaced rows."""
    schema = optional_schema(run, key)
    if table:
        schema = _add_columns(table, schema)
    batches = (batch.cast(schema) for batch in counted_rows(run))
    rows = pa.RecordBatchReader.from_batches(schema, batches)
    if table is None:
        write_deltalake(
            folder,
            rows,
            mode="error",
            partition_by=run.partition_columns or None,
            commit_properties=properties,
        )
        return 0
    merge = table.merge(
        rows,
        predicate=" AND ".join(f'target."{name}" = source."{name}"' for name in key),
        source_alias="source",
        target_alias="target",
        commit_properties=properties,
    )
    # `update_all` is refused if the table has further columns of some types.
    values = {f'"{name}"': f'source."{name}"' for name in schema.names}
    merge.when_matched_update(values).when_not_matched_insert(values)
    metrics = merge.execute()
    return int(metrics["num_target_rows_updated"])


def _add_columns(table: DeltaTable, schema: pa.Schema) -> pa.Schema:
    """Adds missing columns and nested fields to a table, in a version without new rows.
    If a merge adds fields, delta-rs 1.6 sets the whole column to null in unchanged
    rows.

    Returns:
      The columns of `schema` as the table stores them.
    """
    there = pa.schema(table.schema())
    run = pa.schema(Schema.from_arrow(schema))
    joined = pa.unify_schemas([there, run], promote_options="permissive")
    if joined != there:
        table.alter.add_columns(Schema.from_arrow(joined).fields)
    return pa.schema([joined.field(name) for name in schema.names])


def _check_types(run: FinishedRun, folder: str, table: DeltaTable | None) -> None:
    """Refuses types that Delta does not have, or would convert."""
    try:
        fields = Schema.from_arrow(run.schema).fields
    except Exception as error:  # deltalake has no error class for it.
        raise _refusal(folder, str(error)) from error
    there = table.schema().fields if table else ()
    known = {field.name: field.type.type for field in there}
    for field in fields:
        kind, other = field.type.type, known.get(field.name, field.type.type)
        if kind != other:
            reason = f"column {field.name!r} is {kind} in the run, but {other} there"
            raise _refusal(folder, reason)


def _check_partitions(run: FinishedRun, folder: str, table: DeltaTable | None) -> None:
    """Refuses empty texts in partition columns, which Delta stores as null."""
    columns = table.metadata().partition_columns if table else run.partition_columns
    names = [name for name in columns if name in run.schema.names]
    for batch in run.batches(names) if names else ():
        for name in names:
            if "" in batch.column(name).unique().to_pylist():
                reason = (
                    f"{name!r} is empty in a row, but a partition would store it as "
                    "null"
                )
                raise _refusal(folder, reason)


def _refusal(folder: str, reason: str) -> DataError:
    # After the first line of deltalake's errors follows a Rust stack.
    return DataError(
        f"the run does not fit into {folder}: {reason.splitlines()[0]}; load it into "
        "another table, or into Iceberg"
    )
