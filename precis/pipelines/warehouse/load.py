"""`precis load`: loads a run into an Iceberg or Delta Lake table, as one snapshot."""

from typing import Any, NamedTuple

from precis.model.progress.stages import stage
from precis.pipelines.run.options import read_flags
from precis.pipelines.warehouse.options import DELTA, LOAD, read_address
from precis.pipelines.warehouse.rows import open_run_of_documents


class TableResult(NamedTuple):
    """The result of loading a run.

    Attributes:
      run_id: the id of the run.
      version: the snapshot that holds the run: the id of an Iceberg snapshot or the
          version of a Delta table. Empty if the run has no rows.
      rows: the number of rows of the run.
      replaced: the number of rows of earlier runs with a key of this run.
      was_noop: whether the table already had the run, so nothing was written.
    """

    run_id: str
    version: str
    rows: int
    replaced: int
    was_noop: bool


def load(**flags: Any) -> TableResult:
    """Loads a finished run into a table as one snapshot; see docs/RESULTS.md.

    Table rows with the same key are replaced; other rows stay. Loading the run again
    changes nothing.

    Args:
      **flags: the fields of `LoadOptions`.

    Returns:
      The snapshot of the table, and the number of replaced rows.

    Raises:
      UsageError: the run is not finished or has no rows of documents, the catalogue
          does not exist, or the table cannot hold the run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: another writer changed the table at the same time.
    """
    (options,) = read_flags(LOAD, flags)
    address = read_address(options.table)
    # Each format needs the packages of an extra.
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
