"""Tests of the last step of a run: which tasks make a part, the order of its rows, and
the rows of duplicates.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.incremental_runs import FLAGS, CountedRuns, line, write_corpus

from precis.model.errors import JobError
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.summarize.duplicate_rows import RowFinder, copy_rows, name_first
from precis.pipelines.summarize.part_plans import PartTask, group_pieces
from precis.pipelines.summarize.pieces import LINK_COLUMNS, PieceWriter, read_piece
from precis.pipelines.summarize.summarize_task import SummaryFigures
from precis.pipelines.tables.partitions import Partitioning

SCHEMA = pa.schema(
    [
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("content_sha256", pa.string(), nullable=False),
        pa.field("duplicate_of", pa.string()),
        pa.field("reused_from", pa.string()),
        pa.field("summary", pa.string(), nullable=False),
        *LINK_COLUMNS,
    ]
)
DUPLICATES = pa.schema(
    [SCHEMA.field(name) for name in ("document_id", "source_file", "content_sha256")]
    + list(LINK_COLUMNS)
)


def row(name, record, *, first=(None, None), copy=(None, None), **columns):
    links = (record, *first, *copy)
    names = [field.name for field in LINK_COLUMNS]
    linked = dict(zip(names, links, strict=True))
    document = {
        "document_id": name,
        "source_file": f"{name[0]}.jsonl",
        "content_sha256": "same",
    }
    return {**document, **columns, **linked}


def rows_of(*names_and_records, schema=SCHEMA, **links):
    rows = [
        row(name, record, duplicate_of=None, summary=f"of {name}", **links)
        for name, record in names_and_records
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def test_a_duplicate_gets_the_row_of_its_document(tmp_path):
    output = str(tmp_path)
    # The rows of task 0 stand in two pieces and two row groups; record 1 has failed.
    with PieceWriter(output, 0, Partitioning()) as pieces:
        pieces.write("written", rows_of(("a0", 0), ("a2", 2)))
        pieces.write("written", rows_of(("a4", 4)))
        pieces.write("written", rows_of())
        pieces.write("reused", rows_of(("a3", 3)))
    for task in range(1, 8):
        with PieceWriter(output, task, Partitioning()) as pieces:
            pieces.write("written", rows_of((f"t{task}", 9)))
            assert pieces.rows == {"written": 1, "reused": 0, "duplicates": 0}
    copies = [
        row("x", 5, first=(0, 0), copy=(0, 4)),
        row("lost", 6, first=(0, 1), copy=(0, 1)),
        row("y", 7, first=(0, 0), copy=(0, 3)),
        # More tasks than are held in memory, and the first of them again.
        *(row(f"z{task}", 8, first=(0, 0), copy=(task, 9)) for task in range(1, 8)),
        row("w", 9, first=(0, 0), copy=(0, 2)),
        row("gone", 10, first=(0, 0), copy=(11, 0)),
    ]
    finder = RowFinder(output)
    table = pa.Table.from_pylist(copies, schema=DUPLICATES)
    copied = copy_rows(table, finder, SCHEMA)
    assert [lost["document_id"] for lost in copied.lost] == ["lost", "gone"]
    columns = copied.rows.select(["document_id", "summary", "_record"]).to_pylist()
    assert [tuple(values.values()) for values in columns] == [
        ("x", "of a4", 5),
        ("y", "of a3", 7),
        *((f"z{task}", f"of t{task}", 8) for task in range(1, 8)),
        ("w", "of a2", 9),
    ]
    assert copied.rows.schema == SCHEMA
    only_lost = copy_rows(table.slice(1, 1), finder, SCHEMA)
    assert only_lost.rows.num_rows == 0 and len(only_lost.lost) == 1
    wrong = row("v", 11, first=(0, 0), copy=(0, 2), content_sha256="other")
    with pytest.raises(JobError, match="have other contents; this is a defect"):
        copy_rows(pa.Table.from_pylist([wrong], schema=DUPLICATES), finder, SCHEMA)


def test_a_row_names_the_first_document_with_its_text(tmp_path):
    with PieceWriter(str(tmp_path), 0, Partitioning()) as pieces:
        pieces.write("reused", rows_of(("a0", 0)))
    finder = RowFinder(str(tmp_path))
    rows = pa.concat_tables(
        [
            rows_of(("b", 1)),
            rows_of(("c", 2), first=(0, 0)),
            rows_of(("d", 3), ("d", 4), first=(0, 7)),
        ]
    )
    named = name_first(rows, finder)
    assert named.rows.column("duplicate_of").to_pylist() == [None, "a0", None, None]
    assert named.without_first == ({"d.jsonl": 2}, {})
    assert named.rows.schema == SCHEMA
    unchanged = name_first(rows_of(("b", 1)), finder)
    assert unchanged.rows == rows_of(("b", 1)) and not any(unchanged.without_first)


def test_a_piece_that_fails_is_not_published(tmp_path):
    try:
        with PieceWriter(str(tmp_path), 0, Partitioning()) as pieces:
            pieces.write("written", rows_of(("a", 0)))
            raise KeyError
    except KeyError:
        pass
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert list(read_piece(str(tmp_path), 0, "written")) == []


def report(task, *, size=0, rows=1, duplicates=0):
    """The report of a task whose rows have a size."""
    files = [
        {"file": f"_tasks/pieces/{task:05d}-{kind}.parquet", "bytes": size // 2}
        for kind in ("written", "reused")
    ]
    files.append({"file": f"_tasks/pieces/{task:05d}-duplicates.parquet", "bytes": 7})
    counts = {"written": rows, "reused": 0, "duplicates": duplicates}
    total = rows + duplicates
    return TaskReport(
        task=task,
        sources={},
        counts={},
        files=files,
        dead_letters=[],
        failures={},
        figures=SummaryFigures(rows=counts, partitions={"[]": total} if total else {}),
    )


def test_consecutive_tasks_make_parts_of_about_the_asked_size():
    sizes = {0: 40, 1: 40, 2: 40, 3: 0, 4: 200, 5: 100, 6: 2}
    reports = [
        report(task, size=size, rows=int(size > 0)) for task, size in sizes.items()
    ]
    assert group_pieces(reports, target_bytes=100) == [
        PartTask(0, 6, (0, 1)),
        PartTask(1, 6, (2,)),
        PartTask(2, 6, (4,), share=(0, 2)),
        PartTask(3, 6, (4,), share=(1, 2)),
        PartTask(4, 6, (5,)),
        PartTask(5, 6, (6,)),
    ]
    assert group_pieces(reports, target_bytes=1000) == [
        PartTask(0, 1, (0, 1, 2, 4, 5, 6))
    ]
    assert group_pieces([], target_bytes=9) == []
    assert group_pieces(reports[3:4], target_bytes=9) == []
    # A duplicate counts as the mean row of its task: 2 rows of 20 bytes, and 3 more.
    with_copies = [report(0, size=40, rows=2, duplicates=3), report(1, size=2)]
    assert len(group_pieces(with_copies, target_bytes=102)) == 1
    assert len(group_pieces(with_copies, target_bytes=101)) == 2
    # A task that has nothing but duplicates has rows, too.
    copies_alone = [report(0, rows=0, duplicates=1), report(1, rows=0)]
    assert group_pieces(copies_alone, target_bytes=1 << 20) == [PartTask(0, 1, (0,))]


def test_the_rows_of_a_row_group_are_sorted(tmp_path, monkeypatch):
    lines = [line(number, id=f"x{number * 7 % 30:02}") for number in range(30)]
    corpus = write_corpus(tmp_path / "c", {"a.jsonl": [*lines, *lines[:3]]})
    runs = CountedRuns(monkeypatch)
    manifest = runs.run(tmp_path / "out", corpus, **FLAGS)
    (part,) = manifest["files"]
    opened = pq.ParquetFile(tmp_path / "out" / part["file"])
    assert opened.metadata.num_row_groups == 1
    rows = opened.read(["document_id", "document_id_repeat"]).to_pylist()
    keys = [tuple(values.values()) for values in rows]
    assert keys == sorted(keys) and len({*keys}) == 33 and keys[1][0] == "x00"
    (order,) = {opened.metadata.row_group(0).sorting_columns}
    names = opened.schema_arrow.names
    assert [names[column.column_index] for column in order] == [
        "document_id",
        "document_id_repeat",
    ]
