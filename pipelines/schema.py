"""The Arrow schemas of a summary row, of its scores and of a dead letter, and their
Parquet files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files, rouge
from precis.model.errors import DataError
from precis.model.quality.flags import FLAGS

SCHEMA_VERSION = 2


def _column(
    name: str, kind: pa.DataType, description: str, *, nullable: bool = False
) -> pa.Field:
    return pa.field(
        name, kind, nullable=nullable, metadata={"description": description}
    )


def _list_of(*fields: pa.Field) -> pa.ListType:
    return pa.list_(pa.field("element", pa.struct(fields), nullable=False))


_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))

_RUN_ID = _column("run_id", pa.string(), "the run that wrote the row")

_SENTENCE = _list_of(
    _column(
        "method", pa.string(), "name of the extractive method that chose the sentence"
    ),
    _column("rank", pa.int32(), "place among the method's sentences by score, from 1"),
    _column("score", pa.float64(), "the method's score of the sentence"),
    _column(
        "start",
        pa.int64(),
        "offset of the first character in the article as it was read",
    ),
    _column(
        "end", pa.int64(), "offset past the last character: article[start:end] is text"
    ),
    _column("text", pa.string(), "the sentence, as it stands in the article"),
)

_CANDIDATE = _list_of(
    _column("rank", pa.int32(), "place among the candidates, from 1"),
    _column("score", pa.float32(), "log-probability after the length penalty"),
    _column("text", pa.string(), "the summary, one sentence a line"),
)

_KEYPHRASE = _list_of(
    _column(
        "method",
        pa.string(),
        "classifier, or frequency: the baseline, only where there is a reference",
    ),
    _column("phrase", pa.string(), "the phrase, as the document writes it most often"),
    _column(
        "score",
        pa.float64(),
        "probability by the classifier, or one over the rank by frequency",
    ),
)

# What is measured of every summary; `model.quality` says how, and where from.
_MEASURES = (
    _column("words", pa.int32(), "length of the summary in words"),
    *(
        _column(
            f"novel_{n}grams_percent",
            pa.float64(),
            f"{n}-grams of the summary's sentences that the article does not have (See et al. 2017); null where there are none",
            nullable=True,
        )
        for n in (1, 2, 3, 4)
    ),
    _column(
        "coverage",
        pa.float64(),
        "share of the words within an extractive fragment (Grusky et al. 2018); null without words",
        nullable=True,
    ),
    _column(
        "density",
        pa.float64(),
        "mean squared length of the fragments, by words (Grusky et al. 2018); null without words",
        nullable=True,
    ),
    _column(
        "compression",
        pa.float64(),
        "words of the article over words of the summary; null without words",
        nullable=True,
    ),
    _column(
        "length_ratio",
        pa.float64(),
        "words of the summary over words of the article; null where the article has none",
        nullable=True,
    ),
    _column(
        "repetition_rate",
        pa.float64(),
        "share of the trigrams that the summary has written before",
    ),
    _column(
        "unsupported_numbers",
        _STRINGS,
        "numbers that the article does not hold, whatever their form",
    ),
    _column(
        "unsupported_dates",
        _STRINGS,
        "weekdays, months and days of a month that the article does not hold",
    ),
    _column(
        "unsupported_names",
        _STRINGS,
        "capitalised names that the article does not hold; null where the summary has no capital letter",
        nullable=True,
    ),
)
_OF_NETWORKS = (
    _column(
        "mean_log_prob",
        pa.float32(),
        "mean log-probability of the tokens with the end token",
    ),
    _column(
        "beam_margin",
        pa.float32(),
        "score of the best hypothesis less that of the second; null with beam width 1",
        nullable=True,
    ),
)
_FLAGS = _column("flags", _STRINGS, "what the measures warn of; the names stand below")

SUMMARY_SCHEMA = pa.schema(
    [
        _column(
            "document_id",
            pa.string(),
            "the source's own id, unique if the source's ids are, or the sha256 of the normalised article",
        ),
        _column(
            "split",
            pa.string(),
            "train, validation, test, or another name that the source uses",
        ),
        _column(
            "content_sha256",
            pa.string(),
            "sha256 of the normalised article, in hexadecimal",
        ),
        _column(
            "source_tokens",
            pa.int32(),
            "length of the article in tokens; null where no network read it",
            nullable=True,
        ),
        _column(
            "seen_tokens",
            pa.int32(),
            "tokens that the network read; null where none did",
            nullable=True,
        ),
        _column(
            "truncated",
            pa.bool_(),
            "seen_tokens < source_tokens; null where no network read it",
            nullable=True,
        ),
        _column("article_words", pa.int32(), "length of the article in words"),
        _column(
            "summary",
            pa.string(),
            "the text to show, one sentence a line; never longer than the article, in words",
        ),
        _column(
            "summary_method",
            pa.string(),
            "abstractive, the name of an extractive method, or source where the article is its own summary",
        ),
        _column(
            "quality_flags",
            _STRINGS,
            "what is to be said against `summary`; the names stand below",
        ),
        _column(
            "extractive_summary",
            pa.string(),
            "sentences of extractive_method in document order, one a line",
        ),
        _column(
            "extractive_method",
            pa.string(),
            "name of the method behind extractive_summary",
        ),
        _column("extractive", _SENTENCE, "the sentences that every method chose"),
        _column(
            "abstractive_summary",
            pa.string(),
            "the best candidate; null where no network read the article",
            nullable=True,
        ),
        _column(
            "abstractive",
            _CANDIDATE,
            "the candidates, best first; null where no network read the article",
            nullable=True,
        ),
        _column(
            "extractive_quality",
            pa.struct([*_MEASURES, _FLAGS]),
            "measures of extractive_summary",
        ),
        _column(
            "abstractive_quality",
            pa.struct([*_MEASURES, *_OF_NETWORKS, _FLAGS]),
            "measures of abstractive_summary; null where there is none",
            nullable=True,
        ),
        _column(
            "keyphrases",
            _KEYPHRASE,
            "phrases that say what the article is about, each method's best first; null without a bundle for them",
            nullable=True,
        ),
        _column(
            "reference_keyphrases",
            _STRINGS,
            "candidates of the article that its reference names, as stems; null without a bundle for keyphrases or a reference",
            nullable=True,
        ),
        _column(
            "reference_summary",
            pa.string(),
            "the highlights, one sentence a line; null if none",
            nullable=True,
        ),
        _column(
            "model_id",
            pa.string(),
            "fingerprint of the bundle; null without a network",
            nullable=True,
        ),
        _column(
            "extractive_model_id",
            pa.string(),
            "fingerprint of the bundle behind the method neural; null without one",
            nullable=True,
        ),
        _column(
            "keyphrase_model_id",
            pa.string(),
            "fingerprint of the bundle behind keyphrases; null without one",
            nullable=True,
        ),
        _column(
            "decode_id",
            pa.string(),
            "fingerprint of the decoding settings; null without a network",
            nullable=True,
        ),
        _RUN_ID,
        _column("schema_version", pa.int32(), "version of this schema"),
        _column("created_at", pa.timestamp("us", tz="UTC"), "when the run began"),
    ],
    metadata={"precis.schema": "summary", "precis.schema_version": str(SCHEMA_VERSION)},
)

SCORES_SCHEMA = pa.schema(
    [
        _column(
            "document_id",
            pa.string(),
            "the document; with run_id it names the row of the summaries",
        ),
        _column("run_id", pa.string(), "the run that wrote the summary"),
        _column(
            "system",
            pa.string(),
            "an extractive method as in extractive[].method, or abstractive, or summary",
        ),
        _column("rouge1", pa.float64(), "F1 of ROUGE-1, 0 to 1"),
        _column("rouge2", pa.float64(), "F1 of ROUGE-2, 0 to 1"),
        _column(
            "rougeL",
            pa.float64(),
            "F1 of ROUGE-L of the unsplit texts, 0 to 1; what papers on news call ROUGE-L is rougeLsum",
        ),
        _column(
            "rougeLsum",
            pa.float64(),
            "F1 of ROUGE-Lsum of the texts split at line breaks, 0 to 1",
        ),
    ],
    metadata={
        "precis.schema": "scores",
        "precis.schema_version": "1",
        "precis.variant": rouge.VARIANT,
    },
)

DEAD_LETTER_SCHEMA = pa.schema(
    [
        _column(
            "task", pa.int32(), "position of the task among the tasks of the corpus"
        ),
        _column("stage", pa.string(), "the stage that failed"),
        _column(
            "reason",
            pa.string(),
            "short constant name that dead letters are counted by",
        ),
        _column("detail", pa.string(), "what was wrong, without the document's text"),
        _column(
            "document_id",
            pa.string(),
            "the document, where it had been read",
            nullable=True,
        ),
        _column(
            "location",
            pa.string(),
            "where the record stands in its file",
            nullable=True,
        ),
        _column("raw", pa.binary(), "the record's bytes, cut at 64 KiB", nullable=True),
        _column(
            "records",
            pa.int32(),
            "how many records are lost with it; more than one where a file is damaged from some place on",
        ),
        _RUN_ID,
    ],
    metadata={
        "precis.schema": "dead_letter",
        "precis.schema_version": str(SCHEMA_VERSION),
    },
)


def summary_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Summary rows as an Arrow table; strict.

    Raises:
      DataError: a key too many or too few, a value of another type, or a null where
          none may be; names the column.
    """
    return _table(rows, SUMMARY_SCHEMA)


