"""The fields of `--keep_fields`: their names, types, values and columns."""

import datetime
import decimal
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from precis.model.config import comma_list
from precis.model.errors import UsageError
from precis.pipelines.corpus.task import KeptField, Task

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("string", "int64", "double", "bool", "date", "timestamp", "json")
_INT64 = range(-(2**63), 2**63)
_BOOLS = {"true": True, "false": False, "1": True, "0": False}
# The exceptions of a conversion when a value does not have the type.
_NO_VALUE = (LookupError, OverflowError, RecursionError, TypeError, ValueError)


class Float(float):
    """A JSON number with a point or exponent, which keeps its text: 1.10, not 1.1."""

    def __init__(self, text: str) -> None:
        self.text = text


_NUMBERS = {int: "int64", float: "double", Float: "double", decimal.Decimal: "double"}


def parse_kept_fields(text: str) -> tuple[KeptField, ...]:
    """Parses fields such as `date:timestamp,section`.

    Raises:
      UsageError: a type is unknown, or a field is repeated.
    """
    kept = []
    for part in comma_list(text):
        name, colon, kind = part.rpartition(":")
        if not colon:
            name, kind = part, ""
        elif kind not in KINDS or not name:
            raise UsageError(
                f"--keep_fields {part}: unknown type {kind!r}; the types are "
                f"{', '.join(KINDS)} (if the name holds a colon, add a type)"
            )
        kept.append(KeptField(name, kind))
    names = [field.name.casefold() for field in kept]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"--keep_fields names {name} more than once (case is ignored); name "
                "it once"
            )
    return tuple(kept)


def field_value(record: Mapping[str, Any], name: str) -> Any:
    """The value of a field; `doc.body` is the field `body` of `doc`.

    A field whose name contains the dot has precedence.
    """
    value = record.get(name)
    if value is not None or "." not in name:
        return value
    *path, last = name.split(".")
    for part in path:
        record = record.get(part, value)
        if not isinstance(record, Mapping):
            return None
    return record.get(last)


def found_kind(records: Iterable[Mapping[str, Any]], name: str) -> str:
    """Infers the type of a field from some JSON records; null fits every type.

    1, 2            int64_found     "a", "b"    string_found
    1, 2.5          double_found    true        bool_found
    1, "a", null    json_found      null        json_found
    """
    types = {type(field_value(record, name)) for record in records} - {type(None)}
    names = {bool: "bool", str: "string"} | _NUMBERS
    kinds = {names.get(each, "json") for each in types}
    if kinds == {"int64", "double"}:
        return "double_found"
    return f"{kinds.pop() if len(kinds) == 1 else 'json'}_found"


def kept_values(record: Mapping[str, Any], kept: Iterable[KeptField]) -> dict[str, Any]:
    """The values of a record's kept fields, each in the type of its field, or None.

    Raises:
      ValueError: a value does not have the type; the message does not show the value.
    """
    values = {}
    for name, kind in kept:
        value = field_value(record, name)
        try:
            values[name] = None if value is None else _converted(value, kind)
        except _NO_VALUE as error:
            kind = kind.partition("_")[0]
            is_nested = kind == "string" or isinstance(value, list | dict)
            fitting = "json" if is_nested else "string"
            way_out = f"; --keep_fields {name}:{fitting} keeps it unchanged"
            raise ValueError(
                f"{name!r} holds a {type(value).__name__.lower()} that is not a valid "
                f"{kind}" + way_out * (kind != fitting)
            ) from error
    return values


def _converted(value: Any, kind: str) -> Any:
    """Converts a value to a type; a blank text is None, except for texts.

    If the type was inferred from JSON, a text must equal the JSON of the value:

        int64       "01067" 1067        int64_found     "1067" 1067, 4.0 4, not "01067"
        bool        1 true              bool_found      "true" true, not 1

    Raises an exception of `_NO_VALUE` if the value does not have the type.
    """
    is_text = isinstance(value, str)
    if kind.endswith("_found"):
        found = _converted(value, kind.removesuffix("_found"))
        is_other_type = is_text or (type(found) is bool and type(value) is not bool)
        if is_other_type and not isinstance(found, str) and value != json.dumps(found):
            raise TypeError
        return found
    if is_text and kind not in ("string", "json"):
        value = value.strip()
        if not value:
            return None
    # Python also reads `1_000` and digits of other scripts.
    is_number = is_text and value.isascii() and "_" not in value
    match kind:
        case "string" if is_text:
            return value
        case "string" if isinstance(value, datetime.date):
            return value.isoformat()
        case "string" if isinstance(value, int | float):
            return value.text if isinstance(value, Float) else json.dumps(value)
        case "string" if isinstance(value, decimal.Decimal):
            return f"{value:f}"
        case "int64":
            is_whole = isinstance(value, float) and value.is_integer()
            number: Any = int(value) if is_number or is_whole else value
            is_exact = not is_whole or abs(number) < 2**53
            if type(number) is int and number in _INT64 and is_exact:
                return number
        case "double" if is_number or type(value) in _NUMBERS:
            real = float(value)
            text = value if is_text else getattr(value, "text", "")
            if math.isinf(real) and re.search(r"\d", text):  # 1e400
                raise OverflowError
            if is_text or real == value or not abs(real) >= 2**53:  # NaN too
                return real
        case "bool":
            return _BOOLS[f"{value}".lower()]
        case "date" if is_text:
            return datetime.date.fromisoformat(value)
        case "date" if type(value) is datetime.date:
            return value
        case "timestamp":
            return _timestamp(value)
        case "json":  # `json` also writes NaN, which is not JSON.
            return json.dumps(
                value, ensure_ascii=False, allow_nan=False, default=_plain
            )
        case "json_text":
            orjson.loads(value)
            return value
    raise TypeError


def _timestamp(value: Any) -> datetime.datetime:
    """Converts a time to UTC; a time without zone is UTC."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    moment: datetime.datetime = value.astimezone(datetime.UTC)
    return moment


def _plain(value: Any) -> Any:
    """Converts values that JSON does not have."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if hasattr(value, "tolist"):  # an array of NumPy
        return value.tolist()
    raise TypeError


def kept_column(name: str, kind: str) -> "pa.Field":
    """The column of a kept field, by its type."""
    import pyarrow as pa

    types = {
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    column = types.get(kind.partition("_")[0], pa.string())
    return pa.field(
        name, column, metadata={"description": f"field {name} of the corpus"}
    )


def kept_columns(
    tasks: Sequence[Task], *, taken: Collection[str]
) -> tuple["pa.Field", ...]:
    """The columns of the kept fields, in the order that the user gave.

    `Document.metadata` has the values under the same names.

    Args:
      tasks: the tasks of the corpus; `list_tasks` stored the types in them.
      taken: the names of the other columns.

    Raises:
      UsageError: a field has the name of another column, or different types in files of
          the run.
    """
    # Tasks of unreadable files have no kept fields.
    readable = [task for task in tasks if task.fields.kept]
    columns: list[pa.Field] = []
    for task in readable:
        fields = [kept_column(*field) for field in task.fields.kept]
        columns = columns or fields
        if fields != columns:
            raise UsageError(
                f"--keep_fields: a field has one type in {readable[0].paths[0]} and "
                f"another in {task.paths[0]}; add a type, such as FIELD:string"
            )
    lower_case = {name.casefold() for name in taken}
    for column in columns:
        if column.name.casefold() in lower_case:
            raise UsageError(
                f"--keep_fields {column.name}: the result already has a column of this "
                "name; rename the field in the corpus, or leave it out"
            )
    return tuple(columns)
