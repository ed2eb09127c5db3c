"""Tests of how large parts and row groups are, how parts are planned, and footers."""

import datetime
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.summarize_runs import story
from test_schema import summary_row

from precis.model.errors import DataError
from precis.model.quality.fallback import FallbackConfig
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.run.job import Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.summarize.part_plans import PartTask, group_pieces
from precis.pipelines.summarize.pieces import LINK_COLUMNS, PieceWriter, piece_schema
from precis.pipelines.summarize.publish_parts import PartSettings, PartWorker
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.summarize_task import SummaryFigures
from precis.pipelines.tables.part_layout import PartLayout
from precis.pipelines.tables.part_writing import write_sorted
from precis.pipelines.tables.partitions import Partitioning, check_partitions
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_schema

NO_LINKS = dict.fromkeys(field.name for field in LINK_COLUMNS)


def table_of(rows, *, task=0, schema=None):
    """Rows with a kilobyte of text that cannot be compressed, in random order."""
    choice = random.Random(task)
    numbers = choice.sample(range(rows), rows)
    values = [
        summary_row(
            document_id=f"{task}-{number:04}",
            split=("test", "train")[number % 2],
            duplicate_of=None,
            **{**NO_LINKS, "_record": number},
            summary=choice.randbytes(1024).hex(),
        )
        for number in numbers
    ]
    return pa.Table.from_pylist(values, schema or piece_schema(SUMMARY_SCHEMA))


def report_of(task, pieces):
    """The report of a task that has written its pieces."""
    figures = SummaryFigures(rows=pieces.rows, partitions=pieces.partitions)
    return TaskReport(
        task=task,
        sources={},
        counts={},
        files=pieces.describe(),
        dead_letters=[],
        failures={},
        figures=figures,
    )


def planned(partitions, size, *, tasks=1, target=100):
    """The plan for tasks with so many bytes, and rows by partition, each."""
    file = {"file": "p-written.parquet", "rows": 1, "bytes": size, "sha256": ""}
    rows = {"written": sum(partitions.values())}
    figures = SummaryFigures(rows=rows, partitions=partitions)
    reports = [
        TaskReport(
            task=task,
            sources={},
            counts={},
            files=[file],
            dead_letters=[],
            failures={},
            figures=figures,
        )
        for task in range(tasks)
    ]
    return group_pieces(reports, target_bytes=target, partition_by=["split"])


def test_parts_are_planned_for_each_partition():
    assert planned({'["b"]': 3, '["a"]': 1}, 80, tasks=3) == [
        PartTask(0, 4, (0, 1, 2), '["a"]'),
        PartTask(1, 4, (0,), '["b"]'),
        PartTask(2, 4, (1,), '["b"]'),
        PartTask(3, 4, (2,), '["b"]'),
    ]
    assert planned({"[]": 10}, 230, tasks=2) == [
        PartTask(0, 4, (0,), "[]", (0, 2)),
        PartTask(1, 4, (0,), "[]", (1, 2)),
        PartTask(2, 4, (1,), "[]", (0, 2)),
        PartTask(3, 4, (1,), "[]", (1, 2)),
    ]
    assert planned({}, 0) == []


@pytest.mark.parametrize("names", [(), ("split",)])
def test_parts_have_the_target_size(tmp_path, names):
    """Tasks of about 110, 110, 110 and 380 KB become parts of up to 250 KB."""
    columns = tuple(SUMMARY_SCHEMA.field(name) for name in names)
    partitioning = Partitioning(columns, names)
    layout = PartLayout(
        SUMMARY_SCHEMA, partitioning=partitioning, row_group_bytes=100_000
    )
    job = Job(str(tmp_path), "summaries", "f", "r" * 16, datetime.datetime.now(), 4)
    reports = []
    for task, rows in enumerate([64, 64, 64, 256]):
        with PieceWriter(job.output, task, partitioning) as pieces:
            table = table_of(rows, task=task)
            for first in range(0, rows, 32):
                pieces.write("written", table.slice(first, 32))
        reports.append(report_of(task, pieces))
    target = 250_000 // (len(names) + 1)
    plan = group_pieces(reports, target_bytes=target)
    worker = PartWorker(
        job, PartSettings(layout=layout, fallback=FallbackConfig(), footer={})
    )
    letters = LetterFile("", task=0, run_id="")
    ids = []
    for task in plan:
        (file,) = worker.run(task, TaskProgress(0), letters).files
        assert 0.3 * target < file["bytes"] < target
        part = pq.read_table(tmp_path / file["file"], partitioning=None)
        ids += part.column("document_id").to_pylist()
    assert len(plan) == 4 * (len(names) + 1)
    assert len(ids) == len(set(ids)) == 64 * 3 + 256


