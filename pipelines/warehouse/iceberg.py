"""A run as one snapshot of an Apache Iceberg table.

    rows of the table with a key of the run    left out of copies of their files
    rows of the run                            written to new files
    one snapshot                               drops the old files, adds the new ones

Until that snapshot is committed, readers see the table as it was, and files of a load
that was killed belong to no snapshot. The summary of the snapshot and a property of the
table say which run it holds; that is how a second load of the run is noticed. The
property outlives the snapshot.
"""

import datetime
import json
import os
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.snapshots import Snapshot, ancestors_of
from sqlalchemy.exc import OperationalError

from precis.model.errors import DataError, JobError, UsageError
from precis.model.progress.counters import count
from precis.pipelines.options.table_address import (
    ICEBERG,
    LOCAL_CATALOG,
    TableAddress,
    catalog_settings,
)
from precis.pipelines.warehouse.finished_run import FinishedRun
from precis.pipelines.warehouse.iceberg_files import DataFileWriter, TableFiles
from precis.pipelines.warehouse.iceberg_schema import (
    evolve_schema,
    stored_schema,
    with_field_ids,
)
from precis.pipelines.warehouse.row_keys import RowKeys, read_keys
from precis.pipelines.warehouse.table_result import TableResult

_ATTEMPTS = 5
_CONFLICTS = (CommitFailedException, TableAlreadyExistsError, ValidationException)


class _Merge(NamedTuple):
    """What a load replaces.

    Attributes:
      files: the data files that hold rows to be replaced.
      copied: those of them that also hold other rows.
      rows: how many rows are replaced.
    """

    files: list[FileScanTask]
    copied: list[FileScanTask]
    rows: int


def load_iceberg(
    run: FinishedRun, address: TableAddress, key: Sequence[str]
) -> TableResult:
    """Loads a run, or finds that the table holds it already.

    Raises:
      UsageError: no such catalogue, or a table that takes no such run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: other writers changed the table during every attempt.
    """
    catalog = open_catalog(address)
    keys = None
    for _ in range(_ATTEMPTS):
        table = _find_table(catalog, address.identifier)
        snapshot_id = _earlier_load(table, run) if table else None
        if snapshot_id:
            return TableResult(
                run_id=run.run_id, version=snapshot_id, rows=run.rows, was_noop=True
            )
        if table:
            _check_key(table, key)
        if keys is None:
            run.check_parts()
            keys = read_keys(run, key)
        try:
            return _load_once(catalog, table, address.identifier, run, keys)
        except _CONFLICTS as error:
            conflict = error
    raise JobError(
        f"other writers changed {address.identifier} during each of {_ATTEMPTS} "
        f"attempts, and nothing was loaded; load the run again ({conflict})"
    ) from conflict


def open_catalog(address: TableAddress) -> Catalog:
    """The catalogue of an address.

    Raises:
      UsageError: pyiceberg's configuration has no such catalogue, or the folder of a
        local one cannot be written.
    """
    if address.scheme == ICEBERG:
        try:
            return load_catalog(address.place)
        except ValueError as error:
            variable = f"PYICEBERG_CATALOG__{address.place.upper()}__URI"
            raise UsageError(
                f"the catalogue {address.place!r} cannot be opened: {error}; describe "
                f"it in .pyiceberg.yaml or in variables such as {variable}, or name a "
                "folder: iceberg+sqlite://FOLDER/NAMESPACE.TABLE"
            ) from error
    os.makedirs(address.place, exist_ok=True)
    try:
        return load_catalog(LOCAL_CATALOG, **catalog_settings(address.place))
    except OperationalError as error:
        raise UsageError(
            f"--table: the catalogue in {address.place} cannot be written: "
            f"{error.orig}; make room, let this user write there, or name another "
            "folder"
        ) from error


def _find_table(catalog: Catalog, identifier: str) -> Table | None:
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        return None


def _earlier_load(table: Table, run: FinishedRun) -> str | None:
    """The snapshot that brought the run into the table, or None.

    A snapshot that was rolled back since does not count.
    """
    metadata = table.metadata
    line = list(ancestors_of(table.current_snapshot(), metadata))
    for snapshot in line:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if run.facts.items() <= summary.items():
            return str(snapshot.snapshot_id)
    recorded = json.loads(table.properties.get(_property(run), "{}"))
    if recorded.get("files_sha256") != run.files_sha256:
        return None
    snapshot_id = recorded["snapshot_id"]
    there = metadata.snapshot_by_id(snapshot_id)
    # Where snapshots were expired, the line ends before the oldest commits.
    if there and (not line or _number(there) > _number(line[-1])):
        return None
    return str(snapshot_id)


def _number(snapshot: Snapshot) -> int:
    """The place of a snapshot among the commits of its table."""
    return snapshot.sequence_number or 0


def _property(run: FinishedRun) -> str:
    return f"precis.run.{run.run_id}"


