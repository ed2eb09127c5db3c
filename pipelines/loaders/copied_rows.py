r"""The rows of a run in the text format of PostgreSQL's COPY.

    d00	0	test	Rain fell.\nNobody came.	["too_short"]	\N

A row is a line and a column ends with a tab. A backslash, a tab and a line break within
a text are written with a backslash; \N is null. The format of CSV is not used, because
psql before version 18 ends at a text that has \. on a line. Nested columns are JSON.

PostgreSQL has no texts with the character NUL. It becomes U+FFFD, so that offsets stay
as they are; within a key it is refused. So is a key that is too long for an index.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError
from precis.pipelines.tables.flat_columns import as_json_text
from precis.pipelines.warehouse.finished_run import FinishedRun

_NULL = "\\N"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_REPLACEMENT = "\ufffd"
# A row of an index has at most 2,704 bytes in PostgreSQL, the lengths of its columns
# among them. Longer keys fit if they can be compressed, which is not known here.
_MOST_KEY_BYTES = 2600
_SHOWN_CHARACTERS = 40


class CopiedRows(NamedTuple):
    """What `copy_rows` wrote.

    Attributes:
      rows: the number of rows.
      replaced: the values in which a NUL was replaced.
    """

    rows: int
    replaced: int


def copy_rows(run: FinishedRun, path: str, *, key: Sequence[str]) -> CopiedRows:
    """Writes the rows of a run, batch by batch.

    Args:
      run: a finished run.
      path: of the file.
      key: the columns of the key.

    Raises:
      DataError: a key holds a NUL or is too long.
    """
    rows = replaced = 0
    with files.write_aside(path) as file:
        for batch in run.batches():
            columns = []
            for field, values in zip(batch.schema, batch.columns, strict=True):
                column, count = _column(values, field, is_key=field.name in key)
                columns.append(column)
                replaced += count
            _check_keys(batch, key)
            lines = ("\t".join(row) for row in zip(*columns, strict=True))
            file.write("".join(f"{line}\n" for line in lines).encode())
            rows += batch.num_rows
    return CopiedRows(rows, replaced)


def _check_keys(batch: pa.RecordBatch, key: Sequence[str]) -> None:
    """Refuses keys that PostgreSQL cannot index.

    Raises:
      DataError: a key is too long.
    """
    columns = [batch.column(name).to_pylist() for name in key]
    for values in zip(*columns, strict=True):
        size = sum(len(str(value).encode()) for value in values)
        if size > _MOST_KEY_BYTES:
            name, longest = max(
                zip(key, map(str, values), strict=True), key=lambda item: len(item[1])
            )
            raise DataError(
                f"{name} {longest[:_SHOWN_CHARACTERS]!r}... is part of a key of "
                f"{size:,} bytes, and PostgreSQL indexes keys of at most "
                f"{_MOST_KEY_BYTES:,}; shorten the ids in the corpus, or name other "
                "columns with --table_key"
            )


def _column(
    values: pa.Array, field: pa.Field, *, is_key: bool
) -> tuple[list[str], int]:
    """The values of a column as they stand in the file, and how many had a NUL.

    Raises:
      DataError: a key holds a NUL.
    """
    convert = _converter(field.type)
    texts: list[str] = []
    replaced = 0
    for value in values.to_pylist():
        if value is None:
            texts.append(_NULL)
            continue
        text = convert(value)
        if "\0" in text:
            if is_key:
                raise DataError(
                    f"{field.name} {value!r} holds the character NUL, which PostgreSQL "
                    "does not have in a text; mend the ids in the corpus"
                )
            text = text.replace("\0", _REPLACEMENT)
            replaced += 1
        texts.append(text.translate(_ESCAPES))
    return texts, replaced


def _converter(kind: pa.DataType) -> Callable[[Any], str]:
    """The function that writes values of a type."""
    types = pa.types
    if types.is_nested(kind):
        return lambda value: _without_escaped_nul(as_json_text(value, kind))
    if types.is_binary(kind):
        return lambda value: f"\\x{value.hex()}"
    if types.is_boolean(kind):
        return lambda value: "t" if value else "f"
    if types.is_floating(kind):
        return _number
    if types.is_temporal(kind):
        return lambda value: value.isoformat()
    return str


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"


def _without_escaped_nul(text: str) -> str:
    r"""JSON text whose NUL is the character itself, so that it is found like others.

    An escape of JSON is `\u0000`; an even number of backslashes before the `u` is text.
    """
    if "\\u0000" not in text:
        return text
    parts = text.split("\\\\")
    return "\\\\".join(part.replace("\\u0000", "\0") for part in parts)
