"""Tests of the Parquet schema and its writer."""

import datetime
import os
import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.model.errors import DataError
from precis.model.quality.flags import FLAGS
from precis.pipelines.tables import schema

NOW = datetime.datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=datetime.UTC)

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
    ids = ("model_id", "extractive_model_id", "keyphrase_model_id", "decode_id")
    without_network = dict.fromkeys(
        [
            "source_tokens",
            "seen_tokens",
            "seen_ratio",
            "chunks",
            "abstractive_method",
            "truncated",
            "abstractive_summary",
            "abstractive",
            "abstractive_quality",
            *ids,
            "reference_summary",
            "reference_quality",
            "keyphrases",
            "reference_keyphrases",
        ]
    )
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


def test_every_column_is_described_in_the_file(tmp_path):
    path = str(tmp_path / "a.parquet")
    schema.write_parquet(path, [], schema.SUMMARY_SCHEMA)
    stored = pq.read_schema(path)
    assert stored.names[:2] == ["document_id", "split"]
    assert len(stored) == 36
    assert all(field.metadata[b"description"] for field in stored)
    assert stored.metadata[b"precis.schema_version"] == b"5"


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


def test_duckdb_filters_rows_by_their_flags(tmp_path):
    path = str(tmp_path / "a.parquet")
    rows = [summary_row(), summary_row(document_id="d2", quality_flags=[])]
    schema.write_parquet(path, [schema.summary_table(rows)], schema.SUMMARY_SCHEMA)
    query = f"""
        SELECT document_id FROM '{path}'
        WHERE NOT list_contains(quality_flags, 'too_short')
    """
    assert duckdb.sql(query).fetchall() == [("d2",)]
    query = f"""
        SELECT extractive_quality.unsupported_numbers,
               abstractive_quality.mean_log_prob
        FROM '{path}' LIMIT 1
    """
    assert duckdb.sql(query).fetchall() == [(["two"], -0.5)]


def test_equal_rows_are_equal_bytes(tmp_path):
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    for path in paths:
        schema.write_parquet(
            str(path), [schema.summary_table([summary_row()])], schema.SUMMARY_SCHEMA
        )
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_duckdb_reads_the_nested_lists(tmp_path):
    path = str(tmp_path / "a.parquet")
    schema.write_parquet(
        path, [schema.summary_table([summary_row()])], schema.SUMMARY_SCHEMA
    )
    query = f"""
        SELECT document_id, s.text, s.start, s.rank
        FROM (SELECT document_id, UNNEST(extractive) AS s FROM '{path}')
        ORDER BY s.start
    """
    assert duckdb.sql(query).fetchall() == [("d1", "One.", 0, 1), ("d1", "Two.", 5, 2)]


NO_START = sentence()
del NO_START["start"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"colour": 1},
            "row 1: column 'colour' is not in the schema; known: document_id, split",
        ),
        ({"document_id": None}, "column 'document_id' is null"),
        ({"extractive": None}, "column 'extractive' is null"),
        ({"extractive": [NO_START]}, "row 1: column 'extractive.start' is missing"),
        (
            {"extractive": [sentence(start=None)]},
            "column 'extractive.start' is null",
        ),
        (
            {"extractive": [sentence(colour=1)]},
            "row 1: column 'extractive.colour' is not in the schema; "
            "known: method, rank",
        ),
        (
            {"abstractive": [{"rank": 1, "score": 0.0, "text": None, "support": None}]},
            "column 'abstractive.text' is null",
        ),
        (
            {"extractive": [None]},
            "row 1: column 'extractive' holds a NoneType where a mapping is needed",
        ),
        ({"extractive": 7}, "column 'extractive' is no list"),
        ({"article_words": "many"}, "column 'article_words' is no int32"),
        ({"article_words": 2**31}, "column 'article_words' is no int32"),
        ({"split": 7}, "column 'split' is no string"),
        ({"quality_flags": ["too_short", None]}, r"column 'quality_flags\[\]' is null"),
        ({"extractive_quality": None}, "column 'extractive_quality' is null"),
        (
            {"extractive_quality": MEASURES | {"words": None}},
            "column 'extractive_quality.words' is null",
        ),
        (
            {"extractive_quality": MEASURES | {"flags": [None]}},
            r"column 'extractive_quality.flags\[\]' is null",
        ),
        (
            {"extractive_quality": MEASURES | {"colour": 1}},
            "row 1: column 'extractive_quality.colour' is not in the schema; "
            "known: words",
        ),
        (
            {"abstractive_quality": MEASURES},
            "row 1: column 'abstractive_quality.mean_log_prob' is missing",
        ),
        (
            {"extractive_quality": 7},
            "row 1: column 'extractive_quality' holds a int where a mapping is needed",
        ),
    ],
)
def test_a_wrong_row_is_refused(changes, message):
    with pytest.raises(DataError, match=message):
        schema.summary_table([summary_row(), summary_row(**changes)])


def test_a_missing_column_is_refused():
    row = summary_row()
    del row["split"]
    with pytest.raises(DataError, match="row 0: column 'split' is missing"):
        schema.summary_table([row])


def test_a_batch_of_another_schema_leaves_no_file(tmp_path):
    path = str(tmp_path / "a.parquet")
    batches = [schema.summary_table([summary_row()]), pa.table({"other": [1]})]
    message = r"a.parquet: a batch with columns \['other'\] does not have the schema"
    with pytest.raises(DataError, match=message):
        schema.write_parquet(path, batches, schema.SUMMARY_SCHEMA)
    assert os.listdir(tmp_path) == []


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
