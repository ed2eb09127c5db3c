"""`SummarizeGroups`: makes a row for each group of documents from summary rows.

The rows of a group are collected on one worker, in one of `_SHARDS` DuckDB databases,
which spill to disk. The command uses the same join to choose candidates and the same
function to choose among them. So the rows are equal, regardless of the number of
workers and the size of bundles. The join reduces large groups.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection, Row

from precis.model.errors import UsageError
from precis.model.text.document import TextSettings
from precis.pipelines.run.key_tables import ROWS_AT_ONCE, open_database
from precis.pipelines.run.options import check_effects, option_names, read_flags
from precis.pipelines.summarize.groups import (
    as_members,
    group_rows,
    join_candidates,
    load_members,
    member_columns,
)
from precis.pipelines.summarize.options import GroupOptions
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.schema import GROUP_SCHEMA
from precis.pipelines.transforms import beam_rows
from precis.pipelines.transforms.beam_transforms import in_batches, transform_settings

# More than the workers of an engine; each costs the time to open a database.
_SHARDS = 128


class SummarizeGroups(beam.PTransform):
    """Summarizes the groups of a PCollection of summary rows.

        groups = rows | SummarizeGroups("topic", extractive="lead")
        texts = groups | beam.Map(lambda row: (row.group_id, row.summary))

    The rows come from `SummarizeDocuments` for rows with a schema, with the grouping
    field in its `keep_fields`. The result is Beam rows with the columns of
    `GROUP_SCHEMA`. A row that was summarized with other settings than these options
    fails the pipeline.

    Groups are made per Beam window. The members of a group are collected on one worker,
    where DuckDB spills to disk what does not fit its memory.
    """

    def __init__(
        self,
        group_by: str,
        *,
        clean: str = "standard",
        language: str | None = None,
        run_id: str = "",
        **options: Any,
    ) -> None:
        """Stores its arguments.

        Args:
          group_by: as for `--group_by` of `precis summarize`: a field or day(FIELD).
          clean, language, run_id: as for `SummarizeDocuments`.
          **options: the options that `SummarizeDocuments` was given, and the other
              flags of groups, such as `max_group_candidates`.
        """
        super().__init__()
        self._group_options = {"group_by": group_by}
        for name in option_names([GroupOptions]):
            if name in options:
                self._group_options[name] = options.pop(name)
        self._summary_options = options
        self._text = TextSettings(clean, language)
        self._run_id = run_id

    def expand(self, rows: PCollection) -> Any:
        """Checks the options and adds the steps that summarize groups.

        Raises:
          UsageError: an invalid option, or a field that is missing or cannot form
              groups.
        """
        (groups,) = read_flags([GroupOptions], self._group_options)
        check_effects([groups])
        settings = transform_settings(self._summary_options, self._text, rows)
        schema = _column_types(beam_rows.fields_of(rows) or {}, groups)
        return (
            rows
            | "Batch" >> in_batches(ROWS_AT_ONCE)
            | "FindGroups"
            >> beam.FlatMap(
                _find_groups, groups, settings.settings_id, schema
            ).with_output_types(tuple[int, dict[str, Any]])
            | "ShuffleMembers" >> beam.GroupByKey()
            | "SummarizeShards"
            >> beam.ParDo(
                _SummarizeShard(settings, groups, schema, self._run_id)
            ).with_output_types(beam_rows.row_type(GROUP_SCHEMA))
        )


def _column_types(fields: Mapping[str, Any], groups: GroupOptions) -> pa.Schema:
    """The columns from which groups are made, with the types of the rows' fields.

    Raises:
      UsageError: a field is missing, or its type cannot form groups or an order.
    """
    names = member_columns(groups)
    missing = [name for name in (*names, "settings_id") if name not in fields]
    if missing:
        raise UsageError(
            f"SummarizeGroups: the elements have no schema with {', '.join(missing)}; "
            "give it the rows that SummarizeDocuments makes from rows with a schema, "
            "and keep the fields for groups there with keep_fields"
        )
    schema = beam_rows.table_schema({name: fields[name] for name in names})
    groups.field.check(schema, groups.order_by)
    return pa.schema([schema.field(name) for name in names])


def _find_groups(
    rows: Sequence[Any], groups: GroupOptions, settings_id: str, schema: pa.Schema
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the members of groups, by shard.

    Raises:
      UsageError: a row was made with other settings.
    """
    for row in rows:
        if row.settings_id != settings_id:
            raise UsageError(
                f"SummarizeGroups: a row has the settings {row.settings_id}, but the "
                f"options here give {settings_id}; use the same options as in "
                "SummarizeDocuments"
            )
    table = pa.Table.from_pylist(list(map(beam_rows.from_row, rows)), schema)
    for member in as_members(table, groups).to_pylist():
        key = hashlib.blake2b(repr(member["group_id"]).encode(), digest_size=8)
        yield int.from_bytes(key.digest()) % _SHARDS, member


class _SummarizeShard(beam.DoFn):
    """Summarizes the groups of a shard."""

    def __init__(
        self,
        settings: SummarySettings,
        groups: GroupOptions,
        schema: pa.Schema,
        run_id: str,
    ) -> None:
        self._settings, self._groups, self._run_id = settings, groups, run_id
        self._schema = as_members(schema.empty_table(), groups).schema

    def process(self, shard: tuple[int, Iterable[dict[str, Any]]]) -> Iterator[Row]:
        with open_database() as connection:
            load_members(connection, _tables(shard[1], self._schema), self._settings)
            batches = join_candidates(connection, self._groups)
            candidates = (each for batch in batches for each in batch.to_pylist())
            of_groups = self._settings, self._groups, self._run_id
            for row in group_rows(candidates, *of_groups):
                yield beam_rows.to_row(row, GROUP_SCHEMA)


def _tables(members: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    """Converts members to tables."""
    waiting = iter(members)
    while batch := list(itertools.islice(waiting, ROWS_AT_ONCE)):
        yield pa.Table.from_pylist(batch, schema)
