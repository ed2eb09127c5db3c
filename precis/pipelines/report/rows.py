"""The rows of documents and groups that are on the page, chosen in a database.

The worst rows are on the page, and a random sample of the others. Rows are numbered in
the order of the output files, and judged by a value of each: the ROUGE-2 that the shown
summary is expected to have, where the run says it; else of a run with a network
the log-probability per token of that summary, and of other runs ROUGE-1 where they have
been evaluated. Among about equal values the number of quality flags decides. Of groups
the largest are there, and some drawn at random. What does not fit the memory of the
database lies on the disk.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from precis.model.quality.flags import ABSTRACTIVE, SHORT_SOURCE
from precis.model.text.wrapping import shown_line
from precis.pipelines.run.key_tables import insert_rows, numbered
from precis.pipelines.tables.finished_run import FinishedRun

if TYPE_CHECKING:
    import duckdb

# What the page reads of all rows, and not of the documents on it alone.
NUMBER_COLUMNS = (
    "document_id",
    "content_sha256",
    "summary_method",
    "quality_flags",
    "abstractive_quality",
    "expected_rouge2",
)
BEST_ROWS = 3
# A summary with the flag `short_source` is the article itself.
_ROWS = f"""
    SELECT number, document_id, len(quality_flags) > 0 AS is_flagged,
        len(list_filter(quality_flags, lambda flag: flag <> '{SHORT_SOURCE}')) AS flags,
        CASE WHEN summary_method = '{ABSTRACTIVE}'
            THEN abstractive_quality.mean_log_prob END AS log_prob,
        100 * expected_rouge2 AS expected,
        sha256(content_sha256 || ' ' || document_id) AS key
    FROM batch
"""
EXPECTED, LOG_PROB = "expected", "log_prob"
# The rows with an expected ROUGE-2, with a log-probability, with a flag.
COUNTS = "SELECT count(expected), count(log_prob), count_if(is_flagged) FROM rows"
SCORE_SCHEMA = pa.schema(
    {"document_id": pa.string(), "system": pa.string(), "rouge1": pa.float64()}
)
_SCORES = "SELECT document_id, system, rouge1 FROM batch WHERE rouge1 IS NOT NULL"
_JUDGE = """
    CREATE TABLE judged AS SELECT number, flags, key,
        CASE $value WHEN 'expected' THEN expected WHEN 'log_prob' THEN log_prob
            ELSE 100 * rouge1 END AS value,
        round(value, 1) AS step
    FROM rows LEFT JOIN (
        SELECT document_id, any_value(rouge1) AS rouge1 FROM scores
        WHERE system = $value GROUP BY ALL
    ) USING (document_id)
"""
_BEST = """
    FROM judged WHERE value IS NOT NULL ORDER BY flags, value DESC, number LIMIT $count
"""
_CHOOSE = f"""
    WITH kept AS (
        FROM (FROM judged ORDER BY step NULLS LAST, flags DESC, number LIMIT $worst)
        UNION FROM ({_BEST.replace("$count", "$best")})
    ), drawn AS (
        FROM judged ANTI JOIN kept USING (number) ORDER BY key
        LIMIT greatest($most - (SELECT count(*) FROM kept), 0)
    )
    SELECT number, is_drawn FROM (
        SELECT *, false AS is_drawn FROM kept UNION ALL SELECT *, true FROM drawn
    ) ORDER BY step NULLS LAST, flags DESC, number
"""
# Scores have the id of a document alone, so none are shown where it was scored twice.
_SCORES_OF = """
    SELECT document_id, list(system), list(rouge1) FROM scores
    WHERE document_id IN (SELECT unnest($ids::VARCHAR[]))
    GROUP BY document_id HAVING count(*) = count(DISTINCT system)
"""
# A document of a run, by the columns that are its key.
DOCUMENT_KEY = ("document_id", "source_file", "source_position")
_MOST_LARGEST = _MOST_DRAWN = 10
_GROUPS = """
    SELECT number, members, sha256(coalesce('=' || group_id, '')) AS key FROM batch
