"""Joins files of references with rows of groups, for scoring.

    {"group_id": "storm", "highlights": "Rain fell.\\nThree roads closed."}

References are read like a corpus, and DuckDB joins them with the rows, so that neither
references nor groups must fit in memory. If lines have the same `group_id`, or
`highlights` is a list, the group has several references.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from precis.model.errors import DataError, UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import MISSING_FIELD
from precis.pipelines.corpus.task_reader import read_records
from precis.pipelines.run.key_tables import ROWS_AT_ONCE, open_database, publish_keys
from precis.pipelines.tables.output_files import list_ranges, read_output_file

# The temporary file in the folder of an evaluation.
JOINED_FILE = "groups.parquet"
_COLUMNS = ("group_id", "run_id", "summary")
# Lines without highlights are skipped; of these, only the place is known.
_GIVEN = pa.schema([(n, pa.string()) for n in ("group_id", "reference", "skipped")])
_TABLES = """
CREATE TABLE groups (group_id VARCHAR, run_id VARCHAR, summary VARCHAR);
CREATE TABLE given (group_id VARCHAR, reference VARCHAR, skipped VARCHAR);
CREATE VIEW ids AS SELECT group_id FROM given WHERE skipped IS NULL
"""
_JOIN = """
SELECT groups.group_id, run_id, summary,
    texts[1] AS reference_summary, texts[2:] AS other_references
FROM groups LEFT JOIN (
    SELECT group_id, list(reference ORDER BY reference) AS texts
    FROM given WHERE skipped IS NULL GROUP BY group_id
) AS given ON groups.group_id IS NOT DISTINCT FROM given.group_id
ORDER BY groups.group_id, run_id
"""
# EXCEPT treats nulls as equal.
_MISSING = {
    "groups_without_reference": "SELECT group_id FROM groups EXCEPT FROM ids",
    "references_without_group": "FROM ids EXCEPT SELECT group_id FROM groups",
    "references_without_highlights": "SELECT skipped FROM given WHERE skipped NOT NULL",
}


def join_references(
    source: str, output_files: Sequence[str], folder: str
) -> dict[str, Any]:
    """Writes the rows of groups with their references to `JOINED_FILE`, with the
    columns that `score_rows` reads.

    Args:
      source: the references, in the syntax of `--corpus`.
      output_files: the Parquet files with the rows.
      folder: the folder of the evaluation.

    Returns:
      For each of `_MISSING`, the `count` and the `first` ids or places.

    Raises:
      UsageError: the references cannot be read, or lack a field.
      DataError: a reference is damaged, or does not name its group.
    """
    list_ranges(output_files, needed=_COLUMNS)  # It refuses other files.
    rows = (rows for path in output_files for rows in read_output_file(path, _COLUMNS))
    with open_database() as connection:
        connection.execute(_TABLES)
        for table, batches in ("groups", rows), ("given", _read_references(source)):
            for batch in batches:
                connection.register("batch", batch)
                connection.execute(f"INSERT INTO {table} FROM batch")
        joined = connection.sql(_JOIN).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(folder, JOINED_FILE, joined)
        missing = {}
        for name, query in _MISSING.items():
            ids = connection.sql(query)
            first = ids.order("ALL NULLS FIRST").limit(5).fetchall()
            missing[name] = {"count": len(ids), "first": [each for (each,) in first]}
        return missing


def _read_references(source: str) -> Iterator[pa.Table]:
    """Reads the references, with the columns of `_GIVEN`, a table for each task."""
    try:
        options = CorpusOptions(
            corpus=source,
            article_field="highlights",
            highlights_field="highlights",
            keep_fields="group_id:string",
        )
        for task in list_tasks(options):
            rows = []
            for content, _, raw in read_records(task, options):
                place = f"{content.source_file}, {content.source_position}"
                if isinstance(content, Document) and content.article.strip():
                    group = content.metadata["group_id"]
                    # Only JSON lines can leave out a field that others have.
                    if group is None and task.scheme == "jsonl":
                        if "group_id" not in json.loads(raw):
                            raise DataError(
                                f"{place}: 'group_id' is missing; add the id of the "
                                "group, or null for the group null"
                            )
                    rows += [
                        {"group_id": group, "reference": text}
                        for text in (content.highlights, *content.other_highlights)
                    ]
                elif isinstance(content, Document) or content.reason == MISSING_FIELD:
                    rows.append({"skipped": place})
                else:
                    raise DataError(f"{place}: {content.detail}; correct or remove it")
            yield pa.Table.from_pylist(rows, _GIVEN)
    except UsageError as error:
        way_out = "a reference needs the fields group_id and highlights"
        raise UsageError(f"--group_references: {error}; {way_out}") from error
    except DataError as error:
        raise DataError(f"--group_references: {error}") from error
