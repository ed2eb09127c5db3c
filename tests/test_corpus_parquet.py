"""The scheme parquet:GLOB."""

import base64
import itertools

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption
from support.corpus_records import place_and_reason, read_corpus

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.task import DeadLetter


def _table(count, kind=None):
    return pa.table(
        {
            "unused": pa.array([[1, 2]] * count),
            "id": pa.array(range(count)),
            "article": pa.array(
                [f"Ärticle {index} " * (index % 11 + 1) for index in range(count)],
                kind or pa.string(),
            ),
            "highlights": pa.array(
                [None if index % 3 else f"H {index}" for index in range(count)],
                kind or pa.string(),
            ),
        }
    )


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_any_cut_gives_the_same_documents(tmp_path, kind):
    table = _table(900, kind)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=37)
    expected = [
        (str(r["id"]), r["article"], r["highlights"]) for r in table.to_pylist()
    ]
    counts = []
    for task_bytes in (1_000, 10_000, 40_000, 1 << 30):
        tasks, records = read_corpus(
            f"parquet:{tmp_path}/*.parquet", task_bytes=task_bytes
        )
        assert [(d.document_id, d.article, d.highlights) for d in records] == expected
        assert all(
            task.size_bytes <= task_bytes or task.stop - task.start == 1
            for task in tasks
        )
        assert all(
            left.size_bytes + right.size_bytes > task_bytes
            for left, right in itertools.pairwise(tasks)
        )
        counts.append(len(tasks))
    assert counts[0] == 25 >= counts[1] >= counts[2] > counts[3] == 1


def test_bad_rows_are_unreadable_and_the_other_rows_are_read(tmp_path):
    texts = pa.array([b"good", b"caf\xe9", None, b""], pa.binary()).view(pa.string())
    pq.write_table(
        pa.table({"article": texts, "id": pa.array([1.5, None, 3.0, None])}),
        tmp_path / "a.parquet",
    )
    path = f"{tmp_path}/a.parquet"
    _, records = read_corpus(f"parquet:{path}")
    assert [place_and_reason(u) for u in records[:3]] == [
        (path, "row group 0 row 0", "wrong_type"),
        (path, "row group 0 row 1", "invalid_utf8"),
        (path, "row group 0 row 2", "missing_field"),
    ]
    assert records[0].raw == b'{"article": "good", "id": 1.5}'
    assert (records[3].reason, records[3].raw) == (
        "empty_article",
        b'{"article": "", "id": null}',
    )


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_the_row_groups_beside_a_damaged_row_group_are_read(tmp_path, compression):
    path = tmp_path / "a.parquet"
    table = _table(90)
    with_null = pa.array(
        [
            None if index == 70 else text
            for index, text in enumerate(table["article"].to_pylist())
        ]
    )
    table = table.set_column(
        table.schema.get_field_index("article"), "article", with_null
    )
    pq.write_table(
        table,
        path,
        row_group_size=30,
        compression=compression,
        use_dictionary=False,
        write_page_checksum=True,
    )
    group = pq.read_metadata(path).row_group(1)
    column = group.column(
        [
            group.column(index).path_in_schema for index in range(group.num_columns)
        ].index("article")
    )
    content = bytearray(path.read_bytes())
    begin = column.data_page_offset + column.total_compressed_size // 2
    content[begin] ^= 1  # Without compression only the checksum of the page tells.
    path.write_bytes(content)
    results = [
        read_corpus(f"parquet:{path}", task_bytes=size)[1] for size in (10, 1 << 30)
    ]
    assert results[0] == results[1]
    lost, null = [u for u in results[0] if isinstance(u, DeadLetter)]
    assert place_and_reason(null) == (str(path), "row group 2 row 10", "missing_field")
    assert place_and_reason(lost) == (str(path), "row group 1 row 0", "broken_parquet")
    assert lost.detail.startswith("rows 0 to 29 of the row group are lost: ")
    documents = [d for d in results[0] if isinstance(d, Document)]
    rows = [*range(30), *range(60, 70), *range(71, 90)]
    assert [d.document_id for d in documents] == [str(row) for row in rows]
    assert [d.source_position for d in documents] == [
        f"row group {row // 30} row {row % 30}" for row in rows
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
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
    assert (lost.source_position, lost.reason, lost.raw) == (
        *("row group 0 row 3", "record_too_large"),
        b"",
    )
    assert lost.detail == (
        "the record has 1,048,577 bytes, more than 1,048,576 (--max_record_mb)"
    )


def test_a_column_that_comes_twice_is_refused(tmp_path):
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([1])]
    for names in (["article", "article", "n"], ["article", "x", "x"]):
        table = pa.Table.from_arrays(columns, names=names)
        pq.write_table(table, tmp_path / "a.parquet")
        if names[1] == "article":
            message = r"a.parquet has 2 columns named 'article', of which only one"
            with pytest.raises(UsageError, match=message):
                read_corpus(f"parquet:{tmp_path}/a.parquet")
        else:
            (document,) = read_corpus(f"parquet:{tmp_path}/a.parquet")[1]
            assert document.article == "a"


