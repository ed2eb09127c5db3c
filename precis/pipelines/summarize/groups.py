"""Summarizes each group of documents, from the rows of its documents.

    join     the rows of all tasks -> _tasks/candidates.parquet   sentences by group
    groups   tasks, each a range of groups -> groups/part-*.parquet

The candidates of a group are the sentences that were chosen from its documents, so the
corpus is not read again. DuckDB sorts them by group, and writes to a temporary folder
what does not fit its memory. A large group keeps only the first candidates: equal
sentences count as one, and the order is by number of copies, rank, position, and then a
hash of the words. A resumed job joins again.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.extractive.config import NEURAL, ORACLE
from precis.model.extractive.groups import (
    CENTRALITY,
    SALIENCE,
    Candidate,
    choose_of_group,
)
from precis.model.progress.counters import enter_step
from precis.model.text.language import ENGLISH
from precis.model.text.wrapping import shown_line
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.engines.tasks import TaskReport, TaskWorker
from precis.pipelines.run.accounts import count_by_file
from precis.pipelines.run.job import TASKS_FOLDER
from precis.pipelines.run.key_tables import (
    ROWS_AT_ONCE,
    insert_rows,
    numbered,
    open_database,
    publish_keys,
    read_keys_of_task,
    write_parquet,
)
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import GROUPS_FOLDER, describe_file
from precis.pipelines.summarize.earlier_runs import PLACE, EarlierRows, placed_rows
from precis.pipelines.summarize.options import GroupOptions
from precis.pipelines.summarize.run_output import (
    SummaryRun,
    data_files,
    group_settings_id,
)
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.columns import round_score
from precis.pipelines.tables.finished_run import OutputFile
from precis.pipelines.tables.flat_columns import flatten
from precis.pipelines.tables.group_field import OF_A_ROW
from precis.pipelines.tables.output_files import read_output_file
from precis.pipelines.tables.schema import (
    GROUP_SCHEMA,
    GROUP_SCHEMA_VERSION,
    summary_table,
)

if TYPE_CHECKING:
    import duckdb

_CANDIDATES_FILE = files.join(TASKS_FOLDER, "candidates.parquet")
_COLUMNS = (
    *("document_id", "source_file", "source_position", "content_sha256", "language"),
    "extractive",
)
_SENTENCE = ("document_id", "start", "end", "text")
_PLACE = ("source_file", "source_position")
# Queries of a table `batch`. A sum of hashes does not depend on the document order.
_MEMBERS = """
SELECT
    member, group_id, document_id, source_file, source_position, language, moment,
    md5_number_lower(concat_ws(chr(0),
        document_id, content_sha256, extractive::VARCHAR, moment)) AS digest
FROM batch
"""
_SENTENCES = """
SELECT member, rank, CASE method WHEN 'neural' THEN score END AS score,
    "start", "end", text, md5_number_lower(trim(
        regexp_replace(lower(text), '[^\\p{L}\\p{M}\\p{N}]+', ' ', 'g'))) AS words
FROM (SELECT member, unnest(extractive, recursive := true) FROM batch)
WHERE list_contains(string_split('METHODS', ','), method)
QUALIFY method = 'neural' OR NOT bool_or(method = 'neural') OVER (PARTITION BY member)
"""
_KNOWN = pa.schema({"group_id": pa.string(), "digest": pa.string(), "earlier": PLACE})
_JOIN = """
CREATE TABLE groups AS
SELECT m.*, earlier, row_number() OVER (ORDER BY m.group_id NULLS FIRST) - 1 AS number
FROM (
    SELECT group_id, count(*) AS members, sum(digest)::VARCHAR AS digest
    FROM members GROUP BY group_id
) AS m LEFT JOIN (
    SELECT group_id, digest, min(earlier) AS earlier FROM known GROUP BY ALL
) AS e ON m.group_id IS NOT DISTINCT FROM e.group_id AND m.digest = e.digest;
CREATE TABLE placed AS
SELECT m.member, g.number FROM members AS m JOIN groups AS g
    ON m.group_id IS NOT DISTINCT FROM g.group_id;
CREATE TABLE kept AS
SELECT number, words, copies, count(*) OVER of_group AS candidates,
    row_number() OVER (of_group ORDER BY copies DESC, rank, first, words) AS place
FROM (
    SELECT number, words, count(DISTINCT member) AS copies, min(rank) AS rank,
        min("start") AS first
    FROM sentences JOIN placed USING (member) GROUP BY number, words
)
WINDOW of_group AS (PARTITION BY number)
QUALIFY place <= {0};
CREATE TABLE used AS
SELECT number, count(DISTINCT member) AS members_used, max(candidates) AS candidates
FROM sentences JOIN placed USING (member) JOIN kept USING (number, words)
GROUP BY number;
CREATE TABLE tasks AS
SELECT number, sum(greatest(least(coalesce(candidates, 0), {0}), 1))
    OVER (ORDER BY number) // {1} AS task
