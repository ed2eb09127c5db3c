"""The Arrow types that the columns of a source are kept in."""

import pyarrow as pa


def plain_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as every reader of Parquet knows it, or None if there is none.

    dictionary<string>, large_string     string
    timestamp[ns, tz=UTC], time64[ns]    timestamp[us, tz=UTC], time64[us]
    large_list<item: date64>             list<element: date32>
    map<string, int64>                   None
    """
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_date(kind):
        return pa.date32()
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_time64(kind):
        return pa.time64("us")
    if types.is_struct(kind):
        return _plain_struct(kind)
    if (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    ):
        item = plain_type(kind.value_type)
        return pa.list_(pa.field("element", item)) if item else None
    is_plain = (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_decimal(kind)
        or types.is_string(kind)
        or types.is_binary(kind)
        or types.is_timestamp(kind)
        or types.is_time32(kind)
    )
    return kind if is_plain else None


def _plain_struct(kind: pa.StructType) -> pa.DataType | None:
    fields = [(field.name, plain_type(field.type)) for field in kind]
    if not fields or any(inner is None for _, inner in fields):
        return None
    return pa.struct([pa.field(name, inner) for name, inner in fields])
