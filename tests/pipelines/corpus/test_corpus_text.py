"""The scheme text:GLOB."""

import pytest
from support.corpus_records import read_corpus

from precis.pipelines.corpus.task import DeadLetter


@pytest.fixture
def folder(tmp_path):
    of_2024 = "2024/storm.txt", "2024/storm.md", "2024/fire.v1.txt"
    for name in ("2023/storm.txt", *of_2024):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(f"Text of {name}\r\nend ü".encode())
    return tmp_path


def test_each_file_is_a_document(folder, monkeypatch):
    names = ["2023/storm", "2024/fire.v1", "2024/storm"]
    for task_bytes, count in ((1, 3), (70, 2), (1000, 1)):
        tasks, records = read_corpus(f"text:{folder}/*/*.txt", task_bytes=task_bytes)
        assert [(d.document_id, d.article, d.highlights) for d in records] == [
            (name, f"Text of {name}.txt\r\nend ü", None) for name in names
        ]
        assert len(tasks) == count
    monkeypatch.chdir(folder)
    assert [d.document_id for d in read_corpus("text:*/*.txt")[1]] == names


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("2024/*", ["fire.v1.txt", "storm.md", "storm.txt"]),
        ("2024/storm.md", ["storm"]),
        ("2*/storm.*", ["2023/storm.txt", "2024/storm.md", "2024/storm.txt"]),
    ],
)
def test_ids_are_unique(folder, pattern, ids):
    records = read_corpus(f"text:{folder}/{pattern}")[1]
    assert [document.document_id for document in records] == ids


def test_files_that_are_not_utf8_or_too_large_are_unreadable(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"good \xff bad")
    (tmp_path / "b.txt").write_bytes(b"x" * ((1 << 20) + 1))
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbf" + b"y" * ((1 << 20) - 3))
    (tmp_path / "d[1].txt").write_bytes(b"")
    corpus = f"text:{tmp_path}/*.txt"
    broken, large, whole, empty = read_corpus(corpus, max_record_mb=1)[1]
    assert broken == DeadLetter(
        *("read", "invalid_utf8", "byte 5: invalid start byte", None),
        *(f"{tmp_path}/a.txt", "file", b"good \xff bad"),
    )
    assert (large.reason, large.detail) == (
        "record_too_large",
        "the file has more than 1,048,576 bytes (--max_record_mb)",
    )
    assert whole.article == "y" * ((1 << 20) - 3)
    assert (whole.source_file, whole.source_position) == (f"{tmp_path}/c.txt", "file")
    assert (empty.reason, empty.document_id) == ("empty_article", "d[1]")
    place = f"{tmp_path}/d[1].txt", "file"
    assert (empty.source_file, empty.source_position) == place
    assert read_corpus(f"text:{tmp_path}/d[1].txt")[1][0].document_id == "d[1]"
