"""What a load did to a table."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableResult:
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
    replaced: int = 0
    was_noop: bool = False
