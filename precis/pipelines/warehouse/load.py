"""`precis load`: loads a run into a table, once and as a whole."""

from typing import Any, NamedTuple

from precis.model.config import comma_list
from precis.model.progress.stages import stage
from precis.pipelines.run.options import read_flags
from precis.pipelines.run.result_files import check_apart
from precis.pipelines.warehouse.options import (
    DELTA,
    DUCKDB,
    ICEBERG,
    LOAD,
    PARQUET,
    POSTGRESQL,
    read_address,
)
from precis.pipelines.warehouse.rows import (
    Loaded,
    open_run_of_documents,
    with_columns,
)


class TableResult(NamedTuple):
    """The result of loading a run.

    Attributes:
      run_id: the id of the run.
      version: what holds the run: the id of an Iceberg snapshot, the version of a
          Delta table, or the number of the load into a database. Empty if the run has
          no rows.
      rows: the number of rows of the run.
      replaced: the number of rows of earlier runs with a key of this run.
      was_noop: whether the table already had the run, so nothing was written.
      replaced_nuls: how many NUL characters were replaced by U+FFFD, for PostgreSQL.
    """

    run_id: str
    version: str
    rows: int
    replaced: int
    was_noop: bool
    replaced_nuls: int = 0


def load(**flags: Any) -> TableResult:
    """Loads a finished run into a table as a whole; see docs/RESULTS.md.

    Table rows with the same key are replaced; other rows stay. Loading the run again
    changes nothing.

    Args:
      **flags: the fields of `LoadOptions`.

    Returns:
      The version of the table, and the number of replaced rows.

    Raises:
      UsageError: the run is not finished or has no rows of documents, the catalogue or
          database cannot be opened, or the table cannot hold the run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: another writer changed the table at the same time.
    """
    (options,) = read_flags(LOAD, flags)
    address = read_address(options.table)
    if address.scheme not in (ICEBERG, POSTGRESQL):
        check_apart(address.place, flag="--table", result=options.run)
    # Each format needs the packages of an extra.
    if address.scheme == DELTA:
        from precis.pipelines.warehouse.delta import load_delta as load_rows
    elif address.scheme == PARQUET:
        from precis.pipelines.warehouse.flat_file import load_file as load_rows
    elif address.scheme in (DUCKDB, POSTGRESQL):
        from precis.pipelines.warehouse.database import load_database as load_rows
    else:
        from precis.pipelines.warehouse.iceberg import load_iceberg as load_rows
    run = open_run_of_documents(options.run)
    loaded = Loaded("", None)
    if run.rows:
        run = with_columns(run, options.key, comma_list(options.columns))
        with stage("load", total=run.rows, unit="rows"):
            loaded = load_rows(run, address, options.key)
    version, replaced, nuls = loaded
    was_noop = replaced is None
    return TableResult(run.run_id, version, run.rows, replaced or 0, was_noop, nuls)
