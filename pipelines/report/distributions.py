"""Means and quantiles of the measures of all rows, computed in a database."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from precis.pipelines.report.rows import numbers

if TYPE_CHECKING:
    import duckdb

ARTICLE_WORDS = "article_words"
_SYSTEMS = ("extractive", "abstractive", "reference")
# A column of a row, and fields of each quality: the title with the unit, and what the
# values are multiplied by.
_MEASURES = {
    ARTICLE_WORDS: ("Length of the articles, words", 1),
    "words": ("Length of the summaries, words", 1),
    "compression": ("Compression, article words / summary words", 1),
    "novel_2grams_percent": ("Novel bigrams, % of the summary", 1),
    "density": ("Extractive density, words", 1),
    "repetition_rate": ("Repeated trigrams, %", 100),
    "mean_log_prob": ("Log-probability, a token", 1),
}
# Each measure of a system, and where a row has it.
_COLUMNS = {
    (field, system): field if field == ARTICLE_WORDS else f"{system}_quality.{field}"
    for field in _MEASURES
    for system in (("article",) if field == ARTICLE_WORDS else _SYSTEMS)
}


def add_measures(database: "duckdb.DuckDBPyConnection", table: pa.Table) -> None:
    """Adds the measures of rows."""
    columns = {
        name: pa.array(numbers(table, name), from_pandas=True)
        for name in _COLUMNS.values()
    }
    database.register("measured", pa.table(columns))
    database.execute("CREATE TABLE IF NOT EXISTS measures AS FROM measured LIMIT 0")
    database.execute("INSERT INTO measures FROM measured")


def distributions(
    database: "duckdb.DuckDBPyConnection",
) -> Iterator[tuple[str, str, list[str]]]:
    """The table of the page: each measure that rows have, the system, its mean, median,
    and the values that 5 % and 95 % of the rows do not exceed.
    """
    for (field, system), name in _COLUMNS.items():
        title, scale = _MEASURES[field]
        mean, quantiles = database.execute(
            f'SELECT avg("{name}"), quantile_disc("{name}", [0.5, 0.05, 0.95]) '
            "FROM measures"
        ).fetchall()[0]
        if mean is not None:
            values = (scale * value for value in (mean, *quantiles))
            yield (
                title,
                system,
                [
                    f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
                    for value in values
                ],
            )
