"""Numbers of the rows of a table, as arrays of float64 with NaN for null."""

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precis.model.quality.fallback import SHORT_SOURCE

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
_MOST_DOUBT = 9.99


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


def count_flags(table: pa.Table) -> np.ndarray:
    """The flags of the shown summaries, float64 [N]."""
    counts = pc.list_value_length(table.column("quality_flags").combine_chunks())
    return np.asarray(counts.to_numpy(zero_copy_only=False), float)


def concern(table: pa.Table) -> np.ndarray:
    """How much is to be said against each row, float64 [N]: the number of its flags,
    and among rows with equally many the lack of confidence.

    `short_source` is not among them: such a summary is the article itself.
    """
    flags = table.column("quality_flags").combine_chunks()
    rows = pc.list_parent_indices(flags).to_numpy(zero_copy_only=False).astype(int)
    is_short = pc.equal(flags.flatten(), SHORT_SOURCE).to_numpy(zero_copy_only=False)
    short = np.bincount(rows, is_short.astype(float), minlength=table.num_rows)
    log_prob = numbers(table, "abstractive_quality.mean_log_prob")
    doubt = np.clip(-np.nan_to_num(log_prob), 0, _MOST_DOUBT) / 10
    return count_flags(table) - short + doubt


def shown_numbers(table: pa.Table, field: str) -> np.ndarray:
    """A measure of the summary that is shown, float64 [N].

    Where the summary is the article itself or by another method, it is NaN.
    """
    methods = table.column("summary_method").combine_chunks()
    is_abstractive = pc.equal(methods, "abstractive").to_numpy(zero_copy_only=False)
    is_source = pc.equal(methods, "source").to_numpy(zero_copy_only=False)
    extractive = np.where(
        is_source, np.nan, numbers(table, f"extractive_quality.{field}")
    )
    abstractive = numbers(table, f"abstractive_quality.{field}")
    return np.where(is_abstractive, abstractive, extractive)


def keys(texts: Iterable[str | None]) -> np.ndarray:
    """8 bytes of the sha256 of each text, uint64 [N]; equally distributed."""
    digests = [
        hashlib.sha256((text or "").encode(errors="replace")).digest()[:8]
        for text in texts
    ]
    return np.frombuffer(b"".join(digests), "<u8")


def row_keys(table: pa.Table) -> np.ndarray:
    """A key of document_id and content_sha256 for each row, uint64 [N]."""
    ids = table.column("document_id").to_pylist()
    contents = table.column("content_sha256").to_pylist()
    return keys(f"{text} {name}" for name, text in zip(ids, contents, strict=True))