def test_row_groups_have_the_target_size_and_are_sorted(tmp_path):
    path = tmp_path / "part.parquet"
    rows = table_of(200, schema=SUMMARY_SCHEMA)
    size = rows.nbytes // 5
    layout = PartLayout(SUMMARY_SCHEMA, row_group_bytes=size)
    tables = [
        rows.slice(0, 150),
        *(rows.slice(first, 2) for first in range(150, 200, 2)),
    ]
    assert write_sorted(str(path), tables, layout, {"precis.run_id": "r"}) == 200
    metadata = pq.read_metadata(path)
    assert metadata.num_row_groups == 5
    parquet = pq.ParquetFile(path)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        column = group.column(0)
        assert column.path_in_schema == "document_id"
        assert column.has_column_index
        assert column.has_offset_index
        table = parquet.read_row_group(number)
        assert table.nbytes < 1.3 * size
        ids = table.column("document_id").to_pylist()
        assert ids == sorted(ids)
        assert (column.statistics.min, column.statistics.max) == (ids[0], ids[-1])
        order = [sorting.column_index for sorting in group.sorting_columns]
        assert [group.column(index).path_in_schema for index in order] == [
            "document_id",
            "document_id_repeat",
        ]


def test_a_part_holds_few_row_groups_in_memory_however_many_it_has(tmp_path):
    rows = table_of(400, schema=SUMMARY_SCHEMA)
    layout = PartLayout(SUMMARY_SCHEMA, row_group_bytes=rows.nbytes)
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        copies = (pa.concat_tables([rows.take(list(range(400)))]) for _ in range(6))
        assert write_sorted(str(tmp_path / "part.parquet"), copies, layout, {}) == 2400
    finally:
        pa.set_memory_pool(before)
    # The rows that arrive, and their sorted copy.
    assert pool.max_memory() < 3.5 * rows.nbytes


def test_a_footer_is_small_and_holds_the_facts_of_the_run(tmp_path):
    path = tmp_path / "part.parquet"
    layout = PartLayout(SUMMARY_SCHEMA)
    table = table_of(1, schema=SUMMARY_SCHEMA)
    write_sorted(str(path), [table], layout, {"precis.run_id": "r"})
    metadata = pq.read_metadata(path)
    assert metadata.serialized_size < 13_000
    assert metadata.metadata == {
        b"precis.schema": b"summary",
        b"precis.schema_version": b"4",
        b"precis.run_id": b"r",
    }
    assert pq.read_schema(path).remove_metadata().equals(SUMMARY_SCHEMA)


def test_a_type_that_parquet_does_not_have_is_kept(tmp_path):
    path = tmp_path / "part.parquet"
    kind = pa.timestamp("us", "Europe/Berlin")
    schema = summary_schema([pa.field("day", kind)])
    table = table_of(1, schema=SUMMARY_SCHEMA).append_column(
        schema.field("day"), pa.array([0], kind)
    )
    write_sorted(str(path), [table], PartLayout(schema), {})
    assert pq.read_schema(path).field("day").type == kind


def test_too_many_partitions_are_refused(tmp_path, monkeypatch):
    check_partitions(10_000, ["section"])
    with pytest.raises(DataError, match="more than 10,000 partitions, each of which"):
        check_partitions(10_001, ["section"])
    monkeypatch.setattr("precis.pipelines.tables.partitions.MAX_PARTITIONS", 2)
    rows = [story(number, section=f"section {number}") for number in range(3)]
    with pytest.raises(DataError, match="--partition_by section makes more than 2 "):
        summarize(
            corpus=write_jsonl(tmp_path / "news.jsonl", rows),
            output=tmp_path / "run",
            keep_fields="section",
            partition_by="section",
        )
    with pytest.raises(DataError, match="--partition_by split makes more than 2 "):
        planned({'["a"]': 1, '["b"]': 1, '["c"]': 1}, 80)


def test_a_value_that_makes_no_folder_is_refused(tmp_path):
    kind = pa.field("section", pa.string())
    partitioning = Partitioning((kind,), ("section",))
    rows = pa.table({"section": ["x" * 300]})
    with (
        pytest.raises(DataError, match=r"section: 'x{20}'... is too long for a folder"),
        PieceWriter(str(tmp_path), 0, partitioning) as pieces,
    ):
        pieces.write("written", rows)
