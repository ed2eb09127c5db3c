"""The schemes text:GLOB and stories:DIR."""

import pytest
from support.corpus_records import read_corpus

from precis.model.errors import UsageError
from precis.pipelines.corpus.stories import parse_story
from precis.pipelines.corpus.task import DeadLetter


@pytest.fixture
def folder(tmp_path):
    for name in (
        "2023/storm.txt",
        "2024/storm.txt",
        "2024/storm.md",
        "2024/fire.v1.txt",
    ):
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
    broken, large, whole, empty = read_corpus(
        f"text:{tmp_path}/*.txt", max_record_mb=1
    )[1]
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
    assert (empty.source_file, empty.source_position) == (
        f"{tmp_path}/d[1].txt",
        "file",
    )
    assert read_corpus(f"text:{tmp_path}/d[1].txt")[1][0].document_id == "d[1]"


def test_a_story_is_parsed_as_tfds_parses_it():
    text = (
        "A man bit\r a dog\r\n  It was “big”  \n\nSee @highlight there\n\n"
        "@highlight\n\nMan bites dog\nin town!\n\n"
        "@highlight\n\nDog (well)"
    )
    assert parse_story(text) == (
        "A man bit a dog. It was “big” See @highlight there",
        "Man bites dog.\nin town!\nDog (well)",
    )
    assert parse_story("No highlights") == ("No highlights.", None)
    assert parse_story("") == ("", None)
    ends = "’”\"'`)!?."
    assert parse_story("\n".join(f"a{end}" for end in ends) + "\n:\n") == (
        " ".join(f"a{end}" for end in ends) + " :.",
        None,
    )


def test_stories_are_read_from_all_folders(tmp_path):
    for name, text in (
        ("cnn/stories/a1.story", "One\n\n@highlight\n\nH"),
        ("dailymail/stories/b2.story", "Two."),
        ("cnn/list.txt", "x"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cnn/stories/c3.story").write_bytes(b"\xff")
    for task_bytes, count in ((1, 3), (1000, 1)):
        tasks, records = read_corpus(f"stories:{tmp_path}", task_bytes=task_bytes)
        assert len(tasks) == count
        assert isinstance(records.pop(1), DeadLetter)
        assert [(d.document_id, d.article, d.highlights) for d in records] == [
            ("a1", "One.", "H."),
            ("b2", "Two.", None),
        ]
        assert {d.source_position for d in records} == {"file"}
        assert records[0].source_file == f"{tmp_path}/cnn/stories/a1.story"
    (tmp_path / "dailymail/stories/a1.story").write_text("again")
    with pytest.raises(
        UsageError,
        match=(
            r"cnn/stories/a1.story and .*dailymail/stories/a1.story have one name, "
            r"and the name is the id"
        ),
    ):
        read_corpus(f"stories:{tmp_path}")
    with pytest.raises(
        UsageError,
        match=r"no file matches .*story \(there is no folder .*/none\); check the path",
    ):
        read_corpus(f"stories:{tmp_path}/none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no file matches .*/empty/\*\*/\*.story"):
        read_corpus(f"stories:{tmp_path}/empty")
