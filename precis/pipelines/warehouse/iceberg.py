"""Loads a run as one snapshot of an Apache Iceberg table.

    table rows with a key of the run     left out when their files are copied
    rows of the run                      written to new files
    one snapshot                         drops the old files, adds the new ones

Until the snapshot is committed, readers see the old table, and the files of a failed
load belong to no snapshot. A table property names the run that it holds, so a second
load of the run is noticed. The property outlives the snapshot.

pyiceberg would hold all rows of a write and of each file that it reads in memory, and
write a null list of structs as an empty list. Here rows are read in batches, and as
many rows as fit into `_FILE_BYTES` become a data file.
"""

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    ResolveError,
    UnauthorizedError,
    ValidationError,
    ValidationException,
)
from pyiceberg.io.pyarrow import (
    UnsupportedPyArrowTypeException,
    bin_pack_record_batches,
    parquet_file_to_data_file,
    pyarrow_to_schema,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.snapshots import ancestors_of
from sqlalchemy.exc import OperationalError

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.warehouse.options import ICEBERG, TableAddress
from precis.pipelines.warehouse.rows import (
    Loaded,
    check_keys,
    counted_rows,
    key_rows,
    optional_schema,
    run_facts,
    sql_names,
)

# The catalogue name of the tables in a folder.
LOCAL_CATALOG = "precis"
_BATCH_ROWS = 1024
# The size in memory of the rows that become a data file.
_FILE_BYTES = 128 << 20
_REFUSALS = (
    *(ResolveError, UnsupportedPyArrowTypeException, ValidationError),
    *(ValueError, TypeError),
)
# If a commit ends with one of these errors, nothing was committed.
_NOT_COMMITTED = (
    *(CommitFailedException, ValidationException, BadRequestError),
    *(ForbiddenError, NotImplementedError, UnauthorizedError),
)


def load_iceberg(run: FinishedRun, address: TableAddress, key: Sequence[str]) -> Loaded:
    """Loads a run, unless the table already has it.

    Returns:
      The id of the snapshot as version, and the number of replaced rows.

    Raises:
      UsageError: the catalogue does not exist, or the table cannot hold the run.
      DataError: the run is damaged, its key is not unique, its types do not fit, or the
        catalogue refused the commit.
      JobError: another writer changed the table at the same time, or the catalogue
        failed during the commit.
    """
    catalog = open_catalog(address)
    name = address.identifier
    table = catalog.load_table(name) if catalog.table_exists(name) else None
    if table and (earlier := _earlier_load(table, run)):
        return Loaded(earlier, None)
    check_keys(run, key)
    try:
        transaction = _begin(catalog, name, table, run, key)
        version, replaced = _stage(transaction, table, run, key)
    except _REFUSALS as error:
        raise DataError(
            f"the run does not fit into {name}: {error}; load it into another table"
        ) from error
    before = table and table.metadata_location
    try:
        transaction.commit_transaction()
    except _NOT_COMMITTED as error:
        reason = f"({type(error).__name__}: {error})"
        there = catalog.table_exists(name) and catalog.load_table(name)
        if there and there.metadata_location != before:
            raise JobError(
                f"{name}: another writer changed the table at the same time, so "
                f"nothing was loaded; run the same command again {reason}"
            ) from error
        raise DataError(
            f"{name}: the catalogue refused the commit, so nothing was loaded; change "
            f"what it names, or load the run into another table {reason}"
        ) from error
    except Exception as error:
        raise JobError(
            f"{name}: the catalogue gave no answer to the commit "
            f"({type(error).__name__}: {error}); run the same command again, which is "
            "safe even if this commit has arrived"
        ) from error
    return Loaded(version, replaced)


def open_catalog(address: TableAddress) -> Catalog:
    """Opens the catalogue of an address.

    Raises:
      UsageError: pyiceberg's configuration does not define the catalogue, or the folder
          of a local catalogue cannot be written.
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
    folder = os.path.abspath(address.place)
    os.makedirs(folder, exist_ok=True)
    try:
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}"
        return load_catalog(LOCAL_CATALOG, type="sql", uri=uri, warehouse=warehouse)
    except OperationalError as error:
        raise UsageError(
            f"--table: the catalogue in {address.place} cannot be written: "
            f"{error.orig}; free some space, give this user access, or name another "
            "folder"
        ) from error


def _earlier_load(table: Table, run: FinishedRun) -> str | None:
    """The snapshot that loaded the run into the table, or None.

    Snapshots that were rolled back later do not count.
    """
    recorded = json.loads(table.properties.get(f"precis.run.{run.run_id}", "{}"))
    if recorded.get("files_sha256") != run.files_sha256:
        return None
    snapshot = table.snapshot_by_id(recorded["snapshot_id"])
    line = list(ancestors_of(table.current_snapshot(), table.metadata))
    # If snapshots have expired, the history lacks the oldest commits.
    is_older = snapshot and line and snapshot.timestamp_ms < line[-1].timestamp_ms
    is_known = not snapshot or snapshot in line or is_older
    return str(recorded["snapshot_id"]) if is_known else None


def _begin(
    catalog: Catalog,
    name: str,
    table: Table | None,
    run: FinishedRun,
    key: Sequence[str],
) -> Transaction:
    """Begins a transaction whose table has the columns of the run.

    A new column is null in the rows of earlier runs. A column that the run lacks stays
    and is null in new rows. So all columns except the key may be null. A new table
    exists when its snapshot is committed.

    Raises:
      UsageError: the table has a different key.
      _REFUSALS: the type of a column does not fit the table's column.
    """
    schema = optional_schema(run, key)
    if table:
        known = sorted(table.schema().identifier_field_names())
        if known and known != sorted(key):
            raise UsageError(
                f"{name} has the key {','.join(known)}, not {','.join(key)}; give "
                f"--table_key {','.join(known)}, or name another --table"
            )
        transaction = table.transaction()
        with transaction.update_schema() as update:
            update.union_by_name(schema)
        return transaction
    catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
    transaction = catalog.create_table_transaction(name, schema)
    with transaction.update_schema() as update:
        update.set_identifier_fields(*key)
    if run.partition_columns:
        with transaction.update_spec() as spec:
            for column in run.partition_columns:
                spec.add_identity(column)
    return transaction


def _stage(
    transaction: Transaction, table: Table | None, run: FinishedRun, key: Sequence[str]
) -> tuple[str, int]:
    """Writes the data files and adds the snapshot to the transaction.

    Returns:
      The id of the snapshot, and the number of rows that it replaces.
    """
    old = list(table.scan().plan_files()) if table else []
    replaced, place_of = _rows_to_replace(transaction, old, run, key)
    schema = schema_to_pyarrow(transaction.table_metadata.schema())
    others = pa.schema([each for each in schema if each.name not in run.schema.names])

    def rows() -> Iterator[pa.Table]:
        earlier = [others.empty_table()]
        for number, places in replaced.items():
            if len(places) == old[number].file.record_count and not others.names:
                continue
            for stay, go in _split_rows(transaction, old[number], schema, places):
                yield stay
                earlier.append(go.select(others.names))
        kept, first = pa.concat_tables(earlier).combine_chunks(), 0
        for batch in counted_rows(run):
            places = place_of[first : first + len(batch)]
            first += len(batch)
            beside = kept.take(pa.array(places, mask=places < 0))
            columns = [*batch.columns, *beside.columns]
            rows = pa.table(columns, [*batch.schema.names, *others.names])
            yield rows.select(schema.names).cast(schema)

    # Use `overwrite` even if no row is replaced: an append would be committed together
    # with a concurrent load that may have rows with the same keys.
    update = transaction.update_snapshot(snapshot_properties=run_facts(run)).overwrite()
    with update:
        for file in _write_files(transaction, rows()):
            update.append_data_file(file)
        for number in replaced:
            update.delete_data_file(old[number].file)
    recorded = {"snapshot_id": update.snapshot_id, "files_sha256": run.files_sha256}
    transaction.set_properties({f"precis.run.{run.run_id}": json.dumps(recorded)})
    return str(update.snapshot_id), sum(map(len, replaced.values()))


def _rows_to_replace(
    transaction: Transaction,
    old: Sequence[FileScanTask],
    run: FinishedRun,
    key: Sequence[str],
) -> tuple[Mapping[int, np.ndarray], np.ndarray]:
    """Finds the rows of a table with a key of the run.

    Returns:
      By file number, the rows to replace (int64); and for each row of the run, the
      index of the row it replaces among these, over all files, or -1.

    Raises:
      UsageError: another program deleted rows of a file without rewriting it.
    """
    place_of = np.full(run.rows, -1)
    if not old:
        return {}, place_of
    for task in old:
        _check_names(transaction, task)
    schema = transaction.table_metadata.schema()
    keys = schema_to_pyarrow(schema.select(*key), include_field_ids=False)
    numbered = pa.schema([*keys, ("file", pa.int64()), ("row", pa.int64())])

    def rows() -> Iterator[pa.RecordBatch]:
        for number, task in enumerate(old):
            table = pa.concat_tables(_read(transaction, task, keys))
            places = [np.full(len(table), number), np.arange(len(table))]
            columns = [*table.columns, *places]
            yield from pa.table(columns, schema=numbered).to_batches()

    with open_database() as connection:
        connection.register("run", key_rows(run, key))
        connection.register("old", pa.RecordBatchReader.from_batches(numbered, rows()))
        hits = connection.execute(
            "SELECT file, list(row ORDER BY row), list(place ORDER BY row) FROM old "
            f"JOIN run USING ({sql_names(key)}) GROUP BY file"
        ).fetchall()
    for number, _, _ in hits:
        if old[number].delete_files:
            reason = "another program deleted rows from it"
            raise _outdated(old[number], reason)
    by_run = [place for _, _, places in hits for place in places]
    place_of[by_run] = np.arange(len(by_run))
    return {number: np.array(places) for number, places, _ in hits}, place_of


def _check_names(transaction: Transaction, task: FileScanTask) -> None:
    """Refuses a data file whose columns were renamed after it was written."""
    metadata = transaction.table_metadata
    with transaction._table.io.new_input(task.file.file_path).open() as file:
        written = pyarrow_to_schema(pq.read_schema(file), metadata.name_mapping())
    for field_id in written.field_ids:
        name = written.find_column_name(field_id)
        if name != metadata.schema().find_column_name(field_id):
            raise _outdated(task, f"column {name!r} was renamed or removed")


def _read(
    transaction: Transaction, task: FileScanTask, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Reads columns of a data file, in batches. Columns that were added later get the
    table's default for earlier rows.
    """
    table_schema = transaction.table_metadata.schema()
    defaults = {each.name: each.initial_default for each in table_schema.fields}
    with transaction._table.io.new_input(task.file.file_path).open() as file:
        parquet = pq.ParquetFile(file, pre_buffer=False)
        names = [name for name in schema.names if name in parquet.schema_arrow.names]
        yield schema.empty_table()
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=names):
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in names
                else pa.repeat(pa.scalar(defaults[field.name], field.type), len(batch))
                for field in schema
            ]
            yield pa.table(columns, schema=schema)


