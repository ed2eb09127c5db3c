"""The fields of `--keep_fields`: their names, types, values and columns."""

import datetime
import decimal
import email.utils
import json
import math
import re
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from precis.model.errors import UsageError
from precis.pipelines.corpus.task import KeptField, Task
from precis.pipelines.corpus.values import field_value, is_missing, plain_text

if TYPE_CHECKING:
    import pyarrow as pa

# Seconds and milliseconds since 1970, in UTC, and their microseconds.
_EPOCHS = {"epoch": 10**6, "epoch_ms": 10**3}
KINDS = ("string", "int64", "double", "bool", "date", "timestamp", *_EPOCHS, "json")
_INT64 = range(-(2**63), 2**63)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_BOOLS: dict[str, bool] = {word: word in _TRUE for word in (*_TRUE, *_FALSE)}
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# The exceptions of a conversion when a value does not have the type.
_NO_VALUE = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
# A time of RFC 2822; in a zone of another name `email` would read it as UTC.
_MAIL_TIME = re.compile(
    r"([A-Za-z]{3}, ?)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(:\d\d)? "
    r"([+-]\d{4}|UTC?|GMT|Z|[ECMP][SD]T)( \(.*\))?"
)
# What databases add to times of ISO 8601: UTC by name, white space before the offset.
_NOT_ISO = re.compile(r"(?<=\d)\s*(?:UTC|GMT|Z)$|(?<=\d)\s+(?=[+-]\d)")
_MIDNIGHT = re.compile(r"(?<=[T ])24(?=(?::?00){0,2}(?:[.,]0+)?(?:[+-]|$))")
_SAMPLE = datetime.datetime(2024, 12, 31, 23, 59, 58, 999_999, datetime.UTC)


class Float(float):
    """A JSON number with a point or exponent, which keeps its text: 1.10, not 1.1."""

    def __init__(self, text: str) -> None:
        self.text = text


_NUMBERS = {int: "int64", float: "double", Float: "double", decimal.Decimal: "double"}


def split_fields(text: str) -> list[str]:
    """The fields in a list; a comma in parentheses is part of a field.

    day:date(%b %d, %Y),section   ->   day:date(%b %d, %Y)   section
    """
    parts = (part.strip() for part in re.split(r",(?![^()]*\))", text))
    return list(filter(None, parts))


