"""Tests of nested columns as plain ones."""

import datetime
import decimal
import math
import zoneinfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.model.errors import UsageError
from precis.pipelines.tables.flat_columns import flat_schema, flatten, unflatten
from precis.pipelines.tables.schema import summary_schema

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


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.decimal128(5, 2), decimal.Decimal("1.50"), '"1.50"'),
        (pa.binary(), b"\xff", '"/w=="'),
        (pa.date32(), datetime.date(2024, 2, 29), '"2024-02-29"'),
        (pa.time64("us"), datetime.time(1, 2, 3, 40), '"01:02:03.000040"'),
        (pa.timestamp("us", OSLO.key), THREE, '"2024-01-02T03:00:00+01:00"'),
        (pa.float32(), math.nan, '"nan"'),
        (pa.float64(), -math.inf, '"-inf"'),
        (pa.float32(), 0.1, "0.1"),
    ],
)
def test_values_are_readable_and_those_that_json_lacks_text(kind, value, text):
    table = pa.table({"x": pa.array([[value]], pa.list_(kind))})
    assert flatten(table).to_pylist() == [{"x": f"[{text}]"}]
