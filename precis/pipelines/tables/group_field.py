"""The field by which documents are grouped, `--group_by topic` or `day(created)`, and
the field by which the documents of a group are ordered, `--order_by created`.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from precis.model.errors import UsageError

if TYPE_CHECKING:  # `--help` does not need it.
    import pyarrow as pa

# Row columns by which rows can be grouped, in addition to kept fields.
OF_A_ROW = ("split", "language", "source_file")
_FORMATS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_WRITTEN = re.compile(rf"(?:({'|'.join(_FORMATS)})\()?(.*?)(?(1)\))", re.DOTALL)


class GroupField(NamedTuple):
    """A field whose values form groups.

    Attributes:
      name: the name of its column.
      unit: `day` for `day(created)`, or "".
    """

    name: str
    unit: str = ""

    def ids(self, values: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """The group id of each document, as text."""
        if self.unit:
            import pyarrow.compute as pc

            return pc.strftime(values, _FORMATS[self.unit])  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
        return values.cast("string")

    def check(self, schema: "pa.Schema", order_by: str) -> None:
        """Refuses columns that cannot form groups or define an order.

        Args:
          schema: the schema of the rows.
          order_by: the column of times or numbers of --order_by; "" without it.

        Raises:
          UsageError: the message names the field and its type.
        """
        from pyarrow import types

        kind = schema.field(self.name).type
        if self.unit and not _is_time(kind):
            flag = f"--group_by {self.unit}({self.name})"
            raise _not_of_times(flag, self.name, kind, "date or timestamp")
        if types.is_floating(kind):
            raise UsageError(
                f"--group_by {self.name}: the field is {kind}, and fractions cannot be "
                "grouped; name a field of texts, whole numbers, dates or booleans, or "
                f"add --keep_fields {self.name}:string"
            )
        kind = schema.field(order_by).type if order_by else None
        if kind and not (_is_time(kind) or types.is_integer(kind)):
            kinds = "date, timestamp or whole number"
            raise _not_of_times(f"--order_by {order_by}", order_by, kind, kinds)


def _is_time(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return types.is_date(kind) or types.is_timestamp(kind)


def _not_of_times(flag: str, name: str, kind: "pa.DataType", kinds: str) -> UsageError:
    """The error for a flag that names a column of the wrong type."""
    way_out = f"--keep_fields {name}:timestamp reads it as a time"
    if name in OF_A_ROW:
        way_out = "name a field of the corpus"
    return UsageError(f"{flag}: the field is {kind}, not a {kinds}; {way_out}")


def parse_group_field(text: str) -> GroupField:
    """Parses the value of --group_by."""
    unit, name = _WRITTEN.fullmatch(text).groups()  # pyright: ignore[reportOptionalMemberAccess]  # Checked before.
    return GroupField(name, unit or "")
