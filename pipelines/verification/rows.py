"""The rows of a run: the schema and footer of each part, every row, and all together.

What is compared between rows goes into a table of DuckDB, which spills to a temporary
folder, so memory does not grow with the rows.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.quality.fallback import ABSTRACTIVE, SOURCE
from precis.pipelines.corpus.kept_values import parse_kept_fields
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.tables.flat_columns import flat_schema, is_flat
from precis.pipelines.tables.part_files import read_row_groups
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.verification.findings import Finding

if TYPE_CHECKING:
    import duckdb

# Columns whose value the manifest says, by the same names.
_CONSTANTS = (
    *("run_id", "settings_id", "schema_version", "model_id"),
    *("extractive_model_id", "keyphrase_model_id", "decode_id"),
)
_COLUMNS = (
    *("document_id", "source_file", "source_position", "content_sha256"),
    *("duplicate_of", "truncated", "summary_method", "quality_flags", "extractive"),
    *("abstractive_quality", "reused_from", *_CONSTANTS),
)
_CREATE = """
    CREATE TABLE rows (
        number INTEGER, part VARCHAR, row_group INTEGER, row BIGINT,
        document_id VARCHAR, source_file VARCHAR, source_position VARCHAR,
        content_sha256 VARCHAR, duplicate_of VARCHAR, truncated BOOLEAN,
        summary_method VARCHAR, quality_flags VARCHAR[], network_flags VARCHAR[]
    )
"""
_INSERT = """
    INSERT INTO rows SELECT
        $number, $part, $row_group, row, document_id, source_file, source_position,
        content_sha256, duplicate_of, truncated, summary_method, quality_flags,
        abstractive_quality.flags
    FROM batch
"""
# What is wrong with a row for which a condition holds.
_PROBLEMS = {
    "document_id is empty": "document_id = ''",
    "content_sha256 is no sha256": (
        "NOT regexp_full_match(content_sha256, '[0-9a-f]{64}')"
    ),
    "reused_from is no run_id of an earlier run": (
        "reused_from = $run_id OR NOT regexp_full_match(reused_from, '[0-9a-f]{16}')"
    ),
    **{
        f"{name} is not that of the manifest, {{{name}}}": (
            f"{name} IS DISTINCT FROM ${name}"
        )
        for name in _CONSTANTS
    },
    "a sentence ends before it starts, or starts before the article": (
        "len(list_filter(extractive, lambda s: s.start < 0 OR s.end < s.start)) > 0"
    ),
    "a sentence is not as long as its offsets say": (
        "len(list_filter(extractive, lambda s: s.end - s.start <> length(s.text))) > 0"
    ),
}
_REPEATED_KEYS = """
    SELECT part, row, 'its document has another row' FROM rows
    QUALIFY row_number() OVER (
        PARTITION BY document_id, source_file, source_position ORDER BY number, row
    ) > 1
    ORDER BY number, row
"""
_WRONG_DUPLICATES = """
    WITH ids AS (
        SELECT document_id, count(*) AS rows FROM rows GROUP BY document_id
    ), contents AS (SELECT DISTINCT document_id, content_sha256 FROM rows)
    SELECT part, row, CASE
        WHEN ids.rows IS NULL THEN 'duplicate_of names no document of the run'
        WHEN ids.rows = 1 AND r.document_id = duplicate_of
        THEN 'duplicate_of is its own document_id'
        WHEN contents.document_id IS NULL
        THEN 'duplicate_of names a document with another content_sha256'
    END AS problem
    FROM rows AS r
    LEFT JOIN ids ON ids.document_id = duplicate_of
    LEFT JOIN contents ON contents.document_id = duplicate_of
        AND contents.content_sha256 = r.content_sha256
    WHERE duplicate_of IS NOT NULL AND problem IS NOT NULL
        AND NOT (ids.rows IS NULL AND $has_lost)
    ORDER BY number, row
"""
_REPEATED_IDS = """
    SELECT document_id, sum(count(*) - 1) OVER () FROM rows GROUP BY document_id
    HAVING count(*) > 1 ORDER BY document_id LIMIT 3
