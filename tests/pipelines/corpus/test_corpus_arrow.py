"""The scheme arrow:GLOB, and columns of every type, also of Parquet."""

import datetime
import decimal
import gzip
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.corpus_records import parted, read_corpus

from precis.model.errors import UsageError
from precis.pipelines.corpus.kept_fields import kept_columns
from precis.pipelines.corpus.task import DeadLetter

UUID = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(1, 5)
# What a page says of a column, the column, its value as an id, and as a kept field if
# it is another.
TYPES = [
    ("text, also large, view, dictionary", pa.array(["a1"], pa.string_view()), "a1"),
    ("text without annotation (Impala, Hive, ClickHouse)", pa.array([b"a1"]), "a1"),
    ("other binary", pa.array([b"\xff\x01"], pa.binary(2)), "ff01"),
    ("UUID", pa.array([UUID.bytes], pa.uuid()), str(UUID)),
    ("int8 to int64, uint8 to uint32", pa.array([7], pa.int16()), "7", 7),
    ("uint64", pa.array([2**64 - 1], pa.uint64()), str(2**64 - 1)),
    ("decimal", pa.array([decimal.Decimal("12.00")]), "12", "12.00"),
    ("float, double", pa.array([12.0]), "12", 12.0),
    ("bool", pa.array([True]), "wrong_type", True),
    ("date", pa.array([NOON.date()]), "2024-05-01", NOON.date()),
    ("timestamp", pa.array([NOON]), "2024-05-01T12:00:00Z", NOON),
    ("time", pa.array([NOON.time()]), "12:00:00"),
    ("duration", pa.array([DAY]), "1 day, 0:00:05"),
    ("JSON", pa.array(["[1]"], pa.json_()), "[1]"),
    ("list, struct, map", pa.array([[1]]), "wrong_type", "[1]"),
]


def test_the_page_says_how_each_type_is_read(tmp_path):
    """Where a type changes, the assertion shows the rows that the page must have."""
    rows, path = [], tmp_path / "a.parquet"
    for name, column, as_id, *kept_value in TYPES:
        table = pa.table([["Rain fell."], column], names=["article", "value"])
        pq.write_table(table, path)
        _, (by_id,) = read_corpus(f"parquet:{path}", id_field="value")
        tasks, (kept,) = read_corpus(f"parquet:{path}", keep_fields="value")
        (field,) = kept_columns(tasks, taken=())
        shown = f"`{as_id}`"
        if isinstance(by_id, DeadLetter):
            shown = "dead letter"
            assert by_id.reason == as_id
        else:
            assert by_id.document_id == as_id
        assert [kept.metadata["value"]] == (kept_value or [as_id])
        rows.append(f"| {name} | {shown} | {field.type} |")
    page = Path("docs/CORPORA.md").read_text(encoding="utf-8")
    _, _, after = page.partition("| column of `parquet:`, `arrow:`, `delta:` |")
    assert after.splitlines()[2 : len(rows) + 2] == rows


def test_the_nanoseconds_of_an_id_are_kept(tmp_path):
    times = pa.array([1_714_557_600_000_000_007, 1_714_557_600_120_000_000, None])
    for zone, sign in (("Asia/Tokyo", "Z"), (None, "")):
        times = times.cast(pa.timestamp("ns", zone))
        table = pa.table({"article": ["A b."] * 3, "id": times})
        pq.write_table(table, path := f"{tmp_path}/a.parquet")
        ids = [each.document_id for each in read_corpus(f"parquet:{path}")[1]]
        starts = [f"2024-05-01T10:00:00.{end}{sign}" for end in ("000000007", "120000")]
        assert ids[:2] == starts
        assert len(ids[2]) == 64  # the hash of the article


@pytest.mark.parametrize("is_stream", [True, False])
def test_arrow_files_are_read_by_batch_until_damage(tmp_path, is_stream):
    path = tmp_path / "a.arrow"
    texts = [f"Article {number}. It rained." for number in range(1000)]
    table = pa.table({"extra": [[1]] * 1000, "id": range(1000), "article": texts})
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    _, whole = read_corpus(f"arrow:{tmp_path}")
    tasks, records = read_corpus(f"arrow:{path}", task_bytes=20_000)
    assert len(tasks) == (1 if is_stream else 3)
    assert records == whole
    assert [record.document_id for record in records] == [*map(str, range(1000))]
    assert records[-1].source_position == "batch 3 row 99"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    if not is_stream:
        with pytest.raises(UsageError, match="a.arrow cannot be read as Arrow: .*; na"):
            read_corpus(f"arrow:{path}")
        return
    documents, (lost,) = parted(read_corpus(f"arrow:{path}")[1])
    assert [each.document_id for each in documents] == [*map(str, range(300))]
    assert (lost.reason, lost.source_position) == ("broken_arrow", "batch 1")


def test_a_table_that_is_compressed_as_a_whole_is_named(tmp_path):
    for scheme, name in (("arrow", "a.arrow"), ("parquet", "a.gz"), ("arrow", "a.gz")):
        (tmp_path / name).write_bytes(gzip.compress(b"ARROW1"))
        with pytest.raises(UsageError, match="compressed by gzip; `gunzip -c .* reads"):
            read_corpus(f"{scheme}:{tmp_path}/{name}")
    (tmp_path / "b.arrow").write_bytes(b"\1\2\3" * 99)
    with pytest.raises(UsageError, match="its schema cannot be read: .*; name compl"):
        read_corpus(f"arrow:{tmp_path}/b.arrow")


def test_a_variant_is_refused_where_it_is_needed(tmp_path):
    # Spark 4 and DuckDB 2 write a VARIANT as these columns, DuckDB with typed_value.
    typed = {"a": {"value": b"\0", "typed_value": 1}}
    variant = pa.array([{"metadata": b"\1", "value": None, "typed_value": typed}])
    table = pa.table({"article": ["Rain fell."], "v": variant, "list": pa.array([[1]])})
    pq.write_table(table, path := f"{tmp_path}/a.parquet")
    assert read_corpus(f"parquet:{path}")[1][0].article == "Rain fell."
    with pytest.raises(UsageError, match="'v' has the type VARIANT.*CAST.v AS JSON"):
        read_corpus(f"parquet:{path}", keep_fields="v")
    with pytest.raises(UsageError, match="'v' has the type VARIANT"):
        read_corpus(f"parquet:{path}", article_field="v.text")
    table = table.set_column(1, "v", pa.array([{"metadata": "a", "value": 1}]))
    pq.write_table(table, path)  # No VARIANT, though named like one.
    (document,) = read_corpus(f"parquet:{path}", keep_fields="v")[1]
    assert document.metadata == {"v": '{"metadata": "a", "value": 1}'}