def _check_key(table: Table, key: Sequence[str]) -> None:
    """Refuses another key than the table's, and a table without the key's columns."""
    name = ".".join(table.name())
    known = sorted(table.schema().identifier_field_names())
    if known and known != sorted(key):
        raise UsageError(
            f"the key of {name} is {','.join(known)}, not {','.join(key)}; give "
            f"--table_key {','.join(known)}, or name another --table"
        )
    for column in key:
        if column not in table.schema().column_names:
            raise UsageError(
                f"{name} has no column {column!r}, so its rows cannot be told from "
                "those of the run; name other columns with --table_key, or another "
                "--table"
            )


def _load_once(
    catalog: Catalog,
    table: Table | None,
    identifier: str,
    run: FinishedRun,
    keys: RowKeys,
) -> TableResult:
    """Writes the files and commits one snapshot."""
    schema = stored_schema(run.schema, keys.columns)
    if table is None:
        transaction = _create_table(catalog, identifier, run, schema, keys)
        merge = _Merge([], [], 0)
    else:
        transaction = table.transaction()
        merge = _plan_merge(table, keys)
        evolve_schema(transaction, schema)
    files = TableFiles(transaction.table_metadata, transaction._table.io, keys.columns)
    writer = DataFileWriter(files)
    try:
        snapshot_id = _stage(transaction, files, writer, run, keys, merge)
    except BaseException:
        writer.discard()
        raise
    _commit(transaction, writer, identifier)
    return TableResult(
        run_id=run.run_id,
        version=str(snapshot_id),
        rows=run.rows,
        replaced=merge.rows,
    )


def _commit(transaction: Transaction, writer: DataFileWriter, identifier: str) -> None:
    """Commits the snapshot; its files go where it certainly was not committed.

    Raises:
      JobError: nobody knows whether it was.
    """
    try:
        transaction.commit_transaction()
    except _CONFLICTS:
        writer.discard()
        raise
    except Exception as error:
        raise JobError(
            f"{identifier}: the catalogue failed during the commit, which may have "
            f"arrived ({type(error).__name__}: {error}); load the run again: nothing "
            "happens if it has"
        ) from error


def _create_table(
    catalog: Catalog,
    identifier: str,
    run: FinishedRun,
    schema: pa.Schema,
    keys: RowKeys,
) -> Transaction:
    """Begins a table, which exists when its first snapshot is committed.

    Raises:
      DataError: Iceberg has no such type.
      UsageError: the catalogue has no such names.
    """
    namespace = identifier.rpartition(".")[0]
    catalog.create_namespace_if_not_exists(namespace)
    try:
        transaction = catalog.create_table_transaction(identifier, schema)
    except UnsupportedPyArrowTypeException as error:
        raise DataError(
            f"column {error.field.name!r} is {error.field.type}, which Iceberg tables "
            "do not have; summarize without that column"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"the catalogue takes no table {identifier!r}: {error}; name another "
            "--table"
        ) from error
    with transaction.update_schema() as update:
        update.set_identifier_fields(*keys.columns)
    if run.partition_columns:
        with transaction.update_spec() as spec:
            for name in run.partition_columns:
                spec.add_identity(name)
    return transaction


def _plan_merge(table: Table, keys: RowKeys) -> _Merge:
    """Finds the rows of the table that have a key of the run."""
    files = TableFiles(table.metadata, table.io, keys.columns)
    merge = _Merge([], [], 0)
    for task in table.scan().plan_files():
        rows = hits = 0
        for batch in files.batches(task, keys.columns):
            rows += batch.num_rows
            hits += int(keys.mark(batch).sum())
        if hits:
            merge.files.append(task)
            merge = merge._replace(rows=merge.rows + hits)
        if 0 < hits < rows:
            merge.copied.append(task)
    return merge


def _stage(
    transaction: Transaction,
    files: TableFiles,
    writer: DataFileWriter,
    run: FinishedRun,
    keys: RowKeys,
    merge: _Merge,
) -> int:
    """Writes the data files and puts the snapshot into the transaction.

    Returns:
      The id of the snapshot.
    """
    for task in merge.copied:
        for batch in files.batches(task):
            stays = pa.array(~keys.mark(batch))
            writer.write(pa.Table.from_batches([batch]).filter(stays))
    stored = stored_schema(run.schema, keys.columns)
    schema = with_field_ids(stored, files.metadata.schema())
    for batch in run.batches():
        rows = pa.Table.from_batches([batch]).cast(stored)
        writer.write(pa.Table.from_arrays(rows.columns, schema=schema))
        count(documents=batch.num_rows)
    added = writer.close()
    # `overwrite` also where nothing is replaced: a plain append would be committed
    # beside the rows of a load that ran at the same time and may have the same keys.
    update = transaction.update_snapshot(snapshot_properties=run.facts).overwrite()
    with update:
        for task in merge.files:
            update.delete_data_file(task.file)
        for file in added:
            update.append_data_file(file)
    recorded = {
        "snapshot_id": update.snapshot_id,
        "files_sha256": run.files_sha256,
        "rows": run.rows,
        "loaded_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    transaction.set_properties({_property(run): json.dumps(recorded)})
    return update.snapshot_id
