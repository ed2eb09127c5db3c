"""Tables with the numbers of rows that a report counts."""

from collections.abc import Sequence

import pyarrow as pa


def _quality(
    words: float | None, log_prob: float | None = None
) -> dict[str, float | None]:
    return {
        "words": words,
        "novel_2grams_percent": 50.0,
        "repetition_rate": 0.25,
        "compression": 4.0,
        "density": 2.0,
        "mean_log_prob": log_prob,
    }


def report_table(rows: Sequence[tuple]) -> pa.Table:
    """A table of (id, flags, words, log-probability, and a text if one matters)."""
    return pa.Table.from_pylist(
        [
            {
                "document_id": name,
                "content_sha256": name,
                "article_words": 100,
                "summary_method": "abstractive",
                "quality_flags": flags,
                "extractive_quality": _quality(30),
                "abstractive_quality": _quality(words, log_prob),
                "summary": "".join(text),
            }
            for name, flags, words, log_prob, *text in rows
        ],
        schema=_SCHEMA,
    )


_QUALITY_TYPE = pa.struct([(name, pa.float64()) for name in _quality(0)])
_SCHEMA = pa.schema(
    [
        ("document_id", pa.string()),
        ("content_sha256", pa.string()),
        ("article_words", pa.int32()),
        ("summary_method", pa.string()),
        ("quality_flags", pa.list_(pa.string())),
        ("extractive_quality", _QUALITY_TYPE),
        ("abstractive_quality", _QUALITY_TYPE),
        ("summary", pa.string()),
    ]
)