"""
_CHOOSE_GROUPS = f"""
    WITH largest AS (FROM groups ORDER BY members DESC, key LIMIT {_MOST_LARGEST}),
    drawn AS (
        FROM groups ANTI JOIN largest USING (number) ORDER BY key LIMIT {_MOST_DRAWN}
    )
    SELECT number FROM (FROM largest UNION ALL FROM drawn) ORDER BY members DESC, key
"""


def add_rows(
    database: "duckdb.DuckDBPyConnection", tables: Iterable[pa.Table]
) -> Iterator[int]:
    """Adds the rows of a run; gives their number table by table.

    Args:
      database: takes the rows.
      tables: with `NUMBER_COLUMNS`.
    """
    for table in numbered(tables, "number"):
        insert_rows(database, "rows", table, _ROWS)
        yield len(table)


def add_scores(
    database: "duckdb.DuckDBPyConnection", tables: Iterable[pa.Table]
) -> None:
    """Adds the scores of an evaluation, if there are any."""
    for table in itertools.chain([SCORE_SCHEMA.empty_table()], tables):
        insert_rows(database, "scores", table, _SCORES)


def choose_rows(
    database: "duckdb.DuckDBPyConnection", count: int, value: str
) -> tuple[dict[int, bool], list[int]]:
    """Chooses rows of all that were added.

    Args:
      database: with rows and scores.
      count: the rows to choose, at most.
      value: what judges them: EXPECTED, LOG_PROB, or the system whose ROUGE-1 does.

    Returns:
      The numbers of the chosen rows, the worst first, and whether each was drawn at
      random; and of the chosen ones those with fewest flags and the highest values.
    """
    database.execute(_JUDGE, {"value": value})
    ((rows,),) = database.execute("SELECT count(*) FROM judged").fetchall()
    worst = count if rows <= count else -(-count // 2)
    best = database.execute(_BEST, {"count": BEST_ROWS}).fetchall()
    limits = {"worst": worst, "best": min(BEST_ROWS, count - worst), "most": count}
    chosen = dict(database.execute(_CHOOSE, limits).fetchall())
    return chosen, [number for number, *_ in best if number in chosen]


def scores_of(
    database: "duckdb.DuckDBPyConnection", rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, float]]:
    """ROUGE-1 by system of each row with a reference."""
    ids = [row["document_id"] for row in rows if row["reference_summary"]]
    found = database.execute(_SCORES_OF, {"ids": ids}).fetchall()
    scores = {name: dict(zip(*of_name, strict=True)) for name, *of_name in found}
    return [
        scores.get(row["document_id"], {}) if row["reference_summary"] else {}
        for row in rows
    ]


def take_rows(tables: Iterable[pa.Table], wanted: Iterable[int]) -> dict[int, Any]:
    """Rows of a run by their number.

    Args:
      tables: of all rows, in their order.
      wanted: the numbers of the rows.
    """
    numbers = np.fromiter(wanted, np.int64)
    taken: dict[int, Any] = {}
    for table in numbered(tables, ""):
        is_wanted = np.isin(table.column("").to_numpy(), numbers)
        for row in table.filter(pa.array(is_wanted)).to_pylist():
            taken[row.pop("")] = row
    return taken


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
    if not run.group_output_files:
        return []
    tables = run.tables(["group_id", "members"], of_groups=True)
    for table in numbered(tables, "number"):
        insert_rows(database, "groups", table, _GROUPS)
    chosen = [number for (number,) in database.execute(_CHOOSE_GROUPS).fetchall()]
    taken = take_rows(run.tables(of_groups=True), chosen)
    rows = [taken[number] for number in chosen]
    for sentence in itertools.chain(*(row["sentences"] for row in rows)):
        key = tuple(sentence[name] for name in DOCUMENT_KEY)
        sentence["line"] = shown_line(sentence["text"])
        sentence["place"] = places.get(key)
    return rows