def _split_rows(
    transaction: Transaction,
    task: FileScanTask,
    schema: pa.Schema,
    replaced: np.ndarray,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yields the rows of a data file that stay, and the rows that are replaced."""
    first = 0
    for rows in _read(transaction, task, schema):
        goes = np.isin(np.arange(first, first + len(rows)), replaced)
        yield rows.filter(pa.array(~goes)), rows.filter(pa.array(goes))
        first += len(rows)


def _outdated(task: FileScanTask, reason: str) -> UsageError:
    return UsageError(
        f"{task.file.file_path}: {reason}; rewrite the table's data files, as with "
        "rewrite_data_files of Spark, or name another --table"
    )


def _write_files(
    transaction: Transaction, tables: Iterable[pa.Table]
) -> Iterator[DataFile]:
    """Writes rows to new data files.

    They belong to the table only when a snapshot names the files.
    """
    metadata, io = transaction.table_metadata, transaction._table.io
    locations = load_location_provider(metadata.location, metadata.properties)
    for gathered in bin_pack_record_batches(tables, _FILE_BYTES):
        for part in _by_partition(transaction, pa.concat_tables(gathered)):
            path = locations.new_data_location(f"{uuid.uuid4()}.parquet")
            with io.new_output(path).create() as stream:
                pq.write_table(part, stream, compression="zstd")
            yield parquet_file_to_data_file(io, metadata, path)


def _by_partition(transaction: Transaction, rows: pa.Table) -> Iterator[pa.Table]:
    """Splits the rows of a table by partition."""
    schema = transaction.table_metadata.schema()
    values = {}
    for field in transaction.table_metadata.spec().fields:
        column = schema.find_column_name(field.source_id)
        if column is None or not field.transform.preserves_order:
            raise ValueError(f"it is partitioned by {field.transform} of {column!r}")
        convert = field.transform.pyarrow_transform(schema.find_type(field.source_id))
        values[field.name] = convert(rows[column])
    if not values:
        yield rows
        return
    numbered = pa.table({**values, "": np.arange(len(rows))})
    groups = numbered.group_by(list(values), use_threads=False)
    for places in groups.aggregate([("", "list")])["_list"]:
        yield rows.take(places.values)
