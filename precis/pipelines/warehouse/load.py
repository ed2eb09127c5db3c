"""`precis load`: a run -> a table of Iceberg or Delta Lake, as one snapshot."""

from typing import Any, NamedTuple

from precis.model.progress.stages import stage
from precis.pipelines.run.options import read_flags
from precis.pipelines.warehouse.options import DELTA, LOAD, read_address
from precis.pipelines.warehouse.rows import open_run_of_documents


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


def load(**flags: Any) -> TableResult:
    """Makes a finished run one snapshot of a table; docs/RESULTS.md says how.

    Rows of the table with the same key are replaced, the others stay. A second load of
    the run changes nothing.

    Args:
      **flags: the fields of `LoadOptions`.

    Returns:
      The snapshot of the table and what it replaced.

    Raises:
      UsageError: no finished run with rows of documents, no such catalogue, or a table
          that takes no such run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: another writer changed the table at the same time.
    """
    (options,) = read_flags(LOAD, flags)
    address = read_address(options.table)
    # The packages of each format are an extra.
    if address.scheme == DELTA:
        from precis.pipelines.warehouse.delta import load_delta as load_rows
    else:
        from precis.pipelines.warehouse.iceberg import load_iceberg as load_rows
    run = open_run_of_documents(options.run)
    version, replaced = "", None
    if run.rows:
        with stage("load", total=run.rows, unit="rows"):
            version, replaced = load_rows(run, address, options.key)
    return TableResult(run.run_id, version, run.rows, replaced or 0, replaced is None)
