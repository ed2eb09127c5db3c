"""Loads a run into one Parquet file without nested columns."""

import itertools
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.tables.flat_columns import flat_schema, flatten
from precis.pipelines.warehouse import rows
from precis.pipelines.warehouse.options import TableAddress

_BATCHES_A_ROW_GROUP = 16


def load_file(
    run: FinishedRun, address: TableAddress, key: Sequence[str]
) -> rows.Loaded:
    """Writes the rows of a run, unless the file already has them.

    Raises:
      UsageError: the file exists and holds something else.
      DataError: the run is damaged, or its key is not unique.
    """
    path, schema = address.place, flat_schema(run.schema)
    schema = schema.with_metadata({**(schema.metadata or {}), **rows.run_facts(run)})
    if files.exists(path):
        if _metadata(path) == schema.metadata:
            return rows.Loaded("1", None)
        raise UsageError(
            f"--table: {path} exists and holds something else; remove it, or name "
            "another file"
        )
    rows.check_keys(run, key)
    batches = rows.counted_rows(run)
    groups = iter(lambda: [*itertools.islice(batches, _BATCHES_A_ROW_GROUP)], [])
    tables = (flatten(pa.Table.from_batches(group)).cast(schema) for group in groups)
    write_parquet(path, tables, schema)
    return rows.Loaded("1", 0)


def _metadata(path: str) -> dict[bytes, bytes] | None:
    """The metadata of a Parquet file; None if it is something else."""
    try:
        with files.open_read(path) as file:
            return pq.read_schema(file).metadata
    except (pa.ArrowInvalid, IsADirectoryError):
        return None
