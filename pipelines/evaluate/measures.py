"""What the summaries of each system are like: the measures that a run holds, and their
means.

`precis summarize` measures, because it has the articles. Files without these columns
give no measures.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model.quality.fallback import ABSTRACTIVE, SOURCE
from precis.model.quality.flags import FLAGS

REFERENCE = "reference"
SUMMARY = "summary"

_FIELDS = ("words", "novel_2grams_percent", "repetition_rate", "flags")
QUALITY_COLUMNS = (
    "extractive_method",
    "extractive_quality",
    "abstractive_quality",
    "other_quality",
    "reference_quality",
    "summary_method",
    "quality_flags",
)


class Measures(NamedTuple):
    """The measures of one summary, as in its row.

    Attributes:
      words: its length.
      novel_2grams_percent: the share of its bigrams that the article does not have;
          None where it has no bigram.
      repetition_rate: the share of its trigrams that it has written before.
      flags: names from `quality.flags.FLAGS`.
    """

    words: int
    novel_2grams_percent: float | None
    repetition_rate: float
    flags: list[str]


class MeasureSums(NamedTuple):
    """The measures of one system in a range of rows.

    Attributes:
      rows: those that are measured.
      rows_with_bigrams: those of them whose summary has a bigram.
      words, novel_2grams_percent, repetition_rate: sums over the rows.
      flagged: the rows with at least one flag.
      flags: the rows with each flag.
    """

    rows: int
    rows_with_bigrams: int
    words: int
    novel_2grams_percent: float
    repetition_rate: float
    flagged: int
    flags: Mapping[str, int]


def measures_of_rows(table: pa.Table) -> list[dict[str, Measures]]:
    """For each row the measures of every system and of the reference, as far as the
    table has them.

    Args:
      table: with those of `QUALITY_COLUMNS` that there are.
    """
    columns = {
        name: table.column(name).to_pylist()
        for name in ("extractive_method", "summary_method", "quality_flags")
        if name in table.column_names
    }
    nothing = [None] * table.num_rows
    methods = columns.get("extractive_method", nothing)
    shown = columns.get("summary_method", nothing)
    shown_flags = columns.get("quality_flags", nothing)
    rows = zip(
        methods,
        _structs(table, "extractive_quality"),
        _structs(table, "abstractive_quality"),
        _structs(table, "reference_quality"),
        _others(table),
        shown,
        shown_flags,
        strict=True,
    )
    return [_measures_of_row(*row) for row in rows]


def _measures_of_row(
    method: str | None,
    extractive: Measures | None,
    abstractive: Measures | None,
    reference: Measures | None,
    others: dict[str, Measures],
    shown: str | None,
    shown_flags: list[str] | None,
) -> dict[str, Measures]:
    named = {method: extractive, ABSTRACTIVE: abstractive, REFERENCE: reference}
    measured = {
        **{name: each for name, each in named.items() if name and each},
        **others,
    }
    summary = measured.get(shown or "")
    if summary and shown_flags is not None:
        measured[SUMMARY] = summary._replace(flags=shown_flags)
    measured.pop(SOURCE, None)  # It is no system of its own.
    return measured


def _structs(table: pa.Table, name: str) -> list[Measures | None]:
    """The measures in a column of structs; None in rows without them."""
    if name not in table.column_names:
        return [None] * table.num_rows
    array = table.column(name).combine_chunks()
    if not _holds_measures(array.type):
        return [None] * table.num_rows
    is_there = array.is_valid().to_pylist()
    return [
        measures if is_valid else None
        for is_valid, measures in zip(is_there, _measures(array), strict=True)
    ]


def _others(table: pa.Table) -> list[dict[str, Measures]]:
    """The measures in the column `other_quality`, by system."""
    name = "other_quality"
    nothing: list[dict[str, Measures]] = [{} for _ in range(table.num_rows)]
    if name not in table.column_names:
        return nothing
    array = table.column(name).combine_chunks()
    kind = array.type
    if not pa.types.is_list(kind) or not _holds_measures(kind.value_type):
        return nothing
    items = array.flatten()
    pairs = zip(items.field("system").to_pylist(), _measures(items), strict=True)
    lengths = array.value_lengths().to_pylist()
    return [dict(next(pairs) for _ in range(length or 0)) for length in lengths]


def _holds_measures(kind: pa.DataType) -> bool:
    """Whether a type of a file that may be from elsewhere is that of a run."""
    return pa.types.is_struct(kind) and all(
        kind.get_field_index(name) >= 0 for name in _FIELDS
    )


def _measures(array: pa.StructArray) -> Iterable[Measures]:
    # Column by column: to turn structs into dicts takes several times as long.
    columns = (array.field(name).to_pylist() for name in _FIELDS)
    return map(Measures, *columns)


def sum_measures(
    rows: Iterable[Mapping[str, Measures]],
) -> dict[str, MeasureSums]:
    """The sums of each system over rows."""
    by_system: dict[str, list[Measures]] = {}
    for row in rows:
        for system, measures in row.items():
            by_system.setdefault(system, []).append(measures)
    return {system: _sum(measures) for system, measures in by_system.items()}


def _sum(measures: Sequence[Measures]) -> MeasureSums:
    novel = [
        each.novel_2grams_percent
        for each in measures
        if each.novel_2grams_percent is not None
    ]
    return MeasureSums(
        rows=len(measures),
        rows_with_bigrams=len(novel),
        words=sum(each.words for each in measures),
        novel_2grams_percent=math.fsum(novel),
        repetition_rate=math.fsum(each.repetition_rate for each in measures),
        flagged=sum(bool(each.flags) for each in measures),
        flags=Counter(flag for each in measures for flag in each.flags),
    )


def mean_measures(parts: Sequence[MeasureSums]) -> dict[str, Any]:
    """The means of one system over all ranges; shares are in per cent.

    Args:
      parts: in the order of the ranges; at least one row is measured.
    """
    rows = sum(part.rows for part in parts)
    with_bigrams = sum(part.rows_with_bigrams for part in parts)
    novel = math.fsum(part.novel_2grams_percent for part in parts)
    repetition = math.fsum(part.repetition_rate for part in parts)
    return {
        "rows": rows,
        "words": sum(part.words for part in parts) / rows,
        "novel_2grams_percent": novel / with_bigrams if with_bigrams else None,
        "repetition_percent": 100 * repetition / rows,
        "flagged_percent": 100 * sum(part.flagged for part in parts) / rows,
        "flags_percent": {
            flag: 100 * sum(part.flags.get(flag, 0) for part in parts) / rows
            for flag in FLAGS
        },
    }
