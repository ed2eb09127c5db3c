"""`precis load`: a run -> a table of Iceberg or Delta Lake, as one snapshot."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from precis.model.progress.stages import stage
from precis.pipelines.run.options import read_flags
from precis.pipelines.tables.finished_run import FinishedRun, open_run
from precis.pipelines.warehouse.options import DELTA, LOAD, TableAddress, read_address

DEFAULT_KEY = ("document_id", "source_file", "source_position")


class TableResult(NamedTuple):
    """A load of a run.

    Attributes:
      run_id: the run.
      version: the snapshot of the table that holds the run: the id of an Iceberg
          snapshot, the version of a Delta table. Empty if the run has no rows.
      rows: the rows of the run.
      replaced: the rows of earlier runs that had a key of this run.
      was_noop: whether the table had the run already, and nothing was written.
    """

    run_id: str
    version: str
    rows: int
    replaced: int
    was_noop: bool


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
      JobError: another writer changed the table at the same time.
    """
    address = read_address(table)
    load_rows = _loader(address)
    run = open_run(run_folder)
    version, replaced = "", None
    if run.rows:
        with stage("load", total=run.rows, unit="rows"):
            version, replaced = load_rows(run, address, key)
    return TableResult(run.run_id, version, run.rows, replaced or 0, replaced is None)


def _loader(
    address: TableAddress,
) -> Callable[[FinishedRun, TableAddress, Sequence[str]], tuple[str, int | None]]:
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
      UsageError, DataError, JobError: as of `load_run`.
    """
    (options,) = read_flags(LOAD, flags)
    return load_run(options.run, options.table, key=options.key)
