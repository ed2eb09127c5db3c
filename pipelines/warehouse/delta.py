"""A run as one version of a Delta Lake table.

Each run is an application transaction of the table's log, which checkpoints keep when
the versions themselves are gone; that is how a second load is noticed.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from precis.model.errors import DataError, JobError
from precis.model.progress.counters import count
from precis.pipelines.options.table_address import TableAddress
from precis.pipelines.warehouse.finished_run import FinishedRun
from precis.pipelines.warehouse.row_keys import read_keys
from precis.pipelines.warehouse.table_result import TableResult


def load_delta(
    run: FinishedRun, address: TableAddress, key: Sequence[str]
) -> TableResult:
    """Loads a run, or finds that the table holds it already.

    Raises:
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: another writer changed the table at the same time.
    """
    application = f"precis/{run.run_id}/{run.files_sha256}"
    table = _find_table(address.place)
    if table and table.transaction_version(application) is not None:
        version = str(table.version())
        return TableResult(
            run_id=run.run_id, version=version, rows=run.rows, was_noop=True
        )
    run.check_parts()
    read_keys(run, key)
    rows = pa.RecordBatchReader.from_batches(run.schema, _counted(run.batches()))
    properties = CommitProperties(
        custom_metadata=run.facts, app_transactions=[Transaction(application, 1)]
    )
    _check_types(run, address.place, table)
    try:
        replaced = _write(run, address.place, table, key, rows, properties)
    except CommitFailedError as error:
        raise JobError(
            f"another writer changed {address.place} at the same time, and nothing was "
            f"loaded; load the run again ({error})"
        ) from error
    except DeltaError as error:
        raise _refusal(address.place, error) from error
    version = str(DeltaTable(address.place).version())
    return TableResult(
        run_id=run.run_id, version=version, rows=run.rows, replaced=replaced
    )


def _write(
    run: FinishedRun,
    folder: str,
    table: DeltaTable | None,
    key: Sequence[str],
    rows: pa.RecordBatchReader,
    properties: CommitProperties,
) -> int:
    """Makes one version of the table; returns how many rows were replaced."""
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
        merge_schema=True,
        commit_properties=properties,
    )
    metrics = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    return int(metrics["num_target_rows_updated"])


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Counts the rows of batches, as they are taken, for the display."""
    for batch in batches:
        yield batch
        count(documents=batch.num_rows)


def _find_table(folder: str) -> DeltaTable | None:
    try:
        return DeltaTable(folder)
    except TableNotFoundError:
        return None


def _check_types(run: FinishedRun, folder: str, table: DeltaTable | None) -> None:
    """Refuses types that Delta does not have, or would cast."""
    try:
        Schema.from_arrow(run.schema)
    except Exception as error:  # deltalake has no class for it.
        raise _refusal(folder, error) from error
    if table is None:
        return
    there = pa.schema(table.schema().to_arrow())
    for field in run.schema:
        if field.name not in there.names:
            continue
        kind, known = (
            _plain(each) for each in (field.type, there.field(field.name).type)
        )
        if kind != known:
            raise DataError(
                f"column {field.name!r} is {kind} in the run and {known} in the table; "
                "load the run into another table"
            )


def _refusal(folder: str, error: Exception) -> DataError:
    reason = str(error).splitlines()[0]  # Below it stands a stack of Rust.
    return DataError(
        f"{folder} does not take the run: {reason}; load the run into another table"
    )


def _plain(kind: pa.DataType) -> str:
    """The name of a type, the same for all layouts of a string or a list."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or "view" in str(kind):
        return "string"
    if types.is_list(kind) or types.is_large_list(kind):
        return "list"
    return "struct" if types.is_struct(kind) else str(kind)
