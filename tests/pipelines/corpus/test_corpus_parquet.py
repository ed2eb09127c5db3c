"""The schemes parquet:GLOB and arrow:GLOB, and columns of every type."""

import base64
import datetime
import decimal
import gzip
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption
from support.corpus_records import parted, place_and_reason, read_corpus

from precis.model.errors import UsageError
from precis.pipelines.corpus.kept_fields import kept_columns
from precis.pipelines.corpus.task import DeadLetter


def _table(count):
    texts = [f"Ärticle {index} " * (index % 11 + 1) for index in range(count)]
    return pa.table({"unused": [[1, 2]] * count, "id": range(count), "article": texts})


def test_bad_rows_are_unreadable_and_the_other_rows_are_read(tmp_path):
    """Texts without annotation, which are bytes, are UTF-8."""
    path = tmp_path / "a.parquet"
    values = [b"good", b"caf\xe9", None, b"", "Ärger.".encode()]
    texts = pa.array(values, pa.binary())
    reasons = ("wrong_type", "invalid_utf8", "missing_field", "empty_article")
    for column in (texts, texts.view(pa.string())):
        table = pa.table({"article": column, "id": [1.5, None, 3.0, None, 5.0]})
        pq.write_table(table, path)
        *letters, document = read_corpus(f"parquet:{path}")[1]
        assert [place_and_reason(letter) for letter in letters] == [
            (str(path), f"row group 0 row {row}", reason)
            for row, reason in enumerate(reasons)
        ]
        assert (document.document_id, document.article) == ("5", "Ärger.")
    assert letters[0].raw == b'{"article": "good", "id": 1.5}'
    assert letters[3].raw == b'{"article": "", "id": null}'


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_the_row_groups_beside_a_damaged_row_group_are_read(tmp_path, compression):
    path = tmp_path / "a.parquet"
    texts = _table(90)["article"].to_pylist()
    texts[70] = None
    layout = {"compression": compression, "use_dictionary": False}
    table = pa.table({"article": texts, "id": range(90)})
    pq.write_table(table, path, row_group_size=30, write_page_checksum=True, **layout)
    column = pq.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    begin = column.data_page_offset + column.total_compressed_size // 2
    content[begin] ^= 1  # Without compression only the checksum of the page tells.
    path.write_bytes(content)
    results = [
        read_corpus(f"parquet:{path}", task_bytes=size)[1] for size in (10, 1 << 30)
    ]
    assert results[0] == results[1]
    documents, (lost, null) = parted(results[0])
    assert place_and_reason(null) == (str(path), "row group 2 row 10", "missing_field")
    assert place_and_reason(lost) == (str(path), "row group 1 row 0", "broken_parquet")
    assert lost.detail.startswith("rows 0 to 29 of the row group are lost: ")
    assert [(d.document_id, d.source_position) for d in documents] == [
        (str(row), f"row group {row // 30} row {row % 30}")
        for row in (*range(30), *range(60, 70), *range(71, 90))
    ]


DICTIONARY = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), DICTIONARY, pa.binary()]
)
def test_a_row_beyond_the_limit_is_unreadable(tmp_path, kind):
    long = "ä" * (1 << 19)
    texts = pa.array([long, long[1:] + "a", None, long, "short"], kind)
    table = pa.table({"article": texts, "highlights": ["", "b", "c", "d", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = f"parquet:{tmp_path}/a.parquet"
    first, second, third, lost, last = read_corpus(corpus, max_record_mb=1)[1]
    assert [d.article for d in (first, second, last)] == [long, long[1:] + "a", "short"]
    assert third.reason == "missing_field"
    assert place_and_reason(lost)[1:] == ("row group 0 row 3", "record_too_large")
    detail = "the record has 1,048,577 bytes, more than 1,048,576 (--max_record_mb)"
    assert (lost.raw, lost.detail) == (b"", detail)


def test_a_column_that_comes_twice_is_refused_if_it_is_read(tmp_path):
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([1])]
    for names in (["article", "x", "x"], ["article", "article", "n"]):
        table = pa.Table.from_arrays(columns, names=names)
        pq.write_table(table, tmp_path / f"{names[1]}.parquet")
    (document,) = read_corpus(f"parquet:{tmp_path}/x.parquet")[1]
    assert document.article == "a"
    message = r"parquet has 2 columns named 'article', .*; give each column its own"
    with pytest.raises(UsageError, match=message):
        read_corpus(f"parquet:{tmp_path}/article.parquet")


def _encrypted(table, path):
    class Keys(encryption.KmsClient):
        def wrap_key(self, key_bytes, master_key_identifier):
            return base64.b64encode(key_bytes)

    factory = encryption.CryptoFactory(lambda _: Keys())
    keys = encryption.EncryptionConfiguration("key", column_keys={"key": ["article"]})
    connection = encryption.KmsConnectionConfig()
    properties = factory.file_encryption_properties(connection, keys)
    pq.write_table(table, path, encryption_properties=properties)
    return path.read_bytes()


NO_SCHEMA, CUT = "its schema cannot be", "Parquet that is cut or not comp"
DAMAGES = {"encrypted": "an encrypted footer; write it w", "cut": CUT, "magic": CUT}
DAMAGES |= {"empty": NO_SCHEMA, "length": NO_SCHEMA}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_without_a_footer_is_lost_by_its_name(tmp_path, damage):
    pq.write_table(_table(9), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    path = tmp_path / "b.parquet"
    if damage == "encrypted":
        content = _encrypted(_table(9), path)
        assert content[:4] == content[-4:] == b"PARE"
    else:
        half, length = whole[: len(whole) // 2], whole[:-8] + b"\xff\xff\xff\x7fPAR1"
        damaged = {"cut": half, "empty": b"", "magic": whole[:4], "length": length}
        path.write_bytes(damaged[damage])
    *documents, lost = read_corpus(f"parquet:{tmp_path}/*")[1]
    assert [d.document_id for d in documents] == [str(index) for index in range(9)]
    assert place_and_reason(lost) == (str(path), "file", "file_unreadable")
    assert DAMAGES[damage] in lost.detail
    if damage == "length":
        message = f"b.parquet cannot .* Parquet: {NO_SCHEMA} .*; name complete files"
        with pytest.raises(UsageError, match=message):
            read_corpus(f"parquet:{path}")


def test_a_type_that_pyarrow_does_not_know_costs_nothing_unless_needed(tmp_path):
    """Int128 as Polars 2.1 writes it: 16 bytes, and Arrow's type of 128-bit integers,
    which is made here from that of 64 bits.
    """
    schema = pa.schema([("article", pa.string()), ("v", pa.int64())])
    stored = schema.serialize().to_pybytes()
    assert stored.count(b"\x40\0\0\0") == 1
    stored = base64.b64encode(stored.replace(b"\x40\0\0\0", b"\x80\0\0\0"))
    table = pa.table({"article": ["A."], "v": pa.array([b"\xff" * 16], pa.binary(16))})
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": stored})
    with pytest.raises(pa.ArrowNotImplementedError, match="more than 64 bits"):
        pq.read_table(path)
    (document,) = read_corpus(f"parquet:{path}")[1]
    assert document.article == "A."
    for flag in ("id_field", "keep_fields"):
        with pytest.raises(UsageError, match="field 'v' has a type .*; write it as a"):
            read_corpus(f"parquet:{path}", **{flag: "v"})


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
        with pytest.raises(UsageError, match="a.arrow cannot .*; name complete files"):
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
    with pytest.raises(UsageError, match="schema cannot be .*; name complete files"):
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
