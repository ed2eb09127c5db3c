"""The columns of the tables, which columns.toml describes; how scores are rounded."""

import math
import tomllib
from pathlib import Path

import pyarrow as pa

# The last bits of a network's score depend on the documents that were computed beside
# it and on the processor. Rounded scores are equal but for those few that lie at a
# border of two rounded values. What is decided by a score is decided by the rounded
# one, so that the columns of a row agree with each other.
# A network's scores differ by some 1e-6 of their size from batch to batch. One
# significant digit more would make ten times as many rounded scores differ.
SCORE_DIGITS = 4
# A margin is the difference of two scores, so its error does not shrink with it.
MARGIN_DECIMALS = 3
_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _columns(table: str, **nested: list[pa.Field]) -> list[pa.Field]:
    """The columns of a table in columns.toml, or the fields of a column.

    Args:
      table: its name.
      **nested: fields of structs, and of structs in lists, that have no table.
    """
    fields = []
    for name, (kind, description) in _TABLES[table].items():
        is_nullable = kind.endswith("?")
        kind = kind.rstrip("?")
        if kind == "strings":
            stored = _STRINGS
        elif kind in ("struct", "list"):
            stored = pa.struct(nested.get(name) or _columns(name))
            if kind == "list":
                stored = pa.list_(pa.field("element", stored, nullable=False))
        else:
            stored = pa.type_for_alias(kind)
        text = " ".join(description.split()).format(
            SCORE_DIGITS=SCORE_DIGITS, MARGIN_DECIMALS=MARGIN_DECIMALS
        )
        fields.append(pa.field(name, stored, is_nullable, {"description": text}))
    return fields


_MEASURES, _FLAGS = _columns("measures"), _columns("flags")
# Of summaries that are only compared, the measures that `precis evaluate` shows.
_SHOWN = ("words", "novel_2grams_percent", "repetition_rate")
_COMPARED = [*(field for field in _MEASURES if field.name in _SHOWN), *_FLAGS]
SUMMARY_COLUMNS = _columns(
    "summaries",
    extractive_quality=[*_MEASURES, *_FLAGS],
    abstractive_quality=[*_MEASURES, *_columns("network_measures"), *_FLAGS],
    other_quality=[*_columns("other_quality"), *_COMPARED],
    reference_quality=_COMPARED,
)
GROUP_COLUMNS = _columns("groups")
SCORES_COLUMNS = _columns("scores")


def known_score(score: float) -> float | None:
    """A rounded score; None of NaN, which stands for one that nobody gave."""
    return None if math.isnan(score) else round_score(score)


def round_score(score: float) -> float:
    """A score with SCORE_DIGITS significant digits."""
    return float(f"{score:.{SCORE_DIGITS - 1}e}")


def round_margin(margin: float | None) -> float | None:
    """A difference of two scores with MARGIN_DECIMALS decimals; None stays None."""
    return None if margin is None else round(margin, MARGIN_DECIMALS)