FROM groups LEFT JOIN used USING (number);
"""
_CANDIDATES = """
SELECT (task::BIGINT << 32) | number AS place, group_id, members,
    coalesce(members_used, 0) AS members_used, coalesce(candidates, 0) AS candidates,
    groups.digest, earlier, language, moment, document_id, source_file,
    source_position, score, "start", "end", text, copies
FROM groups JOIN tasks USING (number) LEFT JOIN used USING (number) LEFT JOIN (
    FROM sentences JOIN placed USING (member) JOIN kept USING (number, words)
        JOIN members USING (member)
    SELECT number, kept.place AS candidate, copies, language, moment, document_id,
        source_file, source_position, score, "start", "end", text
    QUALIFY row_number() OVER (PARTITION BY number, words ORDER BY
        moment NULLS LAST, rank, document_id, source_file, source_position, "start",
        score, text) = 1
) USING (number)
ORDER BY number, candidate
"""


class GroupTask(NamedTuple):
    """Groups that are summarized as one task."""

    number: int


def with_group_field(corpus: CorpusOptions, groups: GroupOptions) -> CorpusOptions:
    """The options of a corpus, which also keep the fields by which documents are
    grouped and their sentences ordered.
    """
    kept = ["", *OF_A_ROW, *(field.name for field in corpus.kept_fields)]
    new = dict.fromkeys((groups.field.name, groups.order_by))
    # A name with a colon needs a type.
    names = [name + ":string" * (":" in name) for name in new if name not in kept]
    names = list(filter(None, (corpus.keep_fields, *names)))
    return dataclasses.replace(corpus, keep_fields=",".join(names))


def join_groups(reports: Iterable[TaskReport], run: SummaryRun) -> list[GroupTask]:
    """Writes the candidates of all groups; lists the tasks that summarize them.

    Args:
      reports: the reports of all tasks with rows.
      run: the run that has the rows.
    """
    enter_step("join")
    reports = sorted(reports, key=lambda each: each.task)
    made_by = group_settings_id(run.settings, run.groups)
    with open_database() as connection:
        load_members(connection, _members(reports, run), run.settings)
        columns = ("group_id", "members_digest", "settings_id")
        usable = (
            f"SELECT * EXCLUDE settings_id FROM batch WHERE settings_id = '{made_by}'"
        )
        for rows in placed_rows(run.earlier_groups, columns):
            insert_rows(connection, "known", rows, usable)
        candidates = join_candidates(connection, run.groups)
        publish_keys(run.job.output, _CANDIDATES_FILE, candidates)
        tasks = connection.execute("SELECT DISTINCT task FROM tasks ORDER BY 1")
        return [GroupTask(int(task)) for (task,) in tasks.fetchall()]


def load_members(
    connection: "duckdb.DuckDBPyConnection",
    batches: Iterable[pa.Table],
    settings: SummarySettings,
) -> None:
    """Loads documents and their sentences into an empty database.

    Args:
      connection: a connection from `open_database`.
      batches: rows from `as_members`, at least one table.
      settings: the settings of the rows.
    """
    insert_rows(connection, "known", _KNOWN.empty_table())
    sentences = _SENTENCES.replace("METHODS", ",".join(_methods(settings)))
    for batch in numbered(batches, "member"):
        insert_rows(connection, "members", batch, _MEMBERS)
        insert_rows(connection, "sentences", batch, sentences)


def join_candidates(
    connection: "duckdb.DuckDBPyConnection", groups: GroupOptions
) -> pa.RecordBatchReader:
    """The candidates of all groups of a database, sorted by group, the best first."""
    sizes = groups.max_group_candidates, groups.group_task_candidates
    connection.execute(_JOIN.format(*sizes))
    return connection.sql(_CANDIDATES).to_arrow_reader(ROWS_AT_ONCE)


def _methods(settings: SummarySettings) -> Sequence[str]:
    """The methods whose sentences are candidates: all that read only the text. A
    document with sentences of `neural` contributes only these.
    """
    methods = settings.options.methods
    read = [name for name in methods if name not in (ORACLE, "random")]
    if NEURAL in methods:
        read.append("lead")  # For documents that the built-in selector does not read.
    return read or methods


def _members(reports: Iterable[TaskReport], run: SummaryRun) -> Iterator[pa.Table]:
    """The rows of all output files with their groups, a table for each row group, after
    an empty table.
    """
    names = member_columns(run.groups)
    yield as_members(run.layout.schema.empty_table().select(names), run.groups)
    for report in reports:
        for file in data_files(report.files):
            for rows in read_output_file(
                files.join(run.job.output, file["file"]),
                names,
                partition=file.get("partition", {}),
                types=run.layout.partition_types,
            ):
                yield as_members(rows, run.groups)


def member_columns(groups: GroupOptions) -> list[str]:
    """The columns of a document's row from which its group is summarized."""
    of_groups = filter(None, (groups.field.name, groups.order_by))
    return list(dict.fromkeys([*_COLUMNS, *of_groups]))


