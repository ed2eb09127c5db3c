"""The rows of a run that are on the page: the worst, and a random sample of the others.

Rows are numbered in the order of the parts, and judged by a value of each: of a run
with a network the log-probability per token of the shown summary, of other runs ROUGE-1
where they have been evaluated. Among about equal values the number of quality flags
decides. A database holds the values, and spills to the disk.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precis.model.quality.flags import ABSTRACTIVE, SHORT_SOURCE

if TYPE_CHECKING:
    import duckdb

# What the page reads of all rows, and not of the documents on it alone.
NUMBER_COLUMNS = (
    "document_id",
    "content_sha256",
    "article_words",
    "summary_method",
    "quality_flags",
    "extractive_quality",
    "abstractive_quality",
    "reference_quality",
)
BEST_ROWS = 3
# A summary with the flag `short_source` is the article itself.
_ADD_ROWS = f"""
    INSERT INTO rows SELECT number, document_id, log_prob,
        len(list_filter(quality_flags, lambda flag: flag <> '{SHORT_SOURCE}')),
        sha256(content_sha256 || ' ' || document_id)
    FROM added
"""
_JUDGE = """
    CREATE TABLE judged AS SELECT number, flags, key,
        CASE WHEN $system = '' THEN log_prob ELSE 100 * rouge1 END AS value,
        round(value, 1) AS step
    FROM rows LEFT JOIN (
        SELECT document_id, any_value(rouge1) AS rouge1 FROM scores
        WHERE system = $system GROUP BY ALL
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
_SCORES = """
    SELECT document_id, list(system), list(rouge1) FROM scores
    WHERE document_id IN (SELECT unnest($ids::VARCHAR[]))
    GROUP BY document_id HAVING count(*) = count(DISTINCT system)
"""


class Judgement:
    """Judges the rows of a run, table by table, and chooses some."""

    def __init__(self, database: "duckdb.DuckDBPyConnection") -> None:
        """Begins without a row.

        Args:
          database: an empty one.
        """
        self._database = database
        self._rows = 0
        database.execute(
            "CREATE TABLE rows (number BIGINT, document_id VARCHAR, log_prob DOUBLE,"
            " flags BIGINT, key VARCHAR);"
            "CREATE TABLE scores (document_id VARCHAR, system VARCHAR, rouge1 DOUBLE)"
        )

    def add(self, table: pa.Table) -> None:
        """Adds the rows that follow those of the last call, with `NUMBER_COLUMNS`."""
        added = table.select(["document_id", "content_sha256", "quality_flags"])
        numbers = np.arange(self._rows, self._rows + table.num_rows)
        log_probs = pa.array(log_probabilities(table), from_pandas=True)
        self._rows += table.num_rows
        added = added.append_column("number", pa.array(numbers))
        self._insert(_ADD_ROWS, added.append_column("log_prob", log_probs))

    def add_scores(self, tables: Iterable[pa.Table]) -> None:
        """Adds the scores of an evaluation."""
        for table in tables:
            self._insert(
                "INSERT INTO scores SELECT document_id, system, rouge1 FROM added "
                "WHERE rouge1 IS NOT NULL",
                table,
            )

    def _insert(self, query: str, table: pa.Table) -> None:
        self._database.register("added", table)
        self._database.execute(query)

    def choose(self, count: int, system: str) -> tuple[dict[int, bool], list[int]]:
        """Chooses rows of all that were added.

        Args:
          count: the rows to choose, at most.
          system: whose ROUGE-1 judges them; "" for the log-probability.

        Returns:
          The numbers of the chosen rows, the worst first, and whether each was drawn at
          random; and of the chosen ones those with fewest flags and the highest values.
        """
        worst = count if self._rows <= count else -(-count // 2)
        self._database.execute(_JUDGE, {"system": system})
        best = self._database.execute(_BEST, {"count": BEST_ROWS}).fetchall()
        limits = {"worst": worst, "best": min(BEST_ROWS, count - worst), "most": count}
        chosen = dict(self._database.execute(_CHOOSE, limits).fetchall())
        return chosen, [number for number, *_ in best if number in chosen]

    def scores_of(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        """ROUGE-1 by system of each row with a reference."""
        ids = [row["document_id"] for row in rows if row["reference_summary"]]
        scored = self._database.execute(_SCORES, {"ids": ids}).fetchall()
        scores = {
            name: dict(zip(systems, values, strict=True))
            for name, systems, values in scored
        }
        return [
            scores.get(row["document_id"], {}) if row["reference_summary"] else {}
            for row in rows
        ]


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column, or a field of a struct as in `abstractive_quality.words`: float64 [N].

    It is all NaN where the table has no such column or field.
    """
    column, _, field = name.partition(".")
    if column not in table.column_names:
        return np.full(table.num_rows, np.nan)
    values = table.column(column).combine_chunks()
    if field:
        if field not in {child.name for child in values.type}:
            return np.full(table.num_rows, np.nan)
        values = pc.struct_field(values, field)
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))


def log_probabilities(table: pa.Table) -> np.ndarray:
    """Of the tokens of each shown summary, their mean: float64 [N]; NaN where another
    text than that of the network is shown.
    """
    is_written = pc.equal(table.column("summary_method"), ABSTRACTIVE)
    written = is_written.combine_chunks().to_numpy(zero_copy_only=False)
    return np.where(
        written, numbers(table, "abstractive_quality.mean_log_prob"), np.nan
    )


def take_rows(tables: Iterable[pa.Table], wanted: Iterable[int]) -> dict[int, Any]:
    """Rows of a run by their number.

    Args:
      tables: of all rows, in their order.
      wanted: the numbers of the rows.
    """
    ordered = np.sort(np.fromiter(wanted, int))
    taken: dict[int, Any] = {}
    first = 0
    for table in tables:
        low, high = np.searchsorted(ordered, [first, first + table.num_rows])
        of_table = ordered[low:high]
        rows = table.take(of_table - first).to_pylist() if len(of_table) else []
        taken.update(zip(of_table.tolist(), rows, strict=True))
        first += table.num_rows
    return taken
