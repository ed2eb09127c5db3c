"""`precis load`: a run -> a table of Iceberg or Delta Lake, as one snapshot."""

from collections.abc import Callable, Sequence
from typing import Any

from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.pipelines.run.options import read_flags
from precis.pipelines.tables.finished_run import FinishedRun, open_run
from precis.pipelines.warehouse.options import DELTA, LOAD, TableAddress, read_address
from precis.pipelines.warehouse.rows import TableResult

DEFAULT_KEY = ("document_id", "source_file", "source_position")


def load_run(
    run_folder: str, table: str, *, key: Sequence[str] = DEFAULT_KEY
) -> TableResult:
    """Makes a finished run one snapshot of a table.

    Rows of the table with the same key are replaced, the others stay. A second load of
    the run changes nothing.

    Args:
      run_folder: the --output of `precis summarize`, a path or URL.
      table: as `address` describes it.
      key: the columns that tell rows apart.

    Raises:
      UsageError: no finished run, no such catalogue, or a table that takes no such run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: other writers changed the table during every attempt.
    """
    address = read_address(table)
    loader = _loader(address)
    if not key:
        raise UsageError("--table_key is empty; name the columns of the key")
    run = open_run(run_folder)
    if not run.rows:
        return TableResult(run_id=run.run_id, version="", rows=0, was_noop=True)
    with stage("load", total=run.rows, unit="rows"):
        return loader(run, address, key)


def check_table(table: str) -> None:
    """Checks before a run begins that its table can be reached.

    Raises:
      UsageError: no such address or catalogue.
    """
    address = read_address(table)
    _loader(address)
    if address.scheme != DELTA:
        from precis.pipelines.warehouse.iceberg import open_catalog

        open_catalog(address)


def _loader(
    address: TableAddress,
) -> Callable[[FinishedRun, TableAddress, Sequence[str]], TableResult]:
    """The function for the format of a table, whose packages are an extra."""
    if address.scheme == DELTA:
        from precis.pipelines.warehouse.delta import load_delta

        return load_delta
    from precis.pipelines.warehouse.iceberg import load_iceberg

    return load_iceberg


def load(**flags: Any) -> TableResult:
    """Loads a finished run into a table, once; docs/RESULTS.md says how.

    Args:
      **flags: the fields of `LoadOptions`.

    Returns:
      The snapshot of the table and what it replaced.

    Raises:
      UsageError: no finished run, no such catalogue, or a table that takes no such run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: other writers changed the table at the same time.
    """
    (options,) = read_flags(LOAD, flags)
    return load_run(options.run, options.table, key=options.key)
