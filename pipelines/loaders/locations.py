"""Where a warehouse sees the files of a run, and how it is told to read them."""

import os
from collections.abc import Sequence

from precis.model import files
from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.pipelines.corpus.listing import absolute_path
from precis.pipelines.loaders.dialects import Dialect, literal
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DATABRICKS,
    DUCKDB,
    POSTGRESQL,
    SNOWFLAKE,
    LoadersOptions,
)

_CLICKHOUSE_WILDCARDS = "*?{}"
# The address over HTTP of a bucket, by the scheme of its URLs.
_CLICKHOUSE_BUCKETS = {
    "s3": "s3('https://{bucket}.s3.amazonaws.com/{rest}'",
    "gs": "gcs('https://storage.googleapis.com/{bucket}/{rest}'",
}


def location_of(run_folder: str, location: str, dialect: Dialect) -> str:
    """The folder of a run as the warehouse sees it.

    Args:
      run_folder: as precis sees it.
      location: the value of --location, or "".
      dialect: of the warehouse.

    Raises:
      UsageError: the warehouse reads no such place.
    """
    place = location or run_folder
    scheme = place.partition("://")[0] if "://" in place else ""
    name = dialect.name
    if name == POSTGRESQL:
        if location:
            raise UsageError(
                "--location is not for PostgreSQL, which reads the file of "
                "--copy_rows; leave it out"
            )
        return ""
    if name == BIGQUERY and scheme != "gs":
        raise UsageError(
            f"BigQuery reads no {place}; copy the run to Cloud Storage and give "
            "--location gs://BUCKET/FOLDER"
        )
    if name == SNOWFLAKE and not place.startswith("@"):
        raise UsageError(
            f"Snowflake reads the files of a stage, not {place}; put the run on one "
            "and give --location @STAGE/FOLDER"
        )
    if name == DATABRICKS and not location and not scheme:
        raise UsageError(
            f"Databricks does not see {place}; copy the run to cloud storage or a "
            "volume and give --location, as in /Volumes/news/runs/FOLDER"
        )
    if name == CLICKHOUSE and scheme not in ("", *_CLICKHOUSE_BUCKETS):
        raise UsageError(
            f"--location {place}: statements for ClickHouse read paths, s3:// and "
            "gs://; copy the run to one of them"
        )
    if name == CLICKHOUSE and any(sign in place for sign in _CLICKHOUSE_WILDCARDS):
        raise UsageError(
            f"--location {place} holds one of {' '.join(_CLICKHOUSE_WILDCARDS)}, which "
            "ClickHouse takes for a pattern; give the folder another name"
        )
    if name in (DUCKDB, CLICKHOUSE) and files.is_local(place):
        return os.path.abspath(absolute_path(place))
    return place


def warn_of_paths(options: LoadersOptions) -> None:
    """Warns of a path of this machine, which a ClickHouse server may not read.

    Who gives --location knows the places that the server reads.
    """
    is_path = not options.location and files.is_local(options.run)
    if options.for_ == CLICKHOUSE and is_path:
        say(
            "precis loaders: warning: a ClickHouse server reads files only below its "
            f"user_files_path, and {options.run} may not be there; copy the run and "
            "give --location, a folder there, s3:// or gs://, or run the statements "
            "with clickhouse-local, which reads every path"
        )


def as_clickhouse_table(
    folder: str, names: Sequence[str], structure: str, dialect: Dialect
) -> str:
    """The files of a folder as a table of ClickHouse."""
    name = f"{{{','.join(names)}}}" if len(names) > 1 else names[0]
    path = f"{folder}/{name}"
    scheme, separator, rest = path.partition("://")
    opening = f"file({literal(path, dialect)}"
    if separator:
        bucket, _, rest = rest.partition("/")
        rest = literal(rest, dialect)[1:-1]
        opening = _CLICKHOUSE_BUCKETS[scheme].format(bucket=bucket, rest=rest)
    return f"{opening}, 'Parquet', {literal(structure, dialect)})"
