"""`precis loaders`: a finished run -> the SQL that loads it into a warehouse."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.flags.flags import read_flags
from precis.pipelines.loaders.bigquery_schema import bigquery_schema
from precis.pipelines.loaders.copied_rows import copy_rows
from precis.pipelines.loaders.create_table import create_table
from precis.pipelines.loaders.dialects import dialect_named
from precis.pipelines.loaders.flat_views import flat_views
from precis.pipelines.loaders.load_files import load_files
from precis.pipelines.loaders.locations import location_of, warn_of_paths
from precis.pipelines.loaders.merge_rows import merge_rows
from precis.pipelines.loaders.table_definition import define_table
from precis.pipelines.options.loaders import (
    BIGQUERY,
    LOADERS,
    POSTGRESQL,
    LoadersOptions,
)
from precis.pipelines.run.output_place import (
    check_apart,
    check_file_place,
    check_folder_place,
)
from precis.pipelines.warehouse.finished_run import FinishedRun, open_run
from precis.pipelines.warehouse.row_keys import check_unique


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoaderFiles:
    """What loads a run.

    Attributes:
      files: the texts by the names of their files: create.sql, load.sql, merge.sql,
          view.sql, and schema.json for BigQuery.
      rows: the rows of the run.
      replaced_nuls: the values of --copy_rows in which a NUL became U+FFFD.
    """

    files: Mapping[str, str]
    rows: int
    replaced_nuls: int = 0


def loaders(**flags: Any) -> LoaderFiles:
    """Writes the SQL that loads a finished run; docs/LOADERS.md says how to use it.

    Args:
      **flags: the fields of `LoadersOptions`.

    Returns:
      The texts, which are also in the folder `output` if it is given.

    Raises:
      UsageError: no finished run, an output within it, a name that the warehouse does
          not take, or a column whose type it does not have.
      DataError: the run is damaged, or its key is not unique.
    """
    (options,) = read_flags(LOADERS, flags)
    _check_places(options)
    run = open_run(options.run)
    if not run.rows:
        raise UsageError(
            f"{run.folder} has no rows, and so no columns that a table could have; "
            "give a run with rows"
        )
    texts = _texts(run, options)
    run.check_parts()
    check_unique(run, options.key)
    warn_of_paths(options)
    replaced = 0
    if options.copy_rows:
        replaced = copy_rows(run, options.copy_rows, key=options.key).replaced
    if options.output:
        for name, text in texts.items():
            files.write_bytes(files.join(options.output, name), text.encode())
    return LoaderFiles(files=texts, rows=run.rows, replaced_nuls=replaced)


def _check_places(options: LoadersOptions) -> None:
    if options.output:
        check_folder_place(options.output, flag="--output")
        check_apart(options.output, flag="--output", result=options.run)
    if options.copy_rows:
        check_file_place(options.copy_rows, flag="--copy_rows")
        check_apart(options.copy_rows, flag="--copy_rows", result=options.run)


def _texts(run: FinishedRun, options: LoadersOptions) -> dict[str, str]:
    dialect = dialect_named(options.for_)
    table = define_table(
        options.table,
        dialect,
        run_id=run.run_id,
        schema=run.schema,
        key=options.key,
    )
    location = location_of(options.run, options.location, dialect)
    load = load_files(
        table,
        run.parts,
        location=location,
        copied_rows=os.path.abspath(options.copy_rows),
    )
    scripts = {
        "create.sql": create_table(table),
        "load.sql": load,
        "merge.sql": merge_rows(table),
        "view.sql": flat_views(table),
    }
    # psql reads a file in the encoding of the session.
    first = ["SET client_encoding TO 'UTF8'"] * (dialect.name == POSTGRESQL)
    texts = {
        name: _script([*first, *statements]) for name, statements in scripts.items()
    }
    if dialect.name == BIGQUERY:
        schema = orjson.dumps(bigquery_schema(run.schema), option=orjson.OPT_INDENT_2)
        texts["schema.json"] = f"{schema.decode()}\n"
    return texts


def _script(statements: Sequence[str]) -> str:
    """Statements as a file; a command of psql, `\\copy`, ends with its line."""
    return "".join(
        f"{statement}\n" if statement.startswith("\\") else f"{statement};\n"
        for statement in statements
    )