def dead_letter_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Dead letters as an Arrow table; as strict as `summary_table`."""
    return _table(rows, DEAD_LETTER_SCHEMA)


def write_parquet(
    path: str, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> int:
    """Publishes a Parquet file whose row groups are the given batches, each written as
    it comes.

    Equal batches give equal bytes. Empty batches are left out.

    Returns:
      The number of rows.

    Raises:
      DataError: a batch with another schema.
    """
    rows = 0
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", use_compliant_nested_type=True
        ) as writer,
    ):
        for batch in batches:
            if not batch.schema.equals(schema):
                raise DataError(
                    f"{path}: a batch with columns {batch.schema.names} does not have the schema of the file"
                )
            if batch.num_rows:
                table = (
                    pa.Table.from_batches([batch])
                    if isinstance(batch, pa.RecordBatch)
                    else batch
                )
                writer.write_table(table, row_group_size=table.num_rows)
                rows += table.num_rows
    return rows


def _table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    for row, values in enumerate(rows):
        _check_keys(values, schema, row)
    columns = [
        _array([values[field.name] for values in rows], field) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _check_keys(
    values: Any, fields: Iterable[pa.Field], row: int, within: str = ""
) -> None:
    """Arrow drops unknown keys and turns missing ones into nulls; here both are errors,
    also within lists.
    """
    if not isinstance(values, Mapping):
        raise DataError(
            f"row {row}: column {within.rstrip('.')!r} holds a {type(values).__name__} where a mapping is needed"
        )
    kinds = {field.name: field.type for field in fields}
    for name in values:
        if name not in kinds:
            raise DataError(
                f"row {row}: column {within + name!r} is not in the schema; known: {', '.join(kinds)}"
            )
    for name, kind in kinds.items():
        if name not in values:
            raise DataError(f"row {row}: column {within + name!r} is missing")
        if (
            pa.types.is_list(kind)
            and pa.types.is_struct(kind.value_type)
            and isinstance(values[name], list | tuple)
        ):
            for item in values[name]:
                _check_keys(item, kind.value_type, row, f"{within}{name}.")
        elif pa.types.is_struct(kind) and values[name] is not None:
            _check_keys(values[name], kind, row, f"{within}{name}.")


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        array = pa.array(values, type=field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"column {field.name!r} is no {field.type}: {error}") from error
    for name in _columns_with_forbidden_nulls(array, field, field.name):
        raise DataError(
            f"column {name!r} is null in at least one row, which the schema does not allow"
        )
    return array


def _columns_with_forbidden_nulls(
    array: pa.Array, field: pa.Field, name: str
) -> Iterator[str]:
    if array.null_count and not field.nullable:
        yield name
    if pa.types.is_list(field.type):
        items = array.flatten()
        if items.null_count:
            yield f"{name}[]"
        if pa.types.is_struct(items.type):
            yield from _nulls_within(items, name)
    elif pa.types.is_struct(field.type):
        yield from _nulls_within(array.drop_null(), name)


def _nulls_within(structs: pa.StructArray, name: str) -> Iterator[str]:
    for child in structs.type:
        yield from _columns_with_forbidden_nulls(
            structs.field(child.name), child, f"{name}.{child.name}"
        )


def as_markdown() -> str:
    """docs/SCHEMA.md: every column of the tables. `python -m pipelines.schema >
    docs/SCHEMA.md` writes it anew.
    """
    lines = [
        "# The Parquet tables",
        "",
        f"Schema version {SCHEMA_VERSION}. Columns are not null unless they say so. Files are compressed with zstd.",
    ]
    for title, schema in (
        ("Summaries: `summaries/part-*.parquet`", SUMMARY_SCHEMA),
        (
            "Scores of `precis evaluate`: `evaluation/scores/part-*.parquet`",
            SCORES_SCHEMA,
        ),
        ("Dead letters: `dead_letters/part-*.parquet`", DEAD_LETTER_SCHEMA),
    ):
        lines += [
            "",
            f"## {title}",
            "",
            "| column | type | |",
            "|---|---|---|",
            *_schema_rows(schema),
        ]
    lines += [
        "",
        "## Flags",
        "",
        "In `quality_flags` and in `flags` of both qualities, in this order.",
        "",
        "| flag | |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in FLAGS.items()]
    return "\n".join(lines) + "\n"


def _schema_rows(fields: Iterable[pa.Field], within: str = "") -> Iterator[str]:
    for field in fields:
        description = field.metadata[b"description"].decode()
        yield f"| `{within}{field.name}` | {_kind(field.type)}{', nullable' if field.nullable else ''} | {description} |"
        if pa.types.is_struct(field.type):
            yield from _schema_rows(field.type, f"{within}{field.name}.")
        elif pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            yield from _schema_rows(field.type.value_type, f"{within}{field.name}[].")


def _kind(kind: pa.DataType) -> str:
    """The name of a type; the fields of a struct have rows of their own."""
    if pa.types.is_list(kind):
        return (
            "list"
            if pa.types.is_struct(kind.value_type)
            else f"list of {kind.value_type}"
        )
    return "struct" if pa.types.is_struct(kind) else str(kind)


if __name__ == "__main__":
    print(as_markdown(), end="")
