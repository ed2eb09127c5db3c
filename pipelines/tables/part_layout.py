"""How the rows of a run lie in its parts: columns, partitions, sizes."""

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.pipelines.corpus.kept_fields import kept_columns
from precis.pipelines.corpus.task import Task
from precis.pipelines.options.results import ResultOptions
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.partitions import Partitioning, partitioning
from precis.pipelines.tables.schema import (
    SUMMARY_SCHEMA,
    summary_schema,
    without_descriptions,
)


class PartLayout(NamedTuple):
    """How rows lie in parts.

    Attributes:
      schema: of the rows, with all columns.
      kept: the names of the columns that travel along from the source.
      partitioning: which rows share a folder.
      is_flat: whether nested columns become plain ones.
      row_group_bytes: about the size of a row group in memory.
    """

    schema: Any
    kept: tuple[str, ...] = ()
    partitioning: Partitioning = Partitioning()
    is_flat: bool = False
    row_group_bytes: int = 64 << 20

    @property
    def file_schema(self) -> pa.Schema:
        """The schema of the files."""
        schema = self.partitioning.without_columns(self.schema)
        return without_descriptions(flat_schema(schema) if self.is_flat else schema)

    def begun_at(self, moment: datetime.datetime) -> "PartLayout":
        """The layout of a run that began then, in UTC."""
        date = moment.astimezone(datetime.UTC).date().isoformat()
        return self._replace(partitioning=self.partitioning._replace(created_date=date))


def part_layout(options: ResultOptions, tasks: Sequence[Task]) -> PartLayout:
    """The layout that the flags ask for.

    Args:
      options: the flags.
      tasks: of the corpus.

    Raises:
      UsageError: a kept field, a partition or a flat column that cannot be.
    """
    fields = kept_columns(tasks, taken=SUMMARY_SCHEMA.names)
    kept = tuple(field.name for field in fields)
    schema = summary_schema(fields)
    if options.flat:
        flat_schema(schema)  # refuses names that are not unique
    return PartLayout(
        schema,
        kept,
        partitioning(options.partitions, schema, kept),
        options.flat,
        options.row_group_mb << 20,
    )
