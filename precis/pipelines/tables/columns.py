"""The columns of the tables, from columns.toml, and the rounding of scores."""

import math
import tomllib
from pathlib import Path

import pyarrow as pa

# The last bits of a network's score depend on the batch and on the processor. Rounded
# scores are equal, except the few at a border of two rounded values. Decisions use the
# rounded score, so that the columns of a row agree. Scores differ by about 1e-6 of
# their size from batch to batch. One more significant digit would make ten times as
# many rounded scores differ.
SCORE_DIGITS = 4
# A margin is a difference of scores, so its error does not get smaller with it.
MARGIN_DECIMALS = 3
_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _columns(table: str, **nested: list[pa.Field]) -> list[pa.Field]:
    """Reads the columns of a table, or the fields of a column, from columns.toml.

    Args:
      table: the name of the table.
      **nested: the fields of structs, also in lists, that have no table of their own.
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
# The measures that `precis evaluate` shows of summaries that are only compared.
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
    """Rounds a score; NaN, a missing score, gives None."""
    return None if math.isnan(score) else round_score(score)


def round_score(score: float) -> float:
    """Rounds a score to SCORE_DIGITS significant digits."""
    return float(f"{score:.{SCORE_DIGITS - 1}e}")


def round_margin(margin: float | None) -> float | None:
    """Rounds a difference of scores to MARGIN_DECIMALS decimals; None stays None."""
    return None if margin is None else round(margin, MARGIN_DECIMALS)
