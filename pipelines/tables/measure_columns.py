"""Columns with descriptions, and the columns of the measures of a summary.

`columns` puts the measures into the columns of the summaries.
"""

import pyarrow as pa

from precis.pipelines.tables.score_rounding import MARGIN_DECIMALS, SCORE_DIGITS

ROUNDED = f"rounded to {SCORE_DIGITS} significant digits"


def column(
    name: str, kind: pa.DataType, description: str, *, nullable: bool = False
) -> pa.Field:
    """A column with its description."""
    return pa.field(
        name, kind, nullable=nullable, metadata={"description": description}
    )


def list_of(*fields: pa.Field) -> pa.ListType:
    """The type of a list of structs with these fields."""
    return pa.list_(pa.field("element", pa.struct(fields), nullable=False))


STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))

# The measures of every summary; `model.quality.measures.Quality` defines them.
MEASURES = (
    column("words", pa.int32(), "length of the summary in words"),
    *(
        column(
            f"novel_{n}grams_percent",
            pa.float64(),
            f"{n}-grams of the summary's sentences that the article does not have "
            "(See et al. 2017); null where there are none",
            nullable=True,
        )
        for n in (1, 2, 3, 4)
    ),
    column(
        "coverage",
        pa.float64(),
        "share of the words within an extractive fragment (Grusky et al. 2018); "
        "null without words",
        nullable=True,
    ),
    column(
        "density",
        pa.float64(),
        "mean squared length of the fragments, by words (Grusky et al. 2018); "
        "null without words",
        nullable=True,
    ),
    column(
        "compression",
        pa.float64(),
        "words of the article over words of the summary; null without words",
        nullable=True,
    ),
    column(
        "length_ratio",
        pa.float64(),
        "words of the summary over words of the article; "
        "null where the article has none",
        nullable=True,
    ),
    column(
        "repetition_rate",
        pa.float64(),
        "share of the trigrams that the summary has written before",
    ),
    column(
        "unsupported_numbers",
        STRINGS,
        "numbers that the article does not hold, whatever their form",
    ),
    column(
        "unsupported_dates",
        STRINGS,
        "weekdays, months and days of a month that the article does not hold",
    ),
    column(
        "unsupported_names",
        STRINGS,
        "capitalised names that the article does not hold; "
        "null where the summary has no capital letter",
        nullable=True,
    ),
)
NETWORK_MEASURES = (
    column(
        "mean_log_prob",
        pa.float32(),
        f"mean log-probability of the tokens with the end token, {ROUNDED}; "
        "low_confidence is decided by the rounded value",
    ),
    column(
        "beam_margin",
        pa.float32(),
        "score of the best hypothesis less that of the second, rounded to "
        f"{MARGIN_DECIMALS} decimals; null with beam width 1",
        nullable=True,
    ),
)
FLAGS = column("flags", STRINGS, "what the measures warn of; the names stand below")
# Of summaries that are only compared, the measures that `precis evaluate` shows.
COMPARED_MEASURES = tuple(
    field
    for field in MEASURES
    if field.name in ("words", "novel_2grams_percent", "repetition_rate")
)
