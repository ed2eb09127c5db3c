"""The command lines that run the statements of a folder."""

import os
import shlex
import sys
from collections.abc import Iterable

from precis.model import files
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DUCKDB,
    POSTGRESQL,
    SNOWFLAKE,
)

_DUCKDB_SCRIPT = (
    "import duckdb, pathlib; connection = duckdb.connect('warehouse.duckdb'); "
    "[connection.execute(pathlib.Path(path).read_text('utf-8')) for path in {paths}]"
)


def client_command(warehouse: str, folder: str, names: Iterable[str]) -> list[str]:
    """A command line that makes the table and loads the run.

    It is empty for Databricks, and for files that do not lie on this machine.

    Args:
      warehouse: as --for has it.
      folder: with the files.
      names: of the files.
    """
    if not files.is_local(folder):
        return []
    folder = folder.removeprefix("file://")
    paths = [files.join(folder, name) for name in names if name.endswith(".sql")]
    if warehouse == DUCKDB:
        script = _DUCKDB_SCRIPT.format(paths=[os.path.abspath(path) for path in paths])
        return [sys.executable, "-c", script]
    if warehouse == POSTGRESQL:
        flags = [word for path in paths for word in ("--file", path)]
        stop = "--set=ON_ERROR_STOP=1"
        return ["psql", "--single-transaction", stop, *flags]
    if warehouse == CLICKHOUSE:
        queries = [word for path in paths for word in ("--queries-file", path)]
        return ["clickhouse-client", *queries]
    if warehouse == SNOWFLAKE:
        queries = [word for path in paths for word in ("--filename", path)]
        return ["snow", "sql", *queries]
    if warehouse == BIGQUERY:
        read = shlex.join(["cat", *paths])
        return ["sh", "-c", f"{read} | bq query --use_legacy_sql=false"]
    return []
