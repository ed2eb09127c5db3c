"""A run into the table of an address."""

from collections.abc import Sequence

from precis.model.errors import UsageError
from precis.pipelines.warehouse.address import DELTA, read_address
from precis.pipelines.warehouse.finished_run import open_run
from precis.pipelines.warehouse.table_result import TableResult

DEFAULT_KEY = ("document_id", "split")


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
    if not key:
        raise UsageError("--table_key is empty; name the columns of the key")
    run = open_run(run_folder)
    if not run.rows:
        return TableResult(run_id=run.run_id, version="", rows=0, was_noop=True)
    # The packages of a format are extras of the distribution.
    if address.scheme == DELTA:
        from precis.pipelines.warehouse.delta import load_delta

        return load_delta(run, address, key)
    from precis.pipelines.warehouse.iceberg import load_iceberg

    return load_iceberg(run, address, key)
