"""The files of a local corpus: links, odd names, and what is no file."""

import contextlib
import json
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from support.corpus_records import read_corpus

from precis.pipelines.corpus import opening
from precis.pipelines.corpus.opening import local_name, written_name
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import DeadLetter


def texts(corpus):
    """The texts of the documents by id, and (name, reason) of the others."""
    records = read_corpus(corpus)[1]
    documents = [each for each in records if not isinstance(each, DeadLetter)]
    lost = [each for each in records if isinstance(each, DeadLetter)]
    assert len({each.document_id for each in documents}) == len(documents)
    return (
        {each.document_id: each.article for each in documents},
        [(os.path.basename(each.source_file), each.reason) for each in lost],
    )


def test_links_to_files_are_read_under_their_own_names(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.txt").write_text("text")
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).symlink_to(tmp_path / "store" / "a.txt")
    assert texts(f"text:{tmp_path}/*.txt") == ({"one": "text", "two": "text"}, [])
    both = texts(f"text:{tmp_path}/**/*.txt")[0]
    assert both == dict.fromkeys(("one", "two", "store/a"), "text")
    assert texts(f"text:{tmp_path}/one.txt")[0] == {"one": "text"}


def test_links_to_folders_are_followed_and_loops_end(tmp_path):
    corpus, store = tmp_path / "corpus", tmp_path / "store"
    (store / "deep").mkdir(parents=True)
    (store / "deep" / "a.story").write_text("Text.")
    corpus.mkdir()
    (corpus / "b.story").write_text("Text.")
    (corpus / "linked").symlink_to(store)
    (store / "deep" / "up").symlink_to(corpus)
    (corpus / "self").symlink_to(".")
    every = {"b": "Text.", "linked/deep/a": "Text."}
    assert texts(f"text:{corpus}/**/*.story") == (every, [])
    assert set(texts(f"text:{corpus}/*/*/*.story")[0]) == {
        *("linked/deep/a", "self/self/b")
    }
    assert set(texts(f"text:{corpus}/**")[0]) == {"b.story", "linked/deep/a.story"}


def test_what_is_no_file_is_counted_by_name_and_never_opened(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    os.mkfifo(tmp_path / "fifo.txt")
    (tmp_path / "dangling.txt").symlink_to("gone")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "null.txt").symlink_to("/dev/null")
    (tmp_path / "folder.txt").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(tmp_path)  # The path of a socket may have a hundred bytes.
        listener.bind("socket.txt")
        os.chdir(here)
        lost = [
            ("dangling.txt", "dangling_link"),
            ("fifo.txt", "not_a_file"),
            ("loop.txt", "dangling_link"),
            ("null.txt", "not_a_file"),
            ("socket.txt", "not_a_file"),
        ]
        assert texts(f"text:{tmp_path}/*.txt") == ({"a": "text"}, lost)
        assert texts(f"text:{tmp_path}/f*.txt") == ({}, [("fifo.txt", "not_a_file")])
        assert texts(f"jsonl:{tmp_path}/[!a]*.txt") == ({}, lost)
    with pytest.raises(OSError, match="not a regular file.*fifo.txt"):
        opening.open_source(str(tmp_path / "fifo.txt"))


@contextlib.contextmanager
def without_privileges():
    """Root may read everything, so that it becomes another user for the block."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_what_may_not_be_read_is_counted_by_name(open_folder):
    for name in ("a.txt", "closed.txt", "folder/b.txt", "other/c.txt"):
        (open_folder / name).parent.mkdir(exist_ok=True)
        (open_folder / name).write_text(f'{{"article": "{name}"}}')
    (open_folder / "closed.txt").chmod(0)
    (open_folder / "folder").chmod(0)
    with without_privileges():
        found = texts(f"text:{open_folder}/*.txt")
        assert (set(found[0]), found[1]) == (
            {"a"},
            [("closed.txt", "permission_denied")],
        )
        below = texts(f"jsonl:{open_folder}/**/*.txt")[1]
        # How many records they have is not known.
        assert below == [
            ("closed.txt", "file_unreadable"),
            ("folder", "file_unreadable"),
        ]
        assert texts(f"text:{open_folder}/o*/*.txt")[1] == []
    (open_folder / "folder").chmod(stat.S_IRWXU)


def test_a_disk_that_fails_is_counted_by_the_name_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("text")

    def fail(path):
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(opening, "read_state", fail)
    assert texts(f"text:{tmp_path}/*") == ({}, [("a.txt", "read_error")])


ODD_NAMES = [
    "*.txt",
    "a[1].txt",
    "?.txt",
    "line\nbreak.txt",
    " \"quotes' .txt",
    "a::b.txt",
    "~.txt",
    "100%25.txt",
    "{a,b}.txt",
    "caf\u00e9.txt",
    "back\\slash.txt",
    "back\\xe9.txt",
    os.fsdecode(b"caf\xe9.txt"),
    os.fsdecode(b"\\x5c\xff\\xe9.txt"),
]


def test_names_of_every_kind_are_read_and_written_as_text(tmp_path):
    for name in (*ODD_NAMES, "b1.txt"):
        (tmp_path / name).write_text(f"text of {name!r}")
    tasks, records = read_corpus(f"text:{tmp_path}/*.txt", task_bytes=1)
    assert len(tasks) == len(ODD_NAMES) + 1
    by_name = {local_name(each.document_id) + ".txt": each.article for each in records}
    assert by_name == {name: f"text of {name!r}" for name in (*ODD_NAMES, "b1.txt")}
    written = [path for task in tasks for path in task.paths]
    assert json.loads(json.dumps(written).encode()) == written
    assert pa.array(written).to_pylist() == written
    for name in ODD_NAMES:
        assert local_name(written_name(name)) == name
        if name not in ("*.txt", "?.txt"):
            assert texts(f"text:{tmp_path}/{written_name(name)}")[0] == {
                written_name(name).removesuffix(".txt"): f"text of {name!r}"
            }


def test_a_corpus_is_recorded_as_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    options = CorpusOptions(corpus=f"text:{folder}/*.txt")
    assert options.corpus == rf"text:{tmp_path}/caf\xe9/*.txt"
    again = CorpusOptions(corpus=options.corpus)
    assert list_tasks(again) == list_tasks(options)
    assert texts(options.corpus) == ({"a": "text"}, [])
