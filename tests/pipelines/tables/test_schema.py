"""Tests of the Parquet schema and its writer."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.model.errors import DataError
from precis.model.quality.flags import FLAGS
from precis.pipelines.tables import schema

MEASURES = {
    "words": 2,
    "novel_1grams_percent": 0.0,
    "novel_2grams_percent": 50.0,
    "novel_3grams_percent": None,
    "novel_4grams_percent": None,
    "coverage": 1.0,
    "density": 2.0,
    "compression": 4.5,
    "length_ratio": 0.25,
    "repetition_rate": 0.0,
    "unsupported_numbers": ["two"],
    "unsupported_dates": [],
    "unsupported_names": None,
    "flags": ["unsupported_number"],
}


def sentence(**changes):
    values = {
        "method": "lead",
        "rank": 1,
        "score": 1.0,
        "start": 0,
        "end": 4,
        "text": "One.",
    }
    return values | changes


ROW = {
    "document_id": "d1",
    "split": "test",
    "content_sha256": "0" * 64,
    "source_tokens": 12,
    "seen_tokens": 10,
    "seen_ratio": 10 / 12,
    "chunks": 1,
    "abstractive_method": "head",
    "truncated": True,
    "article_words": 9,
    "summary": "One.\nTwo.",
    "summary_method": "lead",
    "quality_flags": ["too_short"],
    "extractive_summary": "One.\nTwo.",
    "extractive_method": "lead",
    "extractive": [
        sentence(),
        sentence(rank=2, score=0.5, start=5, end=9, text="Two."),
    ],
    "abstractive_summary": "Both.",
    "abstractive": [
        {
            "rank": 1,
            "score": -0.5,
            "text": "Both.",
            "support": [{"start": 0, "end": 9}],
        }
    ],
    "extractive_quality": MEASURES,
    "abstractive_quality": {**MEASURES, "mean_log_prob": -0.5, "beam_margin": None},
    "other_quality": [
        {
            "system": "frequency",
            "words": 1,
            "novel_2grams_percent": None,
            "repetition_rate": 0.0,
            "flags": ["too_short"],
        }
    ],
    "reference_quality": {
        name: MEASURES[name]
        for name in ("words", "novel_2grams_percent", "repetition_rate", "flags")
    },
    "keyphrases": [{"method": "classifier", "phrase": "one", "score": 0.5}],
    "reference_keyphrases": ["one"],
    "reference_summary": "One and two.",
    "model_id": "m",
    "extractive_model_id": "e",
    "keyphrase_model_id": "p",
    "decode_id": "k",
    "run_id": "r",
    "schema_version": 2,
    "source_file": "news.jsonl",
    "source_position": "byte 12",
    "duplicate_of": None,
    "settings_id": "5" * 16,
    "reused_from": None,
}


def summary_row(**changes):
    return ROW | changes


def test_a_row_is_the_same_after_writing_and_reading(tmp_path):
    path = str(tmp_path / "a.parquet")
    # What is null without a network, without keyphrases and without a reference.
    names = (
        "source_tokens seen_tokens seen_ratio chunks abstractive_method truncated "
        "abstractive_summary abstractive abstractive_quality model_id decode_id "
        "extractive_model_id keyphrase_model_id reference_summary reference_quality "
        "keyphrases reference_keyphrases"
    )
    without_network = dict.fromkeys(names.split())
    empty = {"extractive": [], "abstractive": [], "quality_flags": [], "keyphrases": []}
    rows = [
        summary_row(),
        summary_row(document_id="d2", **without_network),
        summary_row(document_id="d3", **empty),
    ]
    table = schema.summary_table(rows)
    assert schema.write_parquet(path, [table], schema.SUMMARY_SCHEMA) == 3
    assert pq.read_table(path).to_pylist() == rows
    assert pq.read_schema(path).equals(schema.SUMMARY_SCHEMA)


def test_a_file_has_a_row_group_per_batch_zstd_and_compliant_lists(tmp_path):
    path = str(tmp_path / "a.parquet")
    tables = [
        schema.summary_table([summary_row(document_id=str(n))] * n) for n in (1, 0, 3)
    ]
    batches = [tables[0], tables[1], tables[2].combine_chunks().to_batches()[0]]
    assert schema.write_parquet(path, iter(batches), schema.SUMMARY_SCHEMA) == 4
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [1, 3]
    columns = [groups[0].column(column) for column in range(metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    paths = [column.path_in_schema for column in columns]
    assert "extractive.list.element.start" in paths


def without(values, name):
    return {key: value for key, value in values.items() if key != name}


def measures(**changes):
    return {"extractive_quality": MEASURES | changes}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW | {"colour": 1}, "row 1: column 'colour' is not in the schema; known: do"),
        (without(ROW, "split"), "row 1: column 'split' is missing"),
        (ROW | {"document_id": None}, "column 'document_id' is null in at least one"),
        (ROW | {"extractive": [without(sentence(), "start")]}, "'.*start' is null"),
        (
            ROW | {"extractive": [sentence(start=None)]},
            r"extractive\[\].start' is null",
        ),
        (ROW | {"extractive": [None]}, r"column 'extractive\[\]' is null"),
        (ROW | {"extractive": 7}, "column 'extractive' is no list"),
        (ROW | {"article_words": 2**31}, "column 'article_words' is no int32"),
        (ROW | {"split": 7}, "column 'split' is no string"),
        (ROW | {"quality_flags": ["a", None]}, r"column 'quality_flags\[\]' is null"),
        (ROW | measures(words=None), "column 'extractive_quality.words' is null"),
        (ROW | measures(flags=[None]), r"'extractive_quality.flags\[\]' is null"),
        (ROW | {"abstractive_quality": MEASURES}, "mean_log_prob' is null"),
        (ROW | {"extractive_quality": 7}, "column 'extractive_quality' is no struct"),
    ],
)
def test_a_wrong_row_is_refused(row, message):
    with pytest.raises(DataError, match=message):
        schema.summary_table([summary_row(), row])


def test_a_list_of_the_source_may_hold_nulls():
    field = pa.field("ids", pa.list_(pa.int64()))
    row = summary_row(ids=[1, None])
    table = schema.summary_table([row], schema.summary_schema([field]))
    assert table.to_pylist() == [row]


def kind_name(kind):
    """The name of a type; the fields of a struct have rows of their own."""
    if pa.types.is_struct(kind):
        return "struct"
    if not pa.types.is_list(kind):
        return str(kind)
    is_of_structs = pa.types.is_struct(kind.value_type)
    return "list" if is_of_structs else f"list of {kind.value_type}"


def documented_rows(fields, within=""):
    """The rows that a page must have of the columns of a table."""
    for field in fields:
        kind = kind_name(field.type) + (", nullable" if field.nullable else "")
        description = field.metadata[b"description"].decode()
        yield f"| `{within}{field.name}` | {kind} | {description} |"
        if pa.types.is_struct(field.type):
            yield from documented_rows(field.type, f"{within}{field.name}.")
        elif kind.startswith("list") and "of" not in kind:
            yield from documented_rows(
                field.type.value_type, f"{within}{field.name}[]."
            )


def test_the_page_has_every_column_and_flag_and_no_others():
    """Where a column changes, the assertion shows the rows that the page must have."""
    page = Path("docs/SCHEMA.md").read_text(encoding="utf-8")
    version = schema.SUMMARY_SCHEMA.metadata[b"precis.schema_version"].decode()
    assert version == str(schema.SCHEMA_VERSION)
    assert f"Schema version {schema.SCHEMA_VERSION}." in page
    _, summaries, scores, _, _, flags = re.split(r"^## .*$", page, flags=re.MULTILINE)
    for text, columns in (
        (summaries, schema.SUMMARY_SCHEMA),
        (scores, schema.SCORES_SCHEMA),
    ):
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        assert rows == list(documented_rows(columns))
    rows = [line for line in flags.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{name}` | {meaning} |" for name, meaning in FLAGS.items()]
