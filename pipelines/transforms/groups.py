"""`SummarizeGroups`: summary rows -> a row for each group of documents.

The rows of a group come together at one worker, in one of `_SHARDS` databases of
DuckDB, which spills to disk. The join that chooses the candidates, and the function
that chooses among them, are those of the command, so the rows are too, whatever the
number of workers and the size of Beam's bundles. Large groups are reduced in the join.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.shared import Shared

from precis.pipelines.corpus.records import check_fields
from precis.pipelines.corpus.task import DeadLetter
from precis.pipelines.run.key_tables import ROWS_AT_ONCE, open_database
from precis.pipelines.run.options import option_names, read_flags
from precis.pipelines.summarize.groups import (
    GroupSummarizer,
    as_members,
    join_candidates,
    load_members,
    member_columns,
)
from precis.pipelines.summarize.options import GroupOptions
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.group_field import check_order
from precis.pipelines.tables.schema import GROUP_SCHEMA, SUMMARY_SCHEMA
from precis.pipelines.transforms import beam_rows
from precis.pipelines.transforms.beam_transforms import (
    DEAD_LETTERS,
    ROWS,
    in_batches,
    transform_settings,
)

# More than an engine has workers; each costs the time to open a database.
_SHARDS = 128
_REWRITTEN_TOGETHER = 256
_MEMBER_SCHEMA = as_members(
    SUMMARY_SCHEMA.empty_table(), GroupOptions(group_by="split"), 0
).schema


class SummarizeGroups(beam.PTransform):
    """Summarizes the groups of a PCollection of summary rows.

        groups = result.rows | SummarizeGroups("topic", extractive="lead")
        texts = groups | beam.Map(lambda row: (row.group_id, row.summary))

    The rows are those of `SummarizeDocuments`, dicts or with a schema, with the field
    that makes the groups among them. The result is Beam rows with the columns of
    `GROUP_SCHEMA`. A row that was summarized with other settings than the options here
    is a dead letter; without `error_handling` it fails the pipeline.

    A group is that of a Beam window. Its members come together at one worker, where
    DuckDB spills to disk what does not fit its memory.
    """

    def __init__(
        self,
        group_by: str,
        *,
        clean: str = "standard",
        run_id: str = "",
        error_handling: Any = None,
        **options: Any,
    ) -> None:
        """Stores its arguments.

        Args:
          group_by: as `--group_by` of `precis summarize`: a field, or day(FIELD).
          clean, run_id: as of `SummarizeDocuments`.
          error_handling: as in Beam YAML, `{output: NAME}`.
          **options: those of `SummarizeDocuments`, with the values that it has, and
              the other flags of groups, such as `max_group_candidates`.
        """
        super().__init__()
        self._group_options = {"group_by": group_by}
        for name in option_names([GroupOptions]):
            if name in options:
                self._group_options[name] = options.pop(name)
        self._summary_options = options
        self._clean = clean
        self._run_id = run_id
        self._errors = beam_rows.error_output(error_handling)

    def expand(self, rows: beam.PCollection) -> Any:
        """Checks the options and adds the groups.

        Raises:
          UsageError: an option that cannot be, or a field that the rows do not have or
            that makes no groups.
        """
        (groups,) = read_flags([GroupOptions], self._group_options)
        settings = transform_settings(self._summary_options, self._clean, rows)
        fields, schema = beam_rows.fields_of(rows), SUMMARY_SCHEMA
        if fields is not None:
            _check_fields(fields, groups)
            of_members = {name: fields[name] for name in member_columns(groups)}
            schema = beam_rows.table_schema(of_members)
            _check_types(schema, groups)
        members = (
            rows
            | "Batch" >> in_batches(ROWS_AT_ONCE)
            | "FindGroups"
            >> beam.FlatMap(_find_groups, groups, settings.settings_id, schema)
            .with_output_types(tuple[int, dict[str, Any]])
            .with_outputs(DEAD_LETTERS, main=ROWS)
        )
        made = (
            members.rows
            | "ShuffleMembers" >> beam.GroupByKey()
            | "SummarizeShards"
            >> beam.ParDo(
                _SummarizeShard(settings, groups, self._run_id)
            ).with_output_types(beam_rows.row_type(GROUP_SCHEMA))
        )
        return beam_rows.with_errors(made, members.dead_letters, self._errors)


def _check_fields(present: Iterable[str], groups: GroupOptions) -> None:
    needed = (*member_columns(groups), "settings_id")
    check_fields(present, needed, "SummarizeGroups: the PCollection")


def _check_types(schema: pa.Schema, groups: GroupOptions) -> None:
    groups.field.check(schema)
    if groups.order_by:
        check_order(groups.order_by, schema)


def _find_groups(
    rows: Sequence[Any], groups: GroupOptions, settings_id: str, schema: pa.Schema
) -> Iterator[Any]:
    """The members of groups by shard, and dead letters."""
    kept = []
    for row in map(beam_rows.from_row, rows):
        _check_fields(row, groups)
        if row["settings_id"] == settings_id:
            kept.append(row)
            continue
        detail = (
            f"the row has the settings {row['settings_id']}, and the options here make "
            f"{settings_id}; give both transforms the same ones"
        )
        place = row["document_id"], row["source_file"], row["source_position"]
        letter = DeadLetter("group", "other_settings", detail, *place)
        yield beam.pvalue.TaggedOutput(DEAD_LETTERS, letter)
    columns = {}
    for name in member_columns(groups):
        kind = schema.field(name).type if name in schema.names else None
        column = pa.array([row[name] for row in kept], kind)
        # Values that are all missing may be of any type.
        is_null = pa.types.is_null(column.type)
        columns[name] = column.cast(pa.timestamp("us")) if is_null else column
    table = pa.table(columns)
    _check_types(table.schema, groups)
    for member in as_members(table, groups, 0).to_pylist():
        key = hashlib.blake2b(repr(member["group_id"]).encode(), digest_size=8)
        yield int.from_bytes(key.digest()) % _SHARDS, member


class _SummarizeShard(beam.DoFn):
    """Summarizes the groups of a shard."""

    def __init__(
        self, settings: SummarySettings, groups: GroupOptions, run_id: str
    ) -> None:
        self._settings, self._groups, self._run_id = settings, groups, run_id
        self._summarizer = GroupSummarizer(settings, groups, share=Shared().acquire)

    def setup(self) -> None:
        self._summarizer.load()

    def teardown(self) -> None:
        self._summarizer.close()

    def process(
        self, shard: tuple[int, Iterable[dict[str, Any]]]
    ) -> Iterator[beam.Row]:
        with open_database() as connection:
            load_members(connection, _tables(shard[1]), self._settings)
            batches = join_candidates(connection, self._groups)
            candidates = (each for batch in batches for each in batch.to_pylist())
            groups = itertools.groupby(candidates, key=lambda each: each["place"])
            chosen = (self._summarizer.choose(list(each)) for _, each in groups)
            while together := list(itertools.islice(chosen, _REWRITTEN_TOGETHER)):
                self._summarizer.rewrite(together)
                for row, *_ in together:
                    row["run_id"] = self._run_id
                    yield beam_rows.to_row(row, GROUP_SCHEMA)


def _tables(members: Iterable[dict[str, Any]]) -> Iterator[pa.Table]:
    """Members as tables, each with a number of its own."""
    numbered = ({**each, "member": n} for n, each in enumerate(members))
    while batch := list(itertools.islice(numbered, ROWS_AT_ONCE)):
        yield pa.Table.from_pylist(batch, _MEMBER_SCHEMA)
