"""A run as one version of a Delta Lake table.

Each run is an application transaction of the table's log, which checkpoints keep when
the versions themselves are gone; that is how a second load is noticed.
"""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from precis.model.errors import DataError, JobError
from precis.pipelines.warehouse.address import TableAddress
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
    rows = pa.RecordBatchReader.from_batches(run.schema, run.batches())
    properties = CommitProperties(
        custom_metadata=run.facts, app_transactions=[Transaction(application, 1)]
    )
    replaced = 0
    try:
        if table is None:
            write_deltalake(
                address.place,
                rows,
                mode="error",
                partition_by=run.partition_columns or None,
                commit_properties=properties,
            )
        else:
            metrics = (
                table.merge(
                    rows,
                    predicate=" AND ".join(
                        f'target."{name}" = source."{name}"' for name in key
                    ),
                    source_alias="source",
                    target_alias="target",
                    merge_schema=True,
                    commit_properties=properties,
                )
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            )
            replaced = metrics["num_target_rows_updated"]
    except CommitFailedError as error:
        raise JobError(
            f"another writer changed {address.place} at the same time, and nothing was "
            f"loaded; load the run again ({error})"
        ) from error
    except DeltaError as error:
        raise DataError(
            f"{address.place} does not take the run: {error}; load the run into "
            "another table"
        ) from error
    version = str(DeltaTable(address.place).version())
    return TableResult(
        run_id=run.run_id, version=version, rows=run.rows, replaced=replaced
    )


def _find_table(folder: str) -> DeltaTable | None:
    try:
        return DeltaTable(folder)
    except TableNotFoundError:
        return None
