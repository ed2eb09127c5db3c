"""What loads of all formats share: the keys of the rows, and what a load did."""

import dataclasses
from collections.abc import Iterator, Sequence

import pyarrow as pa

from precis.model.errors import DataError, UsageError
from precis.model.progress.counters import count
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.tables.finished_run import FinishedRun


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


def run_facts(run: FinishedRun) -> dict[str, str]:
    """What a snapshot says of the run that it holds."""
    fingerprint = run.manifest.get("fingerprint", run.run_id)
    return {
        "precis.run_id": run.run_id,
        "precis.fingerprint": str(fingerprint),
        "precis.version": str(run.manifest["precis_version"]),
        "precis.schema_version": str(run.manifest["schema_version"]),
        "precis.files_sha256": run.files_sha256,
    }


def counted_rows(run: FinishedRun) -> Iterator[pa.RecordBatch]:
    """The rows of a run, counted for the display as they are taken."""
    for batch in run.batches():
        yield batch
        count(documents=batch.num_rows)


def key_rows(run: FinishedRun, key: Sequence[str]) -> pa.RecordBatchReader:
    """The columns of the key of all rows, in batches."""
    schema = pa.schema([run.schema.field(name) for name in key])
    return pa.RecordBatchReader.from_batches(schema, run.batches(key))


def sql_names(names: Sequence[str]) -> str:
    """Names of columns as DuckDB reads them."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)


def check_keys(
    run: FinishedRun, key: Sequence[str], *, may_be_null: bool = False
) -> None:
    """Refuses a damaged run, and columns that do not tell its rows apart.

    Args:
      run: the run.
      key: the columns.
      may_be_null: whether a key may be null; two nulls are equal.

    Raises:
      UsageError: a column that the run does not have, or whose type makes no key.
      DataError: the run is damaged, two rows have the same key, or a key is null.
    """
    run.check_parts()
    for name in key:
        if name not in run.schema.names:
            raise UsageError(
                f"--table_key: {run.folder} has no column {name!r}; it has "
                f"{', '.join(run.schema.names)}"
            )
        kind = run.schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise UsageError(
                f"--table_key: column {name!r} is {kind}; a key is made of strings, "
                "integers and dates"
            )
    with open_database() as connection:
        connection.register("run", key_rows(run, key))
        names = sql_names(key)
        connection.execute(
            f"CREATE TABLE keys AS SELECT {names}, count(*) AS count FROM run "
            f"GROUP BY {names}"
        )
        for name in () if may_be_null else key:
            nulls = f"FROM keys WHERE {sql_names([name])} IS NULL LIMIT 1"
            if connection.execute(nulls).fetchall():
                raise DataError(
                    f"{run.folder}: column {name!r} of the key is null in at least one "
                    "row; name other columns with --table_key"
                )
        repeated = connection.execute(
            "SELECT sum(count - 1) OVER (), * FROM keys WHERE count > 1 "
            "ORDER BY ALL LIMIT 1"
        ).fetchone()
    if repeated:
        values = zip(key, repeated[1:], strict=False)
        named = ", ".join(f"{name} {value!r}" for name, value in values)
        raise DataError(
            f"{run.folder}: {named} is the key of more than one row, and "
            f"{repeated[0]} rows repeat a key; make the ids of the corpus unique, "
            "which --on_duplicate_id fail checks, or name a key with the place of a "
            "document, --table_key document_id,source_file,source_position"
        )
