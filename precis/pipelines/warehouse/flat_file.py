"""Loads a run into one Parquet file without nested columns."""

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.run.result_files import check_apart
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.tables.flat_columns import flat_schema, flatten
from precis.pipelines.warehouse.options import TableAddress
from precis.pipelines.warehouse.rows import (
    Loaded,
    check_keys,
    counted_rows,
    run_facts,
)

_BATCHES_A_ROW_GROUP = 16


def load_file(run: FinishedRun, address: TableAddress, key: Sequence[str]) -> Loaded:
    """Writes the rows of a run, unless the file already has them.

    Raises:
      UsageError: the file exists and holds something else, or lies in the run.
      DataError: the run is damaged, or its key is not unique.
    """
    path, facts = address.place, run_facts(run)
    check_apart(path, flag="--table", result=run.folder)
    if files.exists(path):
        if _facts(path).items() >= facts.items():
            return Loaded("1", None)
        raise UsageError(
            f"--table: {path} exists and holds something else; remove it, or name "
            "another file"
        )
    check_keys(run, key)
    flat = flat_schema(run.schema)
    flat = flat.with_metadata({**(flat.metadata or {}), **facts})

    def tables() -> Iterator[pa.Table]:
        rows = counted_rows(run)
        while batches := list(itertools.islice(rows, _BATCHES_A_ROW_GROUP)):
            yield flatten(pa.Table.from_batches(batches)).cast(flat)

    write_parquet(path, tables(), flat)
    return Loaded("1", 0)


def _facts(path: str) -> dict[str, str]:
    """The metadata of a Parquet file; none of another file."""
    try:
        with files.open_read(path) as file:
            metadata = pq.read_schema(file).metadata or {}
    except (pa.ArrowInvalid, IsADirectoryError):
        return {}
    return {name.decode(): value.decode() for name, value in metadata.items()}