def parse_kept_fields(text: str) -> tuple[KeptField, ...]:
    """Parses fields such as `date:timestamp,section,day:date(%d.%m.%Y)`.

    Raises:
      UsageError: a type is unknown, a form of times is invalid, or a field is repeated.
    """
    kept = []
    for part in split_fields(text):
        with_form = re.fullmatch(r"(.+?):((?:date|timestamp)\((.*)\))", part)
        name, colon, kind = part.rpartition(":")
        if with_form:
            name, kind, form = with_form.groups()
            _check_form(form, part)
        elif not colon:
            name, kind = part, ""
        elif kind not in KINDS or not name:
            raise UsageError(
                f"--keep_fields {part}: unknown type {kind!r}; the types are "
                f"{', '.join(KINDS)}, and date and timestamp with a form, as in "
                "date(%d.%m.%Y) (if the name holds a colon, add a type)"
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


def _check_form(form: str, part: str) -> None:
    """Checks that Python reads times in a form, and that they have a year.

    Raises:
      UsageError: it does not.
    """
    # Which names of zones Python knows depends on the machine.
    problem = "%Z is not possible, %z is" if "%Z" in form else ""
    try:
        if _read_time(_SAMPLE.strftime(form), form).year != _SAMPLE.year:
            problem = "it has no year"
    except (ValueError, re.error) as error:
        problem = str(error)
    if problem:
        raise UsageError(
            f"--keep_fields {part}: {form!r} is no form of times ({problem}); write "
            "one as for strptime of Python, such as %d.%m.%Y or %Y/%m/%d %H:%M:%S"
        )


def _kind_of(value: Any) -> str:
    if type(value) is int and value not in _INT64:
        return "json"
    return ({bool: "bool", str: "string"} | _NUMBERS).get(type(value), "json")


def found_kind(records: Iterable[Mapping[str, Any]], name: str) -> str:
    """Infers the type of a field from some JSON records; null fits every type.

    1, 2            int64_found     "a", "b"    string_found
    1, 2.5          double_found    true        bool_found
    1, "a", null    json_found      null        json_found
    1, NaN          double_found    "a", NaN    string_found
    1, 2**63        json_found
    """
    values = (field_value(record, name) for record in records)
    kinds = {
        _kind_of(value) if value == value else "missing number"
        for value in values
        if value is not None
    }
    # pandas has NaN for null in columns of every type.
    has_nan = "missing number" in kinds
    kinds.discard("missing number")
    if kinds == {"int64", "double"} or (has_nan and kinds <= {"int64"}):
        return "double_found"
    return f"{kinds.pop() if len(kinds) == 1 else 'json'}_found"


def kept_values(record: Mapping[str, Any], kept: Iterable[KeptField]) -> dict[str, Any]:
    """The values of a record's kept fields, each in the type of its field, or None.

    Raises:
      ValueError: a value does not have the type; the message names the field, the
          value and a type that fits.
    """
    values = {}
    for name, kind in kept:
        value = field_value(record, name)
        try:
            values[name] = None if value is None else _converted(value, kind)
        except _NO_VALUE as error:
            raise ValueError(_refusal(name, value, kind)) from error
    return values


def _refusal(name: str, value: Any, kind: str) -> str:
    """Why a value is not kept, and the types that fit."""
    kind = kind.removesuffix("_found").removesuffix("_text")
    try:
        shown, fitting = _converted(value, "string"), "string"
    except _NO_VALUE:
        shown, fitting = reprlib.repr(value), "json"
    shown = f"{shown[:40]}..." if len(shown) > 43 else shown
    shown = repr(shown) if isinstance(value, str | bytes) else shown
    ways = [f"{name}:{fitting} keeps it unchanged"] * (kind != fitting)
    if kind in ("date", "timestamp") and isinstance(value, str):
        ways.append(f"{name}:{kind}(FORM) reads other forms, such as %d.%m.%Y")
    elif kind in ("date", "timestamp") and type(value) in _NUMBERS:
        ways.append(f"{name}:epoch or {name}:epoch_ms reads the time since 1970")
    way_out = f"--keep_fields {', '.join(ways)}" if ways else "leave the field out"
    return f"{name!r} holds {shown}, which is not a valid {kind}; {way_out}"


def _converted(value: Any, kind: str) -> Any:
    """Converts a value to a type; a blank text is None, except for texts.

    Raises an exception of `_NO_VALUE` if the value does not have the type.
    """
    if kind.endswith("_found"):
        return _as_inferred(value, kind.removesuffix("_found"))
    is_text = isinstance(value, str)
    if is_text and kind not in ("string", "json"):
        value = value.strip()
        if not value:
            return None
    if not is_text and kind != "double" and is_missing(value):
        return None
    # Python also reads `1_000` and digits of other scripts.
    is_plain = is_text and value.isascii() and "_" not in value
    is_number = is_plain or _is_number(value)
    kind, _, form = kind.partition("(")
    if is_text and kind in ("date", "timestamp"):
        value = _read_time(value, form.removesuffix(")"))
    match kind:
        case "string" if isinstance(value, int | float):
            return value.text if isinstance(value, Float) else json.dumps(value)
        case "string":
            return plain_text(value)
        case "int64" if is_number:
            exact = decimal.Decimal(value)  # A float is exact below 2**53.
            limit = 2**53 if isinstance(value, float) else 2**64
            is_whole = -limit < exact < limit and exact == int(exact)
            if is_whole and int(exact) in _INT64:
                return int(exact)
        case "double" if is_number:
            real = float(value)
            text = value if is_text else getattr(value, "text", "")
            if math.isinf(real) and re.search(r"\d", text):  # 1e400
                raise OverflowError
            if is_text or real == value or not abs(real) >= 2**53:  # NaN too
                return real
        case "bool":
            return _BOOLS[f"{value}".lower()]
        case "date" if isinstance(value, datetime.date):
            return value.date() if isinstance(value, datetime.datetime) else value
        case "timestamp":
            return _timestamp(value)
        case "epoch" | "epoch_ms" if is_number:
            # The shortest text of a float is the number that was meant.
            count = decimal.Decimal(_converted(value, "string")) * _EPOCHS[kind]
            if -(2**63) < count < 2**63:
                return _START + datetime.timedelta(microseconds=math.floor(count))
        case "json":  # JSON has no NaN.
            text = json.dumps(value, ensure_ascii=False, default=_plain)
            if "NaN" in text or "Infinity" in text:
                value = json.loads(text, parse_constant={"NaN": None}.__getitem__)
                text = json.dumps(value, ensure_ascii=False)
            return text
        case "json_text":
            orjson.loads(value)
            return value
    raise TypeError


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float | decimal.Decimal)
    return is_number and not isinstance(value, bool)