"""
# The counts of a manifest, by what they count.
_COUNTS = {
    "rows": "SELECT source_file, count(*) FROM rows GROUP BY ALL",
    "duplicates": "SELECT source_file, count(duplicate_of) FROM rows GROUP BY ALL",
    "summary_methods": "SELECT summary_method, count(*) FROM rows GROUP BY ALL",
    "quality_flags": "SELECT unnest(quality_flags) AS f, count(*) FROM rows GROUP BY f",
    "fallbacks": f"""
        SELECT unnest(network_flags) AS flag, count(*) FROM rows
        WHERE summary_method NOT IN ('{ABSTRACTIVE}', '{SOURCE}') GROUP BY flag
    """,
    "truncated": "SELECT 'truncated', count(*) FILTER (truncated) FROM rows",
}


@contextlib.contextmanager
def open_rows() -> Iterator["duckdb.DuckDBPyConnection"]:
    """A database with an empty table of rows, which is removed at the end."""
    with open_database() as connection:
        connection.execute(_CREATE)
        yield connection


def add_part(
    connection: "duckdb.DuckDBPyConnection",
    folder: str,
    manifest: Mapping[str, Any],
    file: Mapping[str, Any],
) -> Iterator[Finding]:
    """Checks a part and each of its rows, and adds them to the table.

    Args:
      connection: of `open_rows`.
      folder: of the run.
      manifest: of the run.
      file: the part, as the manifest describes it.
    """
    name = file["file"]
    number = manifest["files"].index(file)
    try:
        with files.open_read(files.join(folder, name)) as opened:
            # Threads of Arrow may outlive the command and abort it at its end.
            parquet = pq.ParquetFile(opened, pre_buffer=False)
            problems = list(_file_problems(parquet, manifest, file))
            yield from (Finding(name, problem) for problem in problems)
            first = 0
            for group in range(parquet.num_row_groups if not problems else 0):
                rows = read_row_groups(parquet, [group], _COLUMNS)
                places = pa.array(range(first, first + len(rows)), pa.int64())
                connection.register("batch", rows.append_column("row", places))
                yield from _row_problems(connection, manifest, name)
                settings = {"number": number, "part": name, "row_group": group}
                connection.execute(_INSERT, settings)
                first += len(rows)
    except (pa.ArrowException, OSError) as error:
        yield Finding(name, f"cannot be read as Parquet: {error}")


def _file_problems(
    parquet: pq.ParquetFile, manifest: Mapping[str, Any], file: Mapping[str, Any]
) -> Iterator[str]:
    rows = parquet.metadata.num_rows
    if rows != file.get("rows"):
        yield f"has {rows} rows, and the manifest says {file.get('rows')}"
    yield from _schema_problems(parquet.schema_arrow, manifest, file)
    footer = parquet.schema_arrow.metadata or {}
    for name in ("run_id", "settings_id"):
        value = footer.get(f"precis.{name}".encode(), b"").decode(errors="replace")
        if value != manifest[name]:
            yield (
                f"its footer has the {name} {value or 'of no run'}, and the "
                f"manifest {manifest[name]}; it is of another run"
            )


def _schema_problems(
    schema: pa.Schema, manifest: Mapping[str, Any], file: Mapping[str, Any]
) -> Iterator[str]:
    partition = file.get("partition", {})
    columns = flat_schema(SUMMARY_SCHEMA) if is_flat(schema) else SUMMARY_SCHEMA
    expected = [field for field in columns if field.name not in partition]
    for position, field in enumerate(expected):
        if field.name not in schema.names:
            yield f"the column {field.name!r} is missing"
        elif position >= len(schema) or schema.names[position] != field.name:
            yield f"the column {field.name!r} stands at another place"
        elif not schema.field(position).equals(field, check_metadata=False):
            yield (
                f"the column {field.name!r} is {schema.field(position).type}, or "
                "nullable, other than the schema says"
            )
    flags = manifest["provenance"].get("flags", {})
    kept = {field.name for field in parse_kept_fields(flags.get("keep_fields", ""))}
    for name in schema.names[len(expected) :]:
        if name not in kept and name not in SUMMARY_SCHEMA.names:
            yield f"the column {name!r} is neither of the schema nor a kept field"


def _row_problems(
    connection: "duckdb.DuckDBPyConnection", manifest: Mapping[str, Any], part: str
) -> Iterator[Finding]:
    """What is wrong with single rows of the batch."""
    values = {name: manifest.get(name) for name in _CONSTANTS}
    for problem, condition in _PROBLEMS.items():
        used = {name: v for name, v in values.items() if f"${name}" in condition}
        query = f"SELECT row FROM batch WHERE {condition} ORDER BY row"
        for (row,) in connection.execute(query, used).fetchall():
            yield Finding(part, problem.format(**values), f"row {row}")


def compare_rows(
    connection: "duckdb.DuckDBPyConnection", *, has_lost: bool
) -> Iterator[Finding]:
    """Documents with two rows, and rows that name a document that is not there; as a
    note, how many rows repeat an id.

    Args:
      connection: of `open_rows`, with the rows of all parts.
      has_lost: whether documents without a row may be named, too.
    """
    for query, settings in (
        (_REPEATED_KEYS, {}),
        (_WRONG_DUPLICATES, {"has_lost": has_lost}),
    ):
        for part, row, problem in connection.execute(query, settings).fetchall():
            yield Finding(part, problem, f"row {row}")
    repeated = connection.execute(_REPEATED_IDS).fetchall()
    if repeated:
        named = ", ".join(repr(name) for name, _ in repeated)
        yield Finding(
            "document_id",
            f"{repeated[0][1]} rows have that of a row before them, such as {named}; "
            "it alone is no key of these rows",
            is_note=True,
        )


def count_rows(connection: "duckdb.DuckDBPyConnection") -> dict[str, dict[str, int]]:
    """The counts of a manifest, as the rows have them."""
    return {
        name: {key: n for key, n in connection.execute(query).fetchall() if n}
        for name, query in _COUNTS.items()
    }