def as_members(rows: pa.Table, groups: GroupOptions) -> pa.Table:
    """Adds their groups to rows of documents.

    Args:
      rows: rows with the columns of `member_columns`.
      groups: the options of the groups.
    """
    moments = pa.nulls(len(rows), pa.int64())
    if groups.order_by:  # Times and whole numbers become int64, in the same order.
        moments = rows.column(groups.order_by)
    if pa.types.is_date32(moments.type):  # Days have 32 bits.
        moments = moments.cast(pa.int32())
    ids = groups.field.ids(rows.column(groups.field.name))
    members = rows.select(_COLUMNS).append_column("group_id", ids)
    return members.append_column("moment", moments.cast(pa.int64()))


def group_rows(
    candidates: Iterable[dict[str, Any]],
    settings: SummarySettings,
    groups: GroupOptions,
    run_id: str,
    earlier: Sequence[OutputFile] = (),
) -> Iterator[dict[str, Any]]:
    """Makes the rows of groups.

    Args:
      candidates: the candidates in the order of `join_candidates`.
      settings: the settings of the documents' rows.
      groups: the options of the groups.
      run_id: the value of the column `run_id`.
      earlier: output files of earlier runs with rows of groups.
    """
    settings_id = group_settings_id(settings, groups)
    earlier_rows = EarlierRows(earlier)
    for _, each in itertools.groupby(candidates, key=lambda row: row["place"]):
        of_group, row = list(each), None
        if place := of_group[0]["earlier"]:
            row = _with_places(earlier_rows.read(**place), of_group)
        row = row or summarize_group(of_group, settings, settings_id)
        yield {**row, "run_id": run_id}


def summarize_group(
    candidates: Sequence[dict[str, Any]], settings: SummarySettings, settings_id: str
) -> dict[str, Any]:
    """Makes the row of a group, except `run_id`.

    Args:
      candidates: its sentences, best first; a row with an empty text if it has none.
      settings: the settings of the documents' rows.
      settings_id: the value of `group_settings_id`.
    """
    first = candidates[0]
    candidates = [each for each in candidates if each["text"] is not None]
    languages = Counter(each["language"] or ENGLISH for each in candidates)
    # English if as many sentences are English as not.
    language = ENGLISH
    if candidates and 2 * languages[ENGLISH] < len(candidates):
        language = max(languages, key=lambda name: (languages[name], name))
    # Salience is a product of scores of `neural`.
    has_scores = all(each["score"] is not None for each in candidates)
    method = SALIENCE if candidates and has_scores else CENTRALITY
    choices = choose_of_group(
        [Candidate(*(each[name] for name in Candidate._fields)) for each in candidates],
        selection=settings.selection,
        language=language,
        method=method,
    )
    sentences = [
        {
            **{name: candidates[place][name] for name in (*_SENTENCE, *_PLACE)},
            "score": round_score(score),
            "copies": copies,
        }
        for place, score, copies, _ in choices
    ]
    texts = [
        each.line or shown_line(candidates[each.place]["text"]) for each in choices
    ]
    flags = {
        "empty": not sentences,
        "single_member": first["members"] == 1,
        "reduced": first["candidates"] > len(candidates),
    }
    return {
        **{name: first[name] for name in ("group_id", "members", "members_used")},
        "candidates": len(candidates),
        "summary": "\n".join(texts),
        "method": method,
        "sentences": sentences,
        "flags": [name for name, is_set in flags.items() if is_set],
        "members_digest": first["digest"],
        "settings_id": settings_id,
        "reused_from": None,
        "schema_version": GROUP_SCHEMA_VERSION,
    }


@dataclasses.dataclass
class GroupWorker(TaskWorker):
    """Summarizes the groups of a task."""

    summary_run: SummaryRun

    def run(
        self, task: GroupTask, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the rows of the groups of a task."""
        del dead_letters
        run, output = self.summary_run, self.summary_run.job.output
        path = files.join(output, _CANDIDATES_FILE)
        candidates = read_keys_of_task(path, task.number).to_pylist()
        earlier, run_id = run.earlier_groups, run.job.run_id
        rows = list(group_rows(candidates, run.settings, run.groups, run_id, earlier))
        table = summary_table(rows, GROUP_SCHEMA)
        if run.layout.is_flat:
            table = flatten(table)
        file = f"part-{run.job.run_id[:8]}-{task.number:05d}.parquet"
        name = files.join(GROUPS_FOLDER, file)
        write_parquet(files.join(output, name), [table], table.schema)
        return TaskReport(
            count_by_file(),
            [describe_file(output, name, rows=len(rows))],
            {"group_members": sum(row["members"] for row in rows)},
        )


def _with_places(
    row: dict[str, Any], candidates: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """The row of an earlier run with the current places of its documents; None if a
    sentence is not a candidate any more.

    Args:
      row: the row of a group whose members have not changed.
      candidates: the candidates of the group.
    """
    known = {tuple(each[name] for name in _SENTENCE): each for each in candidates}
    for sentence in row["sentences"]:
        candidate = known.get(tuple(sentence[name] for name in _SENTENCE))
        if candidate is None:
            return None
        sentence.update({name: candidate[name] for name in _PLACE})
    return {**row, "reused_from": row["reused_from"] or row["run_id"]}
