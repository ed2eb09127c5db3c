"""The fields of `--keep_fields`: names, types, and the values of records."""

import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from precis.model.errors import UsageError

KINDS = ("string", "int64", "double", "bool", "date", "timestamp", "json")
_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)",
    re.ASCII | re.IGNORECASE,
)
# What a conversion raises for a value that is not of the type.
_NO_VALUE = (KeyError, OverflowError, RecursionError, TypeError, ValueError)


class KeptField(NamedTuple):
    """A field of the source that travels along with the document.

    Attributes:
      name: the field.
      kind: one of `KINDS`, `json_text` for text that is JSON already, or "" where the
          source's own type is kept.
    """

    name: str
    kind: str = ""


def parse_kept_fields(text: str) -> tuple[KeptField, ...]:
    """The fields of `date:timestamp,section`.

    Raises:
      UsageError: a type is unknown, or a field comes twice.
    """
    kept = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, kind = part.rpartition(":")
        if not colon:
            name, kind = part, ""
        elif kind not in KINDS or not name:
            raise UsageError(
                f"--keep_fields {part}: there is no type {kind!r}; the types are "
                f"{', '.join(KINDS)} (after a name that holds a colon give the type)"
            )
        kept.append(KeptField(name, kind))
    names = [field.name.casefold() for field in kept]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"--keep_fields names {name} more than once (upper and lower case are "
                "one name in many tables); name it once"
            )
    return tuple(kept)


def with_kinds(
    kept: Iterable[KeptField], kind_of: Callable[[str], str]
) -> tuple[KeptField, ...]:
    """The fields, those without a type with the one that the source has for them."""
    return tuple(
        field if field.kind else KeptField(field.name, kind_of(field.name))
        for field in kept
    )


def field_value(record: Mapping[str, Any], name: str) -> Any:
    """The value of a field; `doc.body` is the field `body` within `doc`.

    A field whose own name has the dot comes first.
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


def infer_kind(values: Iterable[Any]) -> str:
    """The type of some JSON values; nulls fit every type.

    1, 2            int64           "a", "b"    string
    1, 2.5          double          true        bool
    1, "a", null    json            null        json
    """
    kinds = {_kind_of(value) for value in values if value is not None}
    if kinds == {"int64", "double"}:
        return "double"
    return kinds.pop() if len(kinds) == 1 else "json"


def _kind_of(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "int64" if value in _INT64 else "json"
    return {bool: "bool", float: "double", str: "string"}.get(type(value), "json")


def kept_values(record: Mapping[str, Any], kept: Iterable[KeptField]) -> dict[str, Any]:
    """The values of a record by field, each of the type of its field, or None.

    Raises:
      ValueError: a value that is not of the type; the message has no part of it.
    """
    values = {}
    for name, kind in kept:
        value = field_value(record, name)
        if value is not None and kind:
            try:
                value = _converted(value, kind)
            except _NO_VALUE as error:
                kind = kind.removesuffix("_text")
                raise ValueError(
                    f"{name!r} holds a {type(value).__name__} that is no {kind}"
                ) from error
        values[name] = value
    return values


def _converted(value: Any, kind: str) -> Any:
    """The value as one of a type; a blank text is none, unless it may be a text."""
    if isinstance(value, str) and kind not in ("string", "json"):
        text = value.strip()
        if not text:
            return None
        value = value if kind == "json_text" else text
    return _CONVERTERS[kind](value)


def _string(value: Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if not isinstance(value, str | int | float):
        raise TypeError
    return value if isinstance(value, str) else json.dumps(value)


def _int64(value: Any) -> int:
    is_text = isinstance(value, str) and _INTEGER.fullmatch(value)
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    number = int(value) if is_text or is_whole else value
    if type(number) is not int or number not in _INT64:
        raise TypeError
    return number


def _double(value: Any) -> float:
    is_text = isinstance(value, str) and _NUMBER.fullmatch(value)
    if not is_text and type(value) not in (int, float):
        raise TypeError
    return float(value)


def _bool(value: Any) -> bool:
    return {"true": True, "false": False, "1": True, "0": False}[f"{value}".lower()]


def _date(value: Any) -> datetime.date:
    if isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if type(value) is not datetime.date:
        raise TypeError
    return value


def _timestamp(value: Any) -> datetime.datetime:
    """A time in UTC; one without a zone is taken for UTC."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    moment: datetime.datetime = value.astimezone(datetime.UTC)
    return moment


def _json(value: Any) -> str:
    # `json` also writes NaN, which is no JSON.
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """Values that JSON does not have, as plain ones."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if hasattr(value, "tolist"):  # an array of NumPy
        return value.tolist()
    raise TypeError


def _json_text(text: str) -> str:
    """A text that is JSON itself, as a cell of CSV may be."""
    orjson.loads(text)
    return text


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "string": _string,
    "int64": _int64,
    "double": _double,
    "bool": _bool,
    "date": _date,
    "timestamp": _timestamp,
    "json": _json,
    "json_text": _json_text,
}
