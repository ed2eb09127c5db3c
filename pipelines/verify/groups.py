"""The rows of groups in DuckDB, and what is wrong with them: in themselves, and beside
the rows of their documents.

The offsets of a sentence hold where the row of its document has the same sentence;
those of documents are compared with the corpus.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from precis.model import files
from precis.pipelines.tables.group_field import parse_group_field
from precis.pipelines.tables.part_files import read_part
from precis.pipelines.tables.schema import GROUP_SCHEMA, SUMMARY_SCHEMA
from precis.pipelines.verify.folder import Finding
from precis.pipelines.verify.rows import UNREADABLE, ask, with_places

_COLUMNS = ("group_id", "members", "summary", "sentences", "run_id")
_OF_DOCUMENTS = ("document_id", "source_file", "source_position", "extractive")
# A key that is no null: the group null has the empty one.
_KEYED = "SELECT *, coalesce('=' || group_id, '') AS key FROM batch"
_WRONG_GROUPS = """
    SELECT part, 'run_id is not that of the manifest', row
    FROM group_rows WHERE run_id IS DISTINCT FROM $run_id
    UNION ALL SELECT part, 'its summary has not one line for each sentence', row
    FROM group_rows
    WHERE len(sentences) != if(summary = '', 0, len(string_split(summary, chr(10))))
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
    SELECT part, concat('members is ', members, ', and so many documents have a row: ',
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
    damaged: Collection[str],
    *,
    are_rows_complete: bool,
) -> Iterator[Finding]:
    """What is wrong with the rows of groups of a run.

    Args:
      connection: of `open_database`.
      folder: of the run.
      manifest: of a run with groups.
      damaged: the names of files that are not read.
      are_rows_complete: whether the rows of all documents can be read.
    """
    groups = manifest["groups"]
    of_groups = pa.schema([GROUP_SCHEMA.field(name) for name in _COLUMNS])
    connection.register("batch", with_places(of_groups.empty_table(), "", 0))
    connection.execute(f"CREATE TABLE group_rows AS {_KEYED}")
    is_complete = True
    for file in groups["files"]:
        name, count = file["file"], 0
        try:
            for batch in read_part(files.join(folder, name), _COLUMNS):
                connection.register("batch", with_places(batch, name, count))
                connection.execute(f"INSERT INTO group_rows {_KEYED}")
                count += len(batch)
        except UNREADABLE as error:
            is_complete = False
            if name not in damaged:
                yield Finding(name, f"cannot be read as rows of groups: {error!r}")
            continue
        if count != file["rows"]:
            yield Finding(name, f"has {count} rows, and {file['rows']} are listed")
    yield from ask(connection, _WRONG_GROUPS, run_id=str(manifest["run_id"]))
    if not is_complete:
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
            problem = f"{name} of groups: {listed}, and the files have {in_files}"
            yield Finding("manifest.json", problem)
    if are_rows_complete and manifest["files"]:
        _load_members(connection, folder, manifest)
        yield from ask(connection, _WRONG_MEMBERS)


def _load_members(
    connection: duckdb.DuckDBPyConnection, folder: str, manifest: Mapping[str, Any]
) -> None:
    """Makes the table `members` of the rows of the documents."""
    of_documents = pa.schema([SUMMARY_SCHEMA.field(name) for name in _OF_DOCUMENTS])
    empty = of_documents.append(pa.field("group_id", pa.string())).empty_table()
    connection.register("batch", empty)
    connection.execute(f"CREATE TABLE members AS {_KEYED}")
    field = parse_group_field(manifest["groups"]["group_by"])
    for file in manifest["files"]:
        for rows in read_part(
            files.join(folder, file["file"]),
            list(dict.fromkeys([*_OF_DOCUMENTS, field.name])),
            partition=file.get("partition", {}),
            types=manifest["partition_by"],
        ):
            ids = field.ids(rows.column(field.name))
            rows = rows.select(_OF_DOCUMENTS).append_column("group_id", ids)
            connection.register("batch", rows)
            connection.execute(f"INSERT INTO members {_KEYED}")
