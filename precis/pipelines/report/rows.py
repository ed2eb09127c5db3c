"""The rows of a run that are on the page, chosen in a database.

The worst rows are on the page, and a random sample of the others. Rows are numbered in
the order of the parts, and judged by a value of each: the ROUGE-2 that the shown
summary is expected to have, where the run says it; else of a run with a network
the log-probability per token of that summary, and of other runs ROUGE-1 where they have
been evaluated. Among about equal values the number of quality flags decides. What does
not fit the memory of the database lies on the disk.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from precis.model.quality.flags import ABSTRACTIVE, SHORT_SOURCE

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
    FROM added
"""
EXPECTED, LOG_PROB = "expected", "log_prob"
# The rows with an expected ROUGE-2, with a log-probability, with a flag.
COUNTS = "SELECT count(expected), count(log_prob), count_if(is_flagged) FROM rows"
_SCORES = "SELECT document_id, system, rouge1 FROM added WHERE rouge1 IS NOT NULL"
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


def add_rows(
    database: "duckdb.DuckDBPyConnection", tables: Iterable[pa.Table]
) -> Iterator[int]:
    """Adds the rows of a run; gives their number table by table.

    Args:
      database: takes the rows.
      tables: with `NUMBER_COLUMNS`.
    """
    first = 0
    for table in tables:
        numbers = pa.array(range(first, first + table.num_rows), pa.int64())
        _insert(database, "rows", _ROWS, table.append_column("number", numbers))
        first += table.num_rows
        yield table.num_rows


def add_scores(
    database: "duckdb.DuckDBPyConnection", tables: Iterable[pa.Table]
) -> None:
    """Adds the scores of an evaluation, if there are any."""
    columns = {
        "document_id": pa.string(),
        "system": pa.string(),
        "rouge1": pa.float64(),
    }
    for table in (pa.schema(columns).empty_table(), *tables):
        _insert(database, "scores", _SCORES, table)


def _insert(
    database: "duckdb.DuckDBPyConnection", name: str, query: str, added: pa.Table
) -> None:
    database.register("added", added)
    database.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {query} LIMIT 0")
    database.execute(f"INSERT INTO {name} {query}")


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
    scores = {
        name: dict(zip(systems, values, strict=True))
        for name, systems, values in database.execute(
            _SCORES_OF, {"ids": ids}
        ).fetchall()
    }
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
    ordered = sorted(wanted)
    taken: dict[int, Any] = {}
    first = 0
    for table in tables:
        low, high = (bisect_left(ordered, n) for n in (first, first + table.num_rows))
        places = [number - first for number in ordered[low:high]]
        rows = table.take(places).to_pylist() if places else []
        taken.update(zip(ordered[low:high], rows, strict=True))
        first += table.num_rows
    return taken
