"""Loads a run into a table of DuckDB or PostgreSQL, in one transaction.

    summaries          the table
    summaries_loads    a row for each load, which names the run
    summaries_flat     a view of all columns; further views have the items of lists

The statements are those of `precis loaders`. The rows go through the driver, so that
the database reads no file of the run.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.warehouse.loaders import copy_rows, render
from precis.pipelines.warehouse.options import DUCKDB, TableAddress
from precis.pipelines.warehouse.rows import (
    Loaded,
    check_keys,
    counted_rows,
    optional_schema,
)
from precis.pipelines.warehouse.sql_table import Dialect, define_table

# A name that no table of the database has.
_ROWS = "precis_rows_of_the_run"


def load_database(
    run: FinishedRun, address: TableAddress, key: Sequence[str]
) -> Loaded:
    """Loads a run, unless the table already has it.

    Returns:
      The number of the load as version, and the number of replaced rows.

    Raises:
      UsageError: the database cannot be opened, or has no such type or name.
      DataError: the run is damaged, its key is not unique, or the table does not fit.
      JobError: another writer was at work, or the database failed.
    """
    table = _define(run, address, key)
    with _connected(address) as connection:
        execute = connection.execute
        there, version = _state(execute, run, table)
        if not version:
            check_keys(run, key)
            execute("BEGIN")
            if address.scheme != DUCKDB:  # DuckDB locks its file.
                lock = f"hashtext({table.dialect.literal(table.name)})"
                execute(f"SELECT pg_advisory_xact_lock({lock})")
            # Another load may have ended meanwhile.
            there, version = _state(execute, run, table)
        if version:
            return Loaded(version, None)
        loaded = _load(connection, run, table, there)
        # The views show every column of the table, also those that are not loaded now.
        whole = dataclasses.replace(run, columns=()).schema.names
        shown = [name for name in whole if name in {*there, *run.schema.names}]
        view = _define(dataclasses.replace(run, columns=shown), address, key)
        execute(render(view, "view"))
        execute("COMMIT")
        return loaded


def _define(
    run: FinishedRun, address: TableAddress, key: Sequence[str]
) -> SimpleNamespace:
    """Describes the table, with the columns of the run that are read."""
    dialect, schema = Dialect(address.scheme), optional_schema(run, key)
    return define_table(run, address.identifier, dialect, key=key, schema=schema)


def _same(table: SimpleNamespace, name: str, text: str) -> str:
    """The condition that a name is a text; DuckDB ignores the case of all names."""
    is_case_free = table.dialect.name == DUCKDB
    return f"lower({name}) = lower({text})" if is_case_free else f"{name} = {text}"


def _state(
    execute: Callable[[str], Any], run: FinishedRun, table: SimpleNamespace
) -> tuple[set[str], str]:
    """The columns of the table, none if it does not exist, and the number of the load
    of the run, "" if there was none.
    """
    is_loads = _same(table, "table_name", table.loads_text)
    found = execute(
        f"SELECT {is_loads}, column_name FROM information_schema.columns WHERE "
        f"{_same(table, 'table_schema', table.schema_text)} "
        f"AND ({_same(table, 'table_name', table.text)} OR {is_loads})"
    ).fetchall()
    columns = {column for is_of_loads, column in found if not is_of_loads}
    if not columns or len(columns) == len(found):
        return columns, ""
    load = execute(
        f"SELECT version FROM {table.loads} WHERE run_id = {table.run_text} "
        f"AND files_sha256 = '{run.files_sha256}' "
        f"AND EXISTS (SELECT 1 FROM {table.name})"  # Rows may have been deleted.
    ).fetchone()
    return columns, str(load[0]) if load else ""


def _load(
    connection: Any, run: FinishedRun, table: SimpleNamespace, there: set[str]
) -> Loaded:
    """Loads a run in the transaction that has begun. Before it, the table has the
    columns `there`.
    """
    execute, names, nuls = connection.execute, ", ".join(table.names), 0
    if not there:
        if not execute(
            "SELECT 1 FROM information_schema.schemata WHERE "
            f"{_same(table, 'schema_name', table.schema_text)}"
        ).fetchone():
            execute(f"CREATE SCHEMA {table.schema}")
        # The list may be older than the table.
        execute(f"DROP TABLE IF EXISTS {table.loads}")
    execute(render(table, "create"))
    execute(render(table, "stage"))
    _check_types(execute, table)
    if table.dialect.name == DUCKDB:
        rows = pa.RecordBatchReader.from_batches(run.schema, counted_rows(run))
        connection.register(_ROWS, rows)
        execute(f"INSERT INTO {table.staging} ({names}) SELECT {names} FROM {_ROWS}")
    else:
        into = f"COPY {table.staging} ({names}) FROM STDIN WITH (ENCODING 'UTF8')"
        with connection.cursor().copy(into) as copy:
            nuls = copy_rows(counted_rows(run), copy.write)
    key = ", ".join(table.key_names)
    replaced, keys = execute(
        f"SELECT count(*), count(DISTINCT ({key})) "
        f"FROM {table.staging} JOIN {table.name} USING ({key})"
    ).fetchone()
    if replaced > keys:
        raise DataError(
            f"{table.name} has several rows with one key ({key}); give the --table_key "
            "of its earlier loads, or load the run into another table"
        )
    execute(render(table, "merge"))
    execute(
        f"CREATE TABLE IF NOT EXISTS {table.loads} (version BIGINT PRIMARY KEY, "
        "run_id TEXT, files_sha256 TEXT, row_count BIGINT, replaced BIGINT, "
        "loaded_at TIMESTAMPTZ)"
    )
    (version,) = execute(
        f"INSERT INTO {table.loads} SELECT coalesce(max(version), 0) + 1, "
        f"{table.run_text}, '{run.files_sha256}', {run.rows}, {replaced}, now() "
        f"FROM {table.loads} RETURNING version"
    ).fetchone()
    return Loaded(str(version), replaced, nuls)


def _check_types(execute: Callable[[str], Any], table: SimpleNamespace) -> None:
    """Refuses a table whose columns have other types than the run."""
    there, here = (
        {
            column[0]: getattr(column, "type_display", str(column[1]))
            for column in execute(f"SELECT * FROM {name} LIMIT 0").description
        }
        for name in (table.name, table.staging)
    )
    for name, kind in here.items():
        if there.get(name, kind) != kind:
            raise DataError(
                f"the run does not fit into {table.name}: column {name!r} is {kind} in "
                f"the run, but {there[name]} there; load it into another table, or "
                f"run DROP VIEW IF EXISTS {table.flat_view}; ALTER TABLE {table.name} "
                f"ALTER COLUMN {table.dialect.quoted(name)} TYPE {kind}"
            )


@contextlib.contextmanager
def _connected(address: TableAddress) -> Iterator[Any]:
    """Opens a database, closes it at the end, and translates its errors. A transaction
    that has not ended is rolled back.
    """
    place, options = address.place, {}
    if address.scheme == DUCKDB:
        import duckdb as driver

        place = os.path.abspath(place)  # DuckDB would read ~ as the home folder.
        os.makedirs(os.path.dirname(place), exist_ok=True)
    else:
        import psycopg as driver

        options: Any = {"autocommit": True}
    try:
        connection = driver.connect(place, **options)
    except driver.Error as error:
        if address.scheme == DUCKDB:
            raise JobError(
                f"{address.place} cannot be opened ({_first_line(error)}); end the "
                "program that has it open and run the same command again, or name "
                "another file"
            ) from error
        raise UsageError(
            f"--table: PostgreSQL cannot be reached ({_first_line(error)}); check the "
            "address, and the variables PGHOST, PGUSER and PGPASSWORD"
        ) from error
    try:
        with connection:
            yield connection
    except driver.OperationalError as error:
        raise JobError(
            f"{address.identifier}: the database broke off the load, which left "
            "nothing half done; if another writer or a lost connection is the cause, "
            f"run the same command again ({_first_line(error)})"
        ) from error
    except driver.Error as error:
        raise DataError(
            f"the run does not fit into {address.identifier}: {_first_line(error)}; "
            "change the table, or load the run into another one"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
