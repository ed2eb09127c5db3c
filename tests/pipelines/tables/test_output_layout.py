"""Tests of where the rows of a run lie, and of the parts that a task writes."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.incremental_runs import without_run
from support.summarize_runs import manifest_of, story
from test_schema import ROW

from precis.model.errors import UsageError
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.finished_run import open_run
from precis.pipelines.tables.output_writing import SORT_KEY, OutputWriter
from precis.pipelines.tables.partitions import HIVE_NULL, OutputLayout
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_schema
from precis.pipelines.verify.digest import digest

SECTIONS = ["a/b", "Zürich ", None, "a/b", "100% = $1?", "", "a/b", "x"]
STORIES = [
    story(
        index,
        split=("train", "test")[index % 2],
        section=section,
        day=f"2026-01-{index % 3 + 1:02}",
        page=index % 2,
        is_news=index > 3,
    )
    for index, section in enumerate(SECTIONS)
]
# A text that stands twice, in two partitions.
STORIES.append({**STORIES[0], "id": "again", "section": "y", "split": "test"})
NAMES = "split", "section", "day", "page", "is_news"


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    corpus = write_jsonl(folder / "news.jsonl", STORIES)
    kept = "section,day:date,page:int64,is_news:bool"
    flags = {"task_bytes": 4_000, "deduplicate": True, "keep_fields": kept}
    return {"corpus": corpus, "split_field": "split", **flags}


@pytest.fixture(scope="module")
def runs(flags, tmp_path_factory):
    """The same rows in one folder, in partitions, and flat in partitions."""
    folder = tmp_path_factory.mktemp("runs")
    layouts = {
        "plain": {},
        "partitioned": {"partition_by": ",".join(NAMES)},
        # In one task, where a null and an empty text have one folder.
        "flat": {"partition_by": ["section"], "flat": True, "task_bytes": 1 << 20},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        for name, layout in layouts.items():
            summarize(output=folder / name, **{**flags, **layout})
    return {name: folder / name for name in layouts}


def rows_of(run: Path):
    """The rows with nested columns, by document, without their run."""
    rows = [row for table in open_run(str(run)).tables() for row in table.to_pylist()]
    for row in rows:
        del row["run_id"]
    return sorted(rows, key=lambda row: row["document_id"])


def test_partitions_hold_the_rows_that_their_folders_say(runs):
    run, manifest = runs["partitioned"], manifest_of(runs["partitioned"])
    types = "string", "string", "date32[day]", "int64", "bool"
    assert manifest["partition_by"] == dict(zip(NAMES, types, strict=True))
    first = "split=train/section=a%2Fb/day=2026-01-01/page=0/"
    names = {Path(file["file"]).parent.as_posix() for file in manifest["files"]}
    assert f"data/{first}is_news=false" in names
    assert any("/section=100%25 %3D $1%3F/" in name for name in names)  # as Hive
    assert len(names) == len(manifest["files"]) == 9
    # A null, and an empty text.
    (_, null) = sorted(name for name in names if f"section={HIVE_NULL}/" in name)
    for file in manifest["files"]:
        assert not {*file["partition"]} & {*pq.read_schema(run / file["file"]).names}
        if file["file"].startswith(null):
            values = "train", None, "2026-01-03", 0, False
            assert file["partition"] == dict(zip(NAMES, values, strict=True))


def test_a_partitioned_and_a_flat_run_have_the_same_rows(runs):
    plain = rows_of(runs["plain"])
    assert [row["document_id"] for row in plain if row["duplicate_of"]] == ["again"]
    assert [row["section"] for row in plain] == ["y", *SECTIONS]
    for name in ("partitioned", "flat"):
        assert rows_of(runs[name]) == plain
    # A column of the folders alone is also a column of the run.
    assert digest(run=runs["flat"]) == digest(run=runs["plain"])
    run = open_run(str(runs["partitioned"]))
    assert run.partition_columns == [*NAMES]
    assert run.schema.field("day").type == pa.date32()
    described = SUMMARY_SCHEMA.field("summary").metadata
    assert run.schema.field("summary").metadata == described
    rows = pa.Table.from_batches(run.batches()).to_pylist()
    found = {row["document_id"]: row | {"day": str(row["day"])} for row in rows}
    for given in STORIES:
        row = found[given["id"]]
        assert all(row[name] == given[name] for name in ("section", "day", "is_news"))


@pytest.mark.parametrize("name", ["partitioned", "flat"])
def test_every_row_of_a_layout_is_reused(runs, name, flags, tmp_path):
    manifest = summarize(output=tmp_path / "run", **flags, reuse=runs[name])
    counts = manifest["counts"]
    assert (counts["written"], counts["reused"], counts["duplicates"]) == (0, 8, 1)
    assert without_run(rows_of(tmp_path / "run")) == without_run(rows_of(runs["plain"]))
    assert digest(run=tmp_path / "run") == digest(run=runs["plain"])


def test_impossible_partitions_are_refused(tmp_path):
    corpus = write_jsonl(tmp_path / "news.jsonl", [story(0, score=0.5)])
    flags = {"corpus": corpus, "keep_fields": "score:double"}
    for name, message in (
        ("author", "author: no such column; possible are "),
        ("score", "score: the column is double; name a column of strings, "),
    ):
        with pytest.raises(UsageError, match=message):
            summarize(output=tmp_path / "run", partition_by=name, **flags)
    assert not (tmp_path / "run").exists()


BY_SPLIT = (SUMMARY_SCHEMA.field("split"),)


def table_of(rows, *, splits=("test", "train")):
    """Rows with a kilobyte of text that cannot be compressed, in random order."""
    choice = random.Random(rows)
    values = []
    for number in choice.sample(range(rows), rows):
        part = {"document_id": f"{number:04}", "split": splits[number % len(splits)]}
        values.append({**ROW, **part, "summary": choice.randbytes(1024).hex()})
    return pa.Table.from_pylist(values, SUMMARY_SCHEMA)


def write(folder, tables, layout):
    """The parts of tables, by name."""
    with OutputWriter(str(folder), "part-r.parquet", layout, {"run_id": "r"}) as parts:
        for table in tables:
            parts.write(table)
        return {file["file"]: file for file in parts.finish()}


def test_row_groups_have_the_target_size_and_are_sorted(tmp_path):
    rows = table_of(200)
    size = rows.nbytes // 5
    tables = [rows.slice(first, 2) for first in range(0, 200, 2)]
    layout = OutputLayout(SUMMARY_SCHEMA, row_group_bytes=size)
    assert write(tmp_path, tables, layout)["data/part-r.parquet"]["rows"] == 200
    parquet = pq.ParquetFile(tmp_path / "data" / "part-r.parquet")
    assert parquet.metadata.num_row_groups == 5
    for number in range(5):
        group = parquet.metadata.row_group(number)
        column = group.column(0)
        assert column.path_in_schema == "document_id"
        assert column.has_column_index and column.has_offset_index
        table = parquet.read_row_group(number)
        assert table.nbytes < 1.3 * size
        ids = table.column("document_id").to_pylist()
        assert ids == sorted(ids)
        assert (column.statistics.min, column.statistics.max) == (ids[0], ids[-1])
        order = [sorting.column_index for sorting in group.sorting_columns]
        names = parquet.schema_arrow.names
        assert tuple(names[index] for index in order) == SORT_KEY


def test_a_task_writes_a_part_of_each_partition(tmp_path):
    """And the rows of all that wait are one row group in memory."""
    rows = table_of(300, splits=("test", "train", "validation"))
    layout = OutputLayout(
        SUMMARY_SCHEMA, partition_columns=BY_SPLIT, row_group_bytes=rows.nbytes // 2
    )
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        copies = (rows.take(list(range(first, 300, 3))) for first in [*range(3)] * 5)
        files = write(tmp_path, copies, layout)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 2.5 * rows.nbytes
    assert sorted(files) == [
        f"data/split={name}/part-r.parquet" for name in ("test", "train", "validation")
    ]
    for name, file in files.items():
        part = pq.read_table(tmp_path / name, partitioning=None)
        assert file["rows"] == part.num_rows == 500
        assert file["partition"] == {"split": Path(name).parts[1].partition("=")[2]}
        assert "split" not in part.column_names
        assert pq.read_metadata(tmp_path / name).num_row_groups > 2


def test_a_task_that_fails_publishes_no_part(tmp_path):
    layout = OutputLayout(SUMMARY_SCHEMA, partition_columns=BY_SPLIT, row_group_bytes=1)
    writer = OutputWriter(str(tmp_path), "part.parquet", layout, {})
    with pytest.raises(KeyError), writer as parts:
        parts.write(table_of(4))
        raise KeyError
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_footer_is_small_and_holds_the_facts_of_the_run(tmp_path):
    write(tmp_path, [table_of(1), table_of(1).slice(1)], OutputLayout(SUMMARY_SCHEMA))
    path = tmp_path / "data" / "part-r.parquet"
    metadata = pq.read_metadata(path)
    assert metadata.serialized_size < 13_000
    facts = {b"precis.schema", b"precis.schema_version", b"run_id"}
    assert metadata.metadata.keys() == facts
    assert pq.read_schema(path).remove_metadata().equals(SUMMARY_SCHEMA)
    nothing = [table_of(1).slice(1)]
    assert write(tmp_path / "none", nothing, OutputLayout(SUMMARY_SCHEMA)) == {}


def test_a_type_that_parquet_does_not_have_is_kept(tmp_path):
    kind = pa.timestamp("us", "Europe/Berlin")
    schema = summary_schema([pa.field("day", kind)])
    table = table_of(1).append_column(schema.field("day"), pa.array([0], kind))
    write(tmp_path, [table], OutputLayout(schema, ("day",)))
    path = tmp_path / "data" / "part-r.parquet"
    assert pq.read_schema(path).field("day").type == kind
