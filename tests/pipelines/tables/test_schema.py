"""Tests of the Parquet schema, its writer, flat columns, and the rounding of scores."""

import datetime
import decimal
import math
import re
import zoneinfo
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.model.errors import DataError, UsageError
from precis.model.quality.flags import FLAGS
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.tables import schema
from precis.pipelines.tables.columns import round_margin, round_score
from precis.pipelines.tables.flat_columns import flat_schema, flatten, unflatten
from precis.pipelines.tables.schema import summary_schema


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


def test_a_wrong_row_is_refused():
    for column, value, message in (
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
    ):
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


# What the summaries are made of; kept fields stay as they are in a flat run.
LEAVES = {
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
}


@st.composite
def fields(draw, name, depth=2):
    """A field, and the values that it may have."""
    nullable = draw(st.booleans())
    shape = draw(st.sampled_from(["leaf", "list", "struct"] if depth else ["leaf"]))
    if shape == "leaf":
        kind = draw(st.sampled_from(sorted(LEAVES, key=str)))
        values = LEAVES[kind]
    elif shape == "list":
        item, item_values = draw(fields("element", depth - 1))
        kind, values = pa.list_(item), st.lists(item_values, max_size=3)
    else:
        count = draw(st.integers(1, 3))
        children = [draw(fields(f"{shape}{n}", depth - 1)) for n in range(count)]
        kind = pa.struct([child for child, _ in children])
        values = st.fixed_dictionaries({child.name: some for child, some in children})
    if nullable:
        values = st.none() | values
    return pa.field(name, kind, nullable), values


@st.composite
def tables(draw):
    columns = [draw(fields(name)) for name in ("a", "b", "c")]
    row = st.fixed_dictionaries({field.name: values for field, values in columns})
    schema = pa.schema([field for field, _ in columns])
    return pa.Table.from_pylist(draw(st.lists(row, max_size=4)), schema=schema)


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(0, 2))
def test_unflatten_gives_back_every_value(table, first):
    table = table.slice(first)
    flat = flatten(table)
    assert not any(pa.types.is_nested(field.type) for field in flat.schema)
    assert flat.schema.equals(flat_schema(table.schema))
    for field, column in zip(flat.schema, flat.columns, strict=True):
        assert field.nullable or not column.null_count
    restored = unflatten(flat, table.schema)
    assert restored.equals(table)
    assert restored.schema.equals(table.schema)


def test_a_field_with_the_name_of_a_flat_column_is_refused():
    name = "Extractive_quality_words"
    columns = f"the columns 'extractive_quality' and '{name}'; leave --flat out"
    with pytest.raises(UsageError, match=f"two columns named '{name}', from {columns}"):
        flat_schema(summary_schema([pa.field(name, pa.int64())]))


OSLO = zoneinfo.ZoneInfo("Europe/Oslo")
THREE = datetime.datetime(2024, 1, 2, 3, tzinfo=OSLO)


def test_values_are_readable_and_those_that_json_lacks_text():
    for kind, value, text in (
        (pa.decimal128(5, 2), decimal.Decimal("1.50"), '"1.50"'),
        (pa.binary(), b"\xff", '"/w=="'),
        (pa.date32(), datetime.date(2024, 2, 29), '"2024-02-29"'),
        (pa.time64("us"), datetime.time(1, 2, 3, 40), '"01:02:03.000040"'),
        (pa.timestamp("us", OSLO.key), THREE, '"2024-01-02T03:00:00+01:00"'),
        (pa.float32(), math.nan, '"nan"'),
        (pa.float64(), -math.inf, '"-inf"'),
        (pa.float32(), 0.1, "0.1"),
    ):
        table = pa.table({"x": pa.array([[value]], pa.list_(kind))})
        assert flatten(table).to_pylist() == [{"x": f"[{text}]"}]
