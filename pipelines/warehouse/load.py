"""`precis load`: a finished run -> one snapshot of a warehouse table."""

from typing import Any

from precis.pipelines.flags.flags import read_flags
from precis.pipelines.options.load import LOAD
from precis.pipelines.warehouse.load_run import load_run
from precis.pipelines.warehouse.table_result import TableResult


def load(**flags: Any) -> TableResult:
    """Loads a finished run into a table, once; docs/WAREHOUSE.md says how.

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
