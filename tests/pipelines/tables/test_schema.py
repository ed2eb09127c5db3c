"""Tests of the Parquet schema, its writer, and the rounding of scores."""

import math
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.model.errors import DataError
from precis.model.quality.flags import FLAGS
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.tables import schema
from precis.pipelines.tables.columns import round_margin, round_score


def some_value(kind):
    """A value of a type, without a null in it."""
    if pa.types.is_list(kind):
        return [some_value(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: some_value(field.type) for field in kind}
    return pa.scalar(1, pa.int8()).cast(kind).as_py()


ROW = {field.name: some_value(field.type) for field in schema.SUMMARY_SCHEMA}


def test_a_row_is_the_same_after_writing_and_reading(tmp_path):
    path = str(tmp_path / "a.parquet")
    nulls = {field.name: None for field in schema.SUMMARY_SCHEMA if field.nullable}
    empty = {name: [] for name, value in ROW.items() if isinstance(value, list)}
    rows = [ROW, {**ROW, **nulls, "document_id": "d2"}, {**ROW, **empty}]
    table = schema.summary_table(rows)
    assert write_parquet(path, [table], schema.SUMMARY_SCHEMA) == 3
    assert pq.read_table(path).to_pylist() == rows
    assert pq.read_schema(path).equals(schema.SUMMARY_SCHEMA)


def test_a_file_has_a_row_group_per_batch_zstd_and_compliant_lists(tmp_path):
    path = str(tmp_path / "a.parquet")
    tables = [schema.summary_table([ROW] * rows) for rows in (1, 0, 3)]
    batches = [*tables[:2], *tables[2].combine_chunks().to_batches()]
    assert write_parquet(path, batches, schema.SUMMARY_SCHEMA) == 4
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [1, 3]
    columns = [groups[0].column(column) for column in range(metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert "extractive.list.element.start" in [each.path_in_schema for each in columns]


SENTENCE, MEASURES = ROW["extractive"][0], ROW["extractive_quality"]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("colour", 1, "row 1: column 'colour' is not in the schema; known: do"),
        ("document_id", None, "column 'document_id' is null in at least one"),
        ("extractive", [SENTENCE | {"start": None}], r"\[\].start' is null"),
        ("extractive", [{"rank": 1}], r"'extractive\[\].method' is null"),
        ("extractive", [None], r"column 'extractive\[\]' is null"),
        ("extractive", 7, "column 'extractive' is not list"),
        ("article_words", 2**31, "column 'article_words' is not int32"),
        ("split", 7, "column 'split' is not string"),
        ("quality_flags", ["a", None], r"column 'quality_flags\[\]' is null"),
        ("extractive_quality", MEASURES | {"words": None}, "'extr.*.words' is null"),
        ("extractive_quality", MEASURES | {"flags": [None]}, r".flags\[\]' is null"),
        ("abstractive_quality", {}, "abstractive_quality.words' is null"),
        ("extractive_quality", 7, "column 'extractive_quality' is not struct"),
    ],
)
def test_a_wrong_row_is_refused(column, value, message):
    with pytest.raises(DataError, match=message):
        schema.summary_table([ROW, ROW | {column: value}])


def test_a_missing_column_is_refused_and_lists_of_the_source_may_hold_nulls():
    row = dict(ROW)
    del row["split"]
    with pytest.raises(DataError, match="row 1: column 'split' is missing"):
        schema.summary_table([ROW, row])
    field = pa.field("ids", pa.list_(pa.int64()))
    row = ROW | {"ids": [1, None]}
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


def documented_rows(fields, within="", known=()):
    """The rows that a page must have of the columns of a table.

    Fields that equal some known ones, such as measures of another summary, share a row.
    """
    same = [f"`{field.name}`" for field in fields if is_known(field, known)]
    if same:
        yield f"| `{within}*` | | as in `extractive_quality`: {', '.join(same)} |"
    for field in fields:
        kind = kind_name(field.type) + (", nullable" if field.nullable else "")
        description = field.metadata[b"description"].decode()
        if not is_known(field, known):
            yield f"| `{within}{field.name}` | {kind} | {description} |"
        inner, mark = field.type, "."
        if pa.types.is_list(inner):
            inner, mark = inner.value_type, "[]."
        if pa.types.is_struct(inner):
            path = f"{within}{field.name}{mark}"
            yield from documented_rows(inner, path, known_before(fields, field))


def is_known(field, known):
    return any(field.equals(each, check_metadata=True) for each in known)


def known_before(fields, field):
    """The measures that the page explains before a column, as those of an extract."""
    if "extractive_quality" not in fields.names or field.name == "extractive_quality":
        return []
    return list(fields.field("extractive_quality").type)


def test_the_page_has_every_column_and_flag_and_no_others():
    """Where a column changes, the assertion shows the rows that the page must have."""
    page = Path("docs/SCHEMA.md").read_text(encoding="utf-8")
    version = schema.SUMMARY_SCHEMA.metadata[b"precis.schema_version"].decode()
    assert version == str(schema.SCHEMA_VERSION)
    assert f"Schema version {schema.SCHEMA_VERSION}." in page
    _, summaries, groups, scores, _, _, flags = re.split(
        r"^## .*$", page, flags=re.MULTILINE
    )
    for text, columns in (
        (summaries, schema.SUMMARY_SCHEMA),
        (groups, schema.GROUP_SCHEMA),
        (scores, schema.SCORES_SCHEMA),
    ):
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        assert rows == list(documented_rows(columns))
    assert re.findall(r"^\| `(\w+)` \| .", flags, flags=re.MULTILINE) == [*FLAGS]


def test_scores_have_four_significant_digits_and_margins_three_decimals():
    given = -12.3456, 0.99996, 0.000123449, -1.23456e-20, 123456.0, 1, 0.0, -math.inf
    scores = [round_score(score) for score in given]
    assert scores == [-12.35, 1.0, 0.0001234, -1.235e-20, 123500.0, 1.0, 0.0, -math.inf]
    assert {type(score) for score in scores} == {float}
    margins = [round_margin(margin) for margin in (0.00049, -1.23456, None)]
    assert margins == [0.0, -1.235, None]
