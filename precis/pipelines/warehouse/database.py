"""Loads a run into a table of DuckDB or PostgreSQL, in one transaction.

    summaries          the table
    summaries_loads    a row for each load, which names the run
    summaries_flat     a view of all columns; further views have the items of lists

The statements are those of `precis loaders`. The rows go through the driver, so that
the database reads no file of the run.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
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
    dialect = Dialect(address.scheme)
    table = define_table(
        run,
        address.identifier,
        dialect,
        key=key,
        schema=optional_schema(run, key),
    )
    with _connected(address) as connection:
        if version := _earlier_load(connection, run, table, dialect):
            return Loaded(version, None)
        check_keys(run, key)
        connection.execute("BEGIN")
        if address.scheme != DUCKDB:  # DuckDB locks its file.
            lock = f"hashtext({dialect.literal(table.name)})"
            connection.execute(f"SELECT pg_advisory_xact_lock({lock})")
        # Another load may have ended meanwhile.
        if version := _earlier_load(connection, run, table, dialect):
            return Loaded(version, None)
        loaded = _load(connection, run, table, dialect)
        connection.execute("COMMIT")
        return loaded


def _earlier_load(
    connection: Any, run: FinishedRun, table: SimpleNamespace, dialect: Dialect
) -> str:
    """The number of the load of the run into the table; "" if there was none."""
    if not all(_columns(connection, table, dialect).values()):
        return ""
    found = connection.execute(
        f"SELECT version FROM {table.loads} WHERE run_id = "
        f"{dialect.literal(run.run_id)} AND files_sha256 = '{run.files_sha256}'"
    ).fetchone()
    return str(found[0]) if found else ""


def _columns(
    connection: Any, table: SimpleNamespace, dialect: Dialect
) -> Mapping[str, set[str]]:
    """The names of the columns of the table and of its list of loads; none of a table
    that does not exist.
    """
    schema = dialect.literal(table.schema) if table.schema else "current_schema()"
    columns: dict[str, set[str]] = {table.plain_name: set(), table.loads_name: set()}
    names = ", ".join(map(dialect.literal, columns))
    for name, column in connection.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        f"WHERE table_schema = {schema} AND table_name IN ({names})"
    ).fetchall():
        columns[name].add(column)
    return columns


def _load(
    connection: Any, run: FinishedRun, table: SimpleNamespace, dialect: Dialect
) -> Loaded:
    """Loads a run in the transaction that has begun."""
    execute = connection.execute
    there = _columns(connection, table, dialect)[table.plain_name]
    if not there:  # Or it was dropped, and the list of its loads was not.
        if (
            table.schema
            and not execute(
                "SELECT 1 FROM information_schema.schemata "
                f"WHERE schema_name = {dialect.literal(table.schema)}"
            ).fetchone()
        ):
            execute(f"CREATE SCHEMA {dialect.quoted(table.schema)}")
        execute(f"DROP TABLE IF EXISTS {table.loads}")
    for macro in ("create", "stage"):
        execute(render(table, dialect, macro))
    _check_types(connection, table, dialect)
    names = ", ".join(table.names)
    if dialect.name == DUCKDB:
        rows = pa.RecordBatchReader.from_batches(run.schema, counted_rows(run))
        connection.register(_ROWS, rows)
        execute(f"INSERT INTO {table.staging} ({names}) SELECT {names} FROM {_ROWS}")
        nuls = 0
    else:
        into = f"COPY {table.staging} ({names}) FROM STDIN WITH (ENCODING 'UTF8')"
        with connection.cursor().copy(into) as copy:
            nuls = copy_rows(counted_rows(run), copy.write)
    (replaced,) = execute(
        f"SELECT count(*) FROM {table.staging} JOIN {table.name} "
        f"USING ({', '.join(table.key_names)})"
    ).fetchone()
    execute(render(table, dialect, "merge"))
    # The views of a part of the columns would lack the others.
    if not run.columns or {*run.schema.names} - there:
        execute(render(table, dialect, "view"))
    execute(
        f"CREATE TABLE IF NOT EXISTS {table.loads} (version BIGINT PRIMARY KEY, "
        "run_id TEXT, files_sha256 TEXT, row_count BIGINT, replaced BIGINT, "
        "loaded_at TIMESTAMPTZ)"
    )
    (version,) = execute(
        f"INSERT INTO {table.loads} SELECT coalesce(max(version), 0) + 1, "
        f"{dialect.literal(run.run_id)}, '{run.files_sha256}', {run.rows}, {replaced}, "
        f"now() FROM {table.loads} RETURNING version"
    ).fetchone()
    return Loaded(str(version), replaced, nuls)


def _check_types(connection: Any, table: SimpleNamespace, dialect: Dialect) -> None:
    """Refuses a table whose columns have other types than the run."""
    there, here = (
        {
            column[0]: getattr(column, "type_display", str(column[1]))
            for column in connection.execute(f"SELECT * FROM {name}").description
        }
        for name in (f"{table.name} LIMIT 0", table.staging)
    )
    for name, kind in here.items():
        if there.get(name, kind) != kind:
            raise DataError(
                f"the run does not fit into {table.name}: column {name!r} is {kind} in "
                f"the run, but {there[name]} there; load it into another table, or run "
                f"ALTER TABLE {table.name} ALTER COLUMN {dialect.quoted(name)} "
                f"TYPE {kind}"
            )


@contextlib.contextmanager
def _connected(address: TableAddress) -> Iterator[Any]:
    """Opens a database, closes it at the end, and translates its errors. A transaction
    that has not ended is rolled back.
    """
    is_duckdb = address.scheme == DUCKDB
    try:
        if is_duckdb:
            import duckdb as driver

            os.makedirs(os.path.dirname(os.path.abspath(address.place)), exist_ok=True)
            connection = driver.connect(address.place)
        else:
            import psycopg as driver

            connection = driver.connect(address.place, autocommit=True)
    except driver.Error as error:
        reason = str(error).partition("\n")[0]
        if is_duckdb:
            raise JobError(
                f"{address.place} cannot be opened ({reason}); end the program that "
                "has it open and run the same command again, or name another file"
            ) from error
        raise UsageError(
            f"--table: PostgreSQL cannot be reached ({reason}); check the address, and "
            "the variables PGHOST, PGUSER and PGPASSWORD"
        ) from error
    with connection:
        try:
            yield connection
        except driver.OperationalError as error:
            raise JobError(
                f"{address.identifier}: the database broke off the load, which left "
                "nothing half done; if another writer or a lost connection is the "
                "cause, run the same command again "
                f"({type(error).__name__}: {str(error).partition(chr(10))[0]})"
            ) from error
        except driver.Error as error:
            raise DataError(
                f"the run does not fit into {address.identifier}: "
                f"{str(error).partition(chr(10))[0]}; change the table, or load the "
                "run into another one"
            ) from error
