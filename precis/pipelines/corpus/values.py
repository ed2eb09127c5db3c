"""The values of a record: where they are, which are missing, what they are as text."""

import datetime
import decimal
import numbers
import re
import uuid
from collections.abc import Mapping
from typing import Any

# How PostgreSQL, MySQL, Hive and Spark write null in text.
_NULL = "\\N"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def field_value(record: Mapping[str, Any], name: str) -> Any:
    """The value of a field; `doc.body` is the field `body` of `doc`.

    If `doc` is a list of objects, the value is the list of their bodies. A field whose
    name contains the dot has precedence.
    """
    value = record.get(name)
    if value is not None or "." not in name:
        return value
    values: list[Any] = [record]
    is_list = False
    for part in name.split("."):
        is_list = is_list or isinstance(values[0], list)
        if is_list:
            lists = (each if isinstance(each, list) else [each] for each in values)
            values = [item for items in lists for item in items]
        # An item of a list that is no object stays, so that it is not lost.
        values = [
            each.get(part) if isinstance(each, Mapping) else each if is_list else None
            for each in values
        ]
    return values if is_list else values[0]


def is_missing(value: Any) -> bool:
    r"""Whether a value is None, NaN (or NaT of pandas), or the text `\N`."""
    if isinstance(value, str):
        return value == _NULL
    kinds = float | decimal.Decimal | datetime.datetime
    return value is None or (isinstance(value, kinds) and value != value)


def plain_text(value: Any) -> str:
    """The text of a value that has a usual form as text. Of bytes it is their UTF-8, or
    their hexadecimal digits if they are not UTF-8 or hold control characters.

    Raises:
      TypeError: the value is a number other than a decimal, or has no usual form.
    """
    match value:
        case str():
            return value
        case uuid.UUID():
            return str(value)
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return str(value)
        case bytes():
            try:
                text = value.decode()
            except UnicodeDecodeError:
                return value.hex()
            return value.hex() if _CONTROL.search(text) else text
    raise TypeError(f"a value of type {type(value).__name__}")


def id_text(value: Any) -> str:
    """The text of an id, the same for equal values of all formats; "" if it is missing.

        12, 12.0, Decimal("12.00")    12
        UUID(int=1)                   00000000-0000-0000-0000-000000000001
        09:00 at +02:00               2024-05-01T07:00:00Z

    Raises:
      TypeError: the value is not an id; the message completes "the field holds ...".
    """
    if isinstance(value, str) and value != _NULL:
        return value
    if is_missing(value):
        return ""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        raise TypeError(
            f"the float {value!r}; only whole floats below 2**53 are ids, because "
            "others may be rounded: write ids as integers or text"
        )
    if isinstance(value, datetime.datetime) and value.tzinfo:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return f"{value.isoformat()}Z"
    text = plain_text(value)
    whole, _, digits = text.partition(".")
    is_whole = isinstance(value, decimal.Decimal) and not digits.strip("0")
    return whole if is_whole else text


def texts_of(value: Any) -> list[str]:
    """The texts in a field that holds a text, an object with a field `text`, or a list
    of them. Missing items are left out.

        ["Rain fell.", None, {"text": "It was cold.", "page": 2}]
        ->   Rain fell.   It was cold.

    Raises:
      TypeError: it holds something else; the message completes "the field holds ...".
      UnicodeDecodeError: bytes are not UTF-8.
    """
    if isinstance(value, str) and value != _NULL:
        return [value]
    if is_missing(value):
        return []
    if isinstance(value, bytes):
        return [value.decode()]
    value = list_of(value)
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    if isinstance(value, Mapping):
        if "text" in value:
            return texts_of(value["text"])
        raise TypeError(
            "an object without a field 'text'; name one of its fields behind a dot, as "
            "in doc.body"
        )
    raise TypeError(f"a value of type {type(value).__name__}")


def list_of(value: Any) -> Any:
    """A list of a tuple or an array of NumPy, a dict of a row of Beam; other values are
    unchanged.
    """
    if hasattr(value, "_asdict"):
        return value._asdict()
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
