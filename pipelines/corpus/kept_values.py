"""The fields of `--keep_fields`: names, types, and the values of records."""

import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from precis.model.errors import UsageError

_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)",
    re.ASCII | re.IGNORECASE,
)
_BOOLS = {"true": True, "false": False, "1": True, "0": False}


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
    kept: Iterable[KeptField], kinds: Mapping[str, str]
) -> tuple[KeptField, ...]:
    """The fields, those without a type with the one that `kinds` has for them."""
    return tuple(
        field if field.kind else KeptField(field.name, kinds[field.name])
        for field in kept
    )


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
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if value in _INT64 else "json"
    if isinstance(value, float):
        return "double"
    return "string" if isinstance(value, str) else "json"


def kept_values(record: Mapping[str, Any], kept: Iterable[KeptField]) -> dict[str, Any]:
    """The values of a record by field, each of the type of its field, or None.

    Raises:
      ValueError: a value that is not of the type; the message has no part of it.
    """
    values = {}
    for name, kind in kept:
        value = record.get(name)
        if value is not None and kind:
            try:
                value = _CONVERTERS[kind](value)
            except (ValueError, OverflowError, TypeError, RecursionError) as error:
                kind = kind.removesuffix("_text")
                raise ValueError(
                    f"{name!r} holds a {type(value).__name__} that is no {kind}"
                ) from error
        values[name] = value
    return values


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise TypeError


def _int64(value: Any) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        if not _INTEGER.fullmatch(text):
            raise ValueError
        value = int(text)
    elif isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT64:
        raise TypeError
    return value


def _double(value: Any) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        if not _NUMBER.fullmatch(text):
            raise ValueError
        return float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _bool(value: Any) -> bool | None:
    if isinstance(value, str):
        text = value.strip().lower()
        if not text:
            return None
        if text not in _BOOLS:
            raise ValueError
        return _BOOLS[text]
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise TypeError


def _date(value: Any) -> datetime.date | None:
    if isinstance(value, str):
        text = value.strip()
        return datetime.date.fromisoformat(text) if text else None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    raise TypeError


def _timestamp(value: Any) -> datetime.datetime | None:
    """A time in UTC; one without a zone is taken for UTC."""
    if isinstance(value, str):
        if not value.strip():
            return None
        value = datetime.datetime.fromisoformat(value.strip())
    elif not isinstance(value, datetime.datetime):
        if not isinstance(value, datetime.date):
            raise TypeError
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


def check_json_text(text: str) -> str | None:
    """A text that is JSON itself, as a cell of CSV may be; None for an empty one.

    Raises:
      ValueError: it is no JSON.
    """
    if not text.strip():
        return None
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
    "json_text": check_json_text,
}
KINDS = ("string", "int64", "double", "bool", "date", "timestamp", "json")
