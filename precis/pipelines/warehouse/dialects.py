"""The warehouses: how they write names and texts, and what they call types.

list<struct<rank: int32, text: string>>
    bigquery     ARRAY<STRUCT<`rank` INT64, `text` STRING>>
    databricks   ARRAY<STRUCT<`rank`: INT, `text`: STRING>>
    duckdb       STRUCT("rank" INTEGER, "text" VARCHAR)[]
    clickhouse   Array(Tuple(`rank` Int32, `text` String))
    snowflake    ARRAY
    postgresql   JSONB
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.warehouse.options import WAREHOUSES

SQL_FOLDER = Path(__file__).parent / "sql"


class Dialect:
    """The SQL of a warehouse, as far as names, texts and types go.

    Attributes:
      name: as --for has it.
      rules: what dialects.toml says of it.
      types: those of SQL by the names of those of Arrow.
    """

    def __init__(self, name: str) -> None:
        content = tomllib.loads((SQL_FOLDER / "dialects.toml").read_text("utf-8"))
        place = WAREHOUSES.index(name)
        self.name = name
        self.rules: dict[str, Any] = {**content["default"], **content[name]}
        self.types = {kind: names[place] for kind, names in content["types"].items()}

    def quoted(self, *names: str) -> str:
        """Names between quotes, with dots between them.

        Snowflake reads a name without quotes in upper case. Plain names are written
        so, and can be asked for without quotes.

        Raises:
          UsageError: a name would end the line of a command.
        """
        quote, within = self.rules["quote"], self.rules["quote_in_name"]
        quoted = []
        for name in names:
            if {*name} & {*"\n\r\0"}:
                raise UsageError(
                    f"{name!r} holds a line break or NUL, which names in SQL cannot "
                    "have; give the field another name in the corpus, or leave it out "
                    "of --keep_fields"
                )
            if self.rules["is_upper_case"] and name.isascii() and name.isidentifier():
                name = name.upper()
            if within:
                name = name.replace("\\", "\\\\")
            quoted.append(f"{quote}{name.replace(quote, within or 2 * quote)}{quote}")
        return ".".join(quoted)

    def literal(self, text: str) -> str:
        """A text between single quotes."""
        if not self.rules["escapes_backslash"]:
            return "'" + text.replace("'", "''") + "'"
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"

    def type_of(self, kind: pa.DataType, column: str, *, may_be_null: bool) -> str:
        """A type, without NOT NULL.

        Args:
          kind: of Arrow.
          column: where it stands, for the error.
          may_be_null: whether it, or a struct that it is in, may be null.

        Raises:
          UsageError: the warehouse has no type for it.
        """
        if pa.types.is_struct(kind):
            # They are made for JSON too, to find a type without a counterpart.
            fields = [
                self.rules["field"].format(
                    name=self.quoted(each.name),
                    type=self.type_of(
                        each.type,
                        f"{column}.{each.name}",
                        may_be_null=may_be_null or each.nullable,
                    ),
                )
                for each in kind
            ]
            return self.rules["struct"].format(", ".join(fields))
        if pa.types.is_list(kind):
            item = kind.value_field
            of_item = self.type_of(item.type, column, may_be_null=item.nullable)
            return self.rules["list"].format(of_item)
        if pa.types.is_decimal(kind):
            name = self._decimal(kind)
        else:
            # Without width and unit: `timestamp` or `timestamp_utc`, `time`, `date`.
            plain = re.sub(r"(^date|^time)(32|64)|\[.*", r"\1", str(kind))
            has_zone = getattr(kind, "tz", None) is not None
            name = self.types.get(f"{plain}_utc" if has_zone else plain, "")
        if not name:
            raise UsageError(
                f"column {column!r} is {kind}, for which {self.name} has no type; "
                "summarize with another type, as in "
                f"--keep_fields {column.split('.')[0]}:string, or without the column"
            )
        return self.rules["nullable"].format(name) if may_be_null else name

    def _decimal(self, kind: Any) -> str:
        whole = kind.precision - kind.scale
        for name, most_whole, most_scale, most_digits in self.rules["decimals"]:
            fits = whole <= most_whole and 0 <= kind.scale <= most_scale
            if fits and kind.precision <= most_digits:
                return f"{name}({kind.precision}, {kind.scale})"
        return ""
