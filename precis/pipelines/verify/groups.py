"""Checks rows of groups in DuckDB: their content, and against the rows of their
documents.

The offsets of a sentence are right if the row of its document has the same sentence;
the rows of documents are compared with the corpus.
"""

from collections.abc import Iterator, Mapping, Set
from typing import Any

import duckdb
import pyarrow as pa

from precis.pipelines.run.key_tables import insert_rows
from precis.pipelines.tables.finished_run import read_run
from precis.pipelines.tables.group_field import parse_group_field
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.verify.folder import Finding
from precis.pipelines.verify.rows import KEYED_GROUPS, ask

_OF_DOCUMENTS = ("document_id", "source_file", "source_position", "extractive")
_WRONG_GROUPS = """
    SELECT part, 'run_id differs from the manifest', row
    FROM group_rows WHERE run_id IS DISTINCT FROM $run_id
    UNION ALL SELECT part, 'its summary does not have one line per sentence', row
    FROM group_rows
    WHERE len(sentences) != if(summary = '', 0, len(string_split(summary, chr(10))))
    UNION ALL SELECT part, 'a text is longer than the limit of the run', row
    FROM group_rows WHERE is_too_long
    UNION ALL SELECT part, 'its group has another row', row FROM (
        FROM group_rows
        QUALIFY row_number() OVER (PARTITION BY key ORDER BY part, row) > 1
    )
    ORDER BY ALL
"""
_WRONG_MEMBERS = """
    WITH counted AS (SELECT key, count(*) AS found FROM members GROUP BY key),
    known AS (
        SELECT key, document_id, source_file, source_position,
            unnest(extractive, recursive := true) FROM members
    ), stated AS (
        SELECT part, row, key, unnest(sentences, recursive := true) FROM group_rows
    )
    SELECT part, concat('members is ', members, ', but the documents with a row are ',
        coalesce(found, 0)), concat('row ', row)
    FROM group_rows LEFT JOIN counted USING (key) WHERE members IS DISTINCT FROM found
    UNION ALL SELECT 'groups', 'a group has no row', if(key = '', 'null', key[2:])
    FROM counted ANTI JOIN group_rows USING (key)
    UNION ALL SELECT DISTINCT part, 'a sentence is not in the row of its document',
        concat('row ', row)
    FROM stated ANTI JOIN known USING (
        key, document_id, source_file, source_position, "start", "end", text
    )
    ORDER BY ALL
"""


def check_groups(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    manifest: Mapping[str, Any],
    damaged: Set[str],
    *,
    are_rows_complete: bool,
) -> Iterator[Finding]:
    """Checks the rows of groups of a run.

    Args:
      connection: a database with the tables of `rows.read_files`.
      folder: the folder of the run.
      manifest: the manifest of a run with groups.
      damaged: the names of files that were not read.
      are_rows_complete: whether the rows of all documents can be read.
    """
    yield from ask(connection, _WRONG_GROUPS, run_id=str(manifest["run_id"]))
    groups = manifest["groups"]
    if not damaged.isdisjoint(file["file"] for file in groups["files"]):
        return
    query = "SELECT count(*), coalesce(sum(members), 0)::BIGINT FROM group_rows"
    found = connection.execute(query).fetchall()[0]
    counts = [manifest["counts"][name] for name in ("written", "reused", "duplicates")]
    for name, listed, in_files in (
        ("groups", groups["counts"]["groups"], found[0]),
        ("members", groups["counts"]["members"], found[1]),
        ("members", sum(counts), found[1]),
    ):
        if listed != in_files:
            problem = f"{name} of groups: {listed}, but the files have {in_files}"
            yield Finding("manifest.json", problem)
    if are_rows_complete and manifest["files"]:
        _load_members(connection, folder, manifest)
        yield from ask(connection, _WRONG_MEMBERS)


def _load_members(
    connection: duckdb.DuckDBPyConnection, folder: str, manifest: Mapping[str, Any]
) -> None:
    """Creates the table `members` from the rows of documents."""
    of_documents = pa.schema([SUMMARY_SCHEMA.field(name) for name in _OF_DOCUMENTS])
    empty = of_documents.append(pa.field("group_id", pa.string())).empty_table()
    insert_rows(connection, "members", empty, KEYED_GROUPS)
    field = parse_group_field(manifest["groups"]["group_by"])
    names = list(dict.fromkeys([*_OF_DOCUMENTS, field.name]))
    for rows in read_run(folder).tables(names):
        ids = field.ids(rows.column(field.name))
        rows = rows.select(_OF_DOCUMENTS).append_column("group_id", ids)
        insert_rows(connection, "members", rows, KEYED_GROUPS)