def test_fields_and_files_are_checked(tmp_path):
    pq.write_table(
        pa.table({"body": ["B"], "abstract": ["A"], "key": ["k"], "part": ["dev"]}),
        tmp_path / "a.parquet",
    )
    corpus = f"parquet:{tmp_path}/a.parquet"
    names = {
        "article_field": "body",
        "highlights_field": "abstract",
        "id_field": "key",
        "split_field": "part",
    }
    assert read_corpus(corpus, **names)[1] == [
        Document("k", "dev", "B", "A", {}, f"{tmp_path}/a.parquet", "row group 0 row 0")
    ]
    with pytest.raises(
        UsageError,
        match="has no field 'article', it has 'body', 'abstract', 'key', 'part'; did",
    ):
        read_corpus(corpus)
    with pytest.raises(UsageError, match="no field 'highlights'"):
        read_corpus(corpus, article_field="body", highlights_field="highlights")
    (tmp_path / "b.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(
        UsageError,
        match=r"b.parquet is no Parquet file that can be read \(its footer .*\); name ",
    ):
        read_corpus(f"parquet:{tmp_path}/b.parquet")


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


@pytest.mark.parametrize("damage", ["encrypted", "cut", "empty", "magic", "length"])
def test_a_file_without_a_footer_is_lost_by_its_name(tmp_path, damage):
    pq.write_table(_table(9), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    path = tmp_path / "b.parquet"
    if damage == "encrypted":
        content = _encrypted(_table(9), path)
        assert content[:4] == content[-4:] == b"PARE"
    else:
        content = {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "magic": whole[:4],
            "length": whole[:-8] + b"\xff\xff\xff\x7fPAR1",
        }[damage]
    path.write_bytes(content)
    *documents, lost = read_corpus(f"parquet:{tmp_path}/*")[1]
    assert [d.document_id for d in documents] == [str(index) for index in range(9)]
    assert place_and_reason(lost) == (str(path), "file", "file_unreadable")
    assert lost.detail.startswith("its footer cannot be read: ")


def test_a_file_without_rows_is_refused(tmp_path):
    pq.write_table(_table(0), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="holds no documents"):
        read_corpus(f"parquet:{tmp_path}/a.parquet")


def test_a_remote_file_is_read():
    memory = fsspec.filesystem("memory")
    with memory.open("/corpus/part 1/a.parquet", "wb") as file:
        pq.write_table(_table(100), file, row_group_size=10)
    try:
        tasks, records = read_corpus(
            "parquet:memory://corpus/**/*.parquet", task_bytes=1
        )
        assert len(tasks) == 10
        assert [d.document_id for d in records] == [str(index) for index in range(100)]
    finally:
        memory.rm("/corpus", recursive=True)
