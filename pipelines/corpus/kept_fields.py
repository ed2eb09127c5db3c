"""The columns of the result that hold the fields of `--keep_fields`."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.task import Task

_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "json": pa.string(),
    "json_text": pa.string(),
}


def kept_columns(
    tasks: Sequence[Task], *, taken: Collection[str]
) -> tuple[pa.Field, ...]:
    """The columns of the kept fields, in the order in which the user named them.

    `Document.metadata` holds their values by the same names.

    Args:
      tasks: of the corpus; they know the types, which `list_tasks` found out.
      taken: the names of the other columns.

    Raises:
      UsageError: a field has the name of another column.
    """
    (task, *_) = tasks
    kept = task.fields.kept
    if not kept:
        return ()
    lower_case = {name.casefold() for name in taken}
    source_types: dict[str, pa.DataType] = {}
    if not all(field.kind for field in kept):
        from precis.pipelines.corpus.parquet import kept_types

        with files.open_read(task.paths[0]) as opened:
            source_types = kept_types(pq.read_schema(opened), task.fields)
    columns = []
    for name, kind in kept:
        if name.casefold() in lower_case:
            raise UsageError(
                f"--keep_fields {name}: the result has a column of this name already; "
                "give the field another name in the corpus, or leave it out"
            )
        columns.append(
            pa.field(
                name,
                _TYPES[kind] if kind else source_types[name],
                metadata={"description": f"field {name} of the source"},
            )
        )
    return tuple(columns)
