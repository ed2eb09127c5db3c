"""`precis loaders`: writes SQL that loads a finished run into a warehouse."""

import glob
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import jinja2
import pyarrow as pa

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.listing import absolute_path
from precis.pipelines.run.options import read_flags
from precis.pipelines.run.result_files import check_apart
from precis.pipelines.tables.flat_columns import as_json_text
from precis.pipelines.warehouse.options import (
    CLICKHOUSE,
    DUCKDB,
    LOADERS,
    LoadersOptions,
)
from precis.pipelines.warehouse.rows import check_keys, open_run_of_documents
from precis.pipelines.warehouse.sql_table import SQL_FOLDER, Dialect, define_table

# The macros of the templates; their statements run in this, alphabetical, order.
_SCRIPTS = ("create", "load", "merge", "view")

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# A JSON escape of NUL; with an even number of backslashes before the `u`, it is text.
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class LoaderFiles(NamedTuple):
    """The files that load a run.

    Attributes:
      files: their content by name: create.sql, load.sql, merge.sql, view.sql.
      rows: the number of rows of the run.
      replaced_nuls: how many NUL characters in --copy_rows were replaced by U+FFFD.
    """

    files: Mapping[str, str]
    rows: int
    replaced_nuls: int


def loaders(**flags: Any) -> LoaderFiles:
    """Writes SQL that loads a finished run; docs/RESULTS.md shows its use.

    Args:
      **flags: the fields of `LoadersOptions`.

    Returns:
      The content of the files, which are written to `output` if it is given.

    Raises:
      UsageError: the run is not finished or has no rows of documents, the output is in
          it, or a name or type is not possible in the warehouse.
      DataError: the run is damaged, or its key is not unique.
    """
    (options,) = read_flags(LOADERS, flags)
    for flag in ("output", "copy_rows"):
        if place := getattr(options, flag):
            check_apart(place, flag=f"--{flag}", result=options.run)
    dialect = Dialect(options.for_)
    location = _location(options, dialect)
    run = open_run_of_documents(options.run)
    if not run.rows:
        raise UsageError(
            f"{run.folder} has no rows, so the columns of the table are unknown; name "
            "a run with rows"
        )
    check_keys(run, options.key, may_be_null=True)
    table = define_table(
        run,
        options.table,
        dialect,
        key=options.key,
        location=location,
        copied_rows=os.path.abspath(options.copy_rows),
    )
    texts = {f"{name}.sql": render(table, name) for name in _SCRIPTS}
    replaced = 0
    if options.copy_rows:
        with files.write_aside(options.copy_rows) as file:
            replaced = copy_rows(run.batches(), file.write)
    if options.output:
        for name, text in texts.items():
            files.write_bytes(files.join(options.output, name), text.encode())
    return LoaderFiles(texts, run.rows, replaced)


def render(table: SimpleNamespace, macro: str) -> str:
    """The statements of a macro in the template of the table's dialect."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(SQL_FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["literal"] = table.dialect.literal
    environment.filters["escape_pattern"] = glob.escape
    template = environment.get_template(f"{table.dialect.name}.sql")
    return str(getattr(template.make_module({"table": table}), macro)())


def copy_rows(batches: Iterable[pa.RecordBatch], write: Callable[[bytes], Any]) -> int:
    r"""Writes rows in the text format of PostgreSQL's COPY.

        d00	0	test	Rain fell.\nNobody came.	["too_short"]	\N

    A line is a row, and a tab ends each column. Backslashes, tabs and line breaks in
    texts are escaped with a backslash; \N is null. CSV is not used, because psql before
    version 18 stops at a text that has \. on a line. Nested columns are JSON.

    PostgreSQL texts cannot contain NUL. U+FFFD replaces it, so that offsets stay the
    same.

    Returns:
      The number of NUL characters that were replaced.
    """
    replaced = 0
    for batch in batches:
        columns = [
            [_text(value, field.type) for value in values.to_pylist()]
            for field, values in zip(batch.schema, batch.columns, strict=True)
        ]
        rows = zip(*columns, strict=True)
        lines = "".join("\t".join(row) + "\n" for row in rows)
        replaced += lines.count("\0")
        write(lines.replace("\0", "\ufffd").encode())
    return replaced


def _text(value: Any, kind: pa.DataType) -> str:
    """Formats a value for the file."""
    if value is None:
        return "\\N"
    if pa.types.is_binary(kind):
        text = f"\\x{value.hex()}"
    elif pa.types.is_nested(kind):
        text = _ESCAPED_NUL.sub("\\1\0", as_json_text(value, kind))
    else:
        text = str(value)
    return text.translate(_ESCAPES)


def _location(options: LoadersOptions, dialect: Dialect) -> str:
    """The folder of a run as the warehouse addresses it.

    Raises:
      UsageError: the warehouse cannot read from this place.
    """
    place = options.location or options.run
    if dialect.name in (DUCKDB, CLICKHOUSE) and files.is_local(place):
        place = os.path.abspath(absolute_path(place))
    if not place.startswith(tuple(dialect.rules["places"])):
        raise UsageError(
            f"{dialect.name} cannot read {place}; give --location "
            f"{dialect.rules['location']}"
        )
    return place


def client_command(warehouse: str, folder: str) -> str:
    """A shell command that creates the table and loads the run.

    Empty for Databricks, and for files that are not on this machine.

    Args:
      warehouse: the value of --for.
      folder: the folder of the files.
    """
    client = Dialect(warehouse).rules["client"]
    if not client or not files.is_local(folder):
        return ""
    folder = os.path.abspath(folder.removeprefix("file://"))
    client = client.format(python=shlex.quote(sys.executable))
    return f"cat {shlex.quote(folder)}/*.sql | {client}"
