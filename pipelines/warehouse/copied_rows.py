r"""The rows of a run in the text format of PostgreSQL's COPY.

    d00	0	test	Rain fell.\nNobody came.	["too_short"]	\N

A row is a line and a column ends with a tab. A backslash, a tab and a line break within
a text are written with a backslash; \N is null. The format of CSV is not used, because
psql before version 18 ends at a text that has \. on a line. Nested columns are JSON.

PostgreSQL has no texts with the character NUL. It becomes U+FFFD, so that offsets stay
as they are.
"""

import re
from typing import Any

import pyarrow as pa

from precis.model import files
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.tables.flat_columns import as_json_text

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# An escape of JSON; an even number of backslashes before the `u` is text.
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def copy_rows(run: FinishedRun, path: str) -> int:
    """Writes the rows of a run, batch by batch; returns how many NULs were replaced."""
    replaced = 0
    with files.write_aside(path) as file:
        for batch in run.batches():
            columns = [
                [_text(value, field.type) for value in values.to_pylist()]
                for field, values in zip(batch.schema, batch.columns, strict=True)
            ]
            rows = zip(*columns, strict=True)
            lines = "".join("\t".join(row) + "\n" for row in rows)
            replaced += lines.count("\0")
            file.write(lines.replace("\0", "\ufffd").encode())
    return replaced


def _text(value: Any, kind: pa.DataType) -> str:
    """A value as it stands in the file."""
    if value is None:
        return "\\N"
    if pa.types.is_binary(kind):
        text = f"\\x{value.hex()}"
    elif pa.types.is_nested(kind):
        text = _ESCAPED_NUL.sub("\\1\0", as_json_text(value, kind))
    else:
        text = str(value)
    return text.translate(_ESCAPES)
