"""Tests of the parts that a task writes: row groups, partitions, footers."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_schema import ROW

from precis.pipelines.tables.output_writing import SORT_KEY, OutputWriter
from precis.pipelines.tables.partitions import OutputLayout
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_schema

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
