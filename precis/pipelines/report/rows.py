"""Chooses the rows of documents and groups for the page, in a database.

The page has the worst rows and a random sample of the others. Rows are numbered in the
order of the output files, and each is judged by one value: the expected ROUGE-2 of the
shown summary, if the run has it; else, with a network, that summary's log-probability
per token; else ROUGE-1, if the run was evaluated. Among similar values the number of
quality flags decides. For groups, the page has the largest and some at random. The
database spills to disk what does not fit its memory.
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

# The columns that the page reads for all rows, not only for its documents.
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
        len(list_filter(quality_flags, lambda flag: flag ^@ 'unsupported')) AS facts,
        len(list_filter(quality_flags, lambda flag: flag <> '{SHORT_SOURCE}')) AS flags,
        CASE WHEN summary_method = '{ABSTRACTIVE}'
            THEN abstractive_quality.mean_log_prob END AS log_prob,
        100 * expected_rouge2 AS expected,
        sha256(content_sha256 || ' ' || document_id) AS key
    FROM batch
"""
EXPECTED, LOG_PROB = "expected", "log_prob"
# Counts rows with an expected ROUGE-2, a log-probability, a flag, an unsupported fact.
COUNTS = """
    SELECT count(expected), count(log_prob), count_if(is_flagged), count_if(facts > 0)
    FROM rows
"""
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
# Scores only have document ids, so ids that were scored twice show no scores.
_SCORES_OF = """
    SELECT document_id, list(system), list(rouge1) FROM scores
    WHERE document_id IN (SELECT unnest($ids::VARCHAR[]))
    GROUP BY document_id HAVING count(*) = count(DISTINCT system)
"""
# The columns that identify a document of a run.
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
    """Adds the rows of a run; yields the number of rows of each table.

    Args:
      database: the database for the rows.
      tables: the rows, with `NUMBER_COLUMNS`.
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
    """Chooses rows among all that were added.

    Args:
      database: the database with rows and scores.
      count: the maximum number of rows.
      value: the value that ranks rows: EXPECTED, LOG_PROB, or a system for its ROUGE-1.

    Returns:
      Whether each chosen row was drawn at random, by row number, the worst first; and
      the numbers of chosen rows with the fewest flags and highest values.
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
    """The ROUGE-1 of each row with a reference, by system."""
    ids = [row["document_id"] for row in rows if row["reference_summary"]]
    found = database.execute(_SCORES_OF, {"ids": ids}).fetchall()
    scores = {name: dict(zip(*of_name, strict=True)) for name, *of_name in found}
    return [
        scores.get(row["document_id"], {}) if row["reference_summary"] else {}
        for row in rows
    ]


def take_rows(tables: Iterable[pa.Table], wanted: Iterable[int]) -> dict[int, Any]:
    """Takes rows of a run by number.

    Args:
      tables: all rows of the run, in order.
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
      database: a database in which to sort groups.
      run: the run of the groups.
      places: for documents on the page, the place on the page by `DOCUMENT_KEY`.

    Returns:
      The rows as in the run, with the `line` in the summary for each sentence, and the
      `place` of its document, or None if it is not on the page.
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
