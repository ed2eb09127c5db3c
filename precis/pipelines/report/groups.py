"""Groups on the page: the largest of a run and some drawn at random, each sentence with
its document.
"""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from precis.model.text.wrapping import shown_line
from precis.pipelines.report.rows import take_rows
from precis.pipelines.tables.finished_run import FinishedRun

if TYPE_CHECKING:
    import duckdb

# A document of a run, by the columns that are its key.
DOCUMENT_KEY = ("document_id", "source_file", "source_position")
_MOST_LARGEST = _MOST_DRAWN = 10
_ADD = """
INSERT INTO groups
SELECT number, members, sha256(coalesce('=' || group_id, '')) FROM added
"""
_CHOOSE = f"""
WITH largest AS (FROM groups ORDER BY members DESC, key LIMIT {_MOST_LARGEST}),
drawn AS (
    FROM groups ANTI JOIN largest USING (number) ORDER BY key LIMIT {_MOST_DRAWN}
)
SELECT number FROM (FROM largest UNION ALL FROM drawn) ORDER BY members DESC, key
"""


def sample_groups(
    database: "duckdb.DuckDBPyConnection",
    run: FinishedRun,
    places: Mapping[tuple[str, ...], int],
) -> list[dict[str, Any]]:
    """The rows of some groups, the largest first.

    Args:
      database: orders the groups of a run.
      run: of the groups.
      places: on the page, of the documents that are on it by `DOCUMENT_KEY`.

    Returns:
      Each row as it is in the run, with the `line` of each sentence in the summary,
      and the `place` of its document, None where it is not on the page.
    """
    database.execute("CREATE TABLE groups (number BIGINT, members BIGINT, key VARCHAR)")
    first = 0
    for table in run.tables(["group_id", "members"], of_groups=True):
        numbers = pa.array(range(first, first + len(table)), pa.int64())
        database.register("added", table.append_column("number", numbers))
        database.execute(_ADD)
        first += len(table)
    chosen = [number for (number,) in database.execute(_CHOOSE).fetchall()]
    taken = take_rows(run.tables(of_groups=True), chosen)
    rows = [taken[number] for number in chosen]
    for sentence in itertools.chain(*(row["sentences"] for row in rows)):
        key = tuple(sentence[name] for name in DOCUMENT_KEY)
        sentence["line"] = shown_line(sentence["text"])
        sentence["place"] = places.get(key)
    return rows