def _as_inferred(value: Any, kind: str) -> Any:
    """Converts a value to a type that was inferred from JSON: a text must equal the
    JSON of the value.

    int64       "01067" 1067        int64_found     "1067" 1067, 4.0 4, not "01067"
    bool        1 true              bool_found      "true" true, not 1
    """
    found = _converted(value, kind)
    is_text = isinstance(value, str)
    is_other_type = is_text or (type(found) is bool and type(value) is not bool)
    if is_other_type and not isinstance(found, str) and value != json.dumps(found):
        raise TypeError
    return found


def _timestamp(value: Any) -> datetime.datetime:
    """Converts a time to UTC; a time without zone is UTC."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    moment: datetime.datetime = value.astimezone(datetime.UTC)
    return moment


def _read_time(text: str, form: str = "") -> datetime.datetime:
    """Reads a time in a form of `strptime`, with English names of months and days; by
    default as ISO 8601 and RFC 2822 have it, and as databases write it.

    2024-05-01    2024-05-01T10:00:00Z    2024-05-01 10:00:00 UTC    20240501T24:00
    2024-W18-3    2024-05-01 10:00 +0000  Wed, 01 May 2024 10:00:00 +0200 (CEST)
    """
    if form:
        return datetime.datetime.strptime(text, form)
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        if _MAIL_TIME.fullmatch(text):
            return email.utils.parsedate_to_datetime(text)
        text, is_next_day = _MIDNIGHT.subn("00", _NOT_ISO.sub("", text))
        moment = datetime.datetime.fromisoformat(text)
        return moment + datetime.timedelta(days=is_next_day)


def _plain(value: Any) -> Any:
    """Converts values that JSON does not have."""
    return value.tolist() if hasattr(value, "tolist") else plain_text(value)


def kept_column(name: str, kind: str) -> "pa.Field":
    """The column of a kept field, by its type."""
    import pyarrow as pa

    types = {
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "epoch": pa.timestamp("us", tz="UTC"),
    }
    base = re.split("[_(]", kind)[0]  # int64_found, epoch_ms, date(%Y)
    column = types.get(base, pa.string())
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
        for one, other in zip(columns, fields, strict=True):
            if one != other:
                raise UsageError(
                    f"--keep_fields {one.name}: {one.type} in {readable[0].paths[0]} "
                    f"and {other.type} in {task.paths[0]}; add a type, such as "
                    f"{one.name}:string"
                )
    lower_case = {name.casefold() for name in taken}
    for column in columns:
        if column.name.casefold() in lower_case:
            raise UsageError(
                f"--keep_fields {column.name}: the result already has a column of this "
                "name; rename the field in the corpus, or leave it out"
            )
    return tuple(columns)
