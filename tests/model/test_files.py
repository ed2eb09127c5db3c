"""Tests of files on local disks and object stores."""

import errno
import hashlib
import os

import fsspec
import pytest

from precis.model import files


@pytest.fixture(params=["local", "memory"])
def folder(request, tmp_path):
    """A folder on the disk and one in an object store."""
    memory = fsspec.filesystem("memory")
    yield str(tmp_path) if request.param == "local" else "memory:///bucket/run"
    for name in memory.find("/"):
        memory.rm_file(name)


def test_equal_json_is_equal_bytes(folder):
    path = files.join(folder, "a.json")
    for content in ({"b": [1, None], "a": "é"}, {"a": "é", "b": [1, None]}):
        files.write_json(path, content)
        written = files.read_bytes(path).decode()
        assert written == '{\n  "a": "é",\n  "b": [\n    1,\n    null\n  ]\n}\n'
        assert files.read_json(path) == content


def test_glob_finds_files_in_the_form_of_the_pattern(folder):
    for name in ("b.txt", "a.txt", "c.md", "sub/d.txt", "dir.txt/e.md"):
        files.write_bytes(files.join(folder, name), b"x")
    expected = {"*.txt": ["a.txt", "b.txt"], "**/d.txt": ["sub/d.txt"], "*.csv": []}
    for pattern, names in expected.items():
        found = files.glob(files.join(folder, pattern))
        assert found == [files.join(folder, name) for name in names]


def test_files_and_folders_are_removed(folder):
    for name in ("keep", "one", "many/a", "many/deep/b"):
        files.write_bytes(files.join(folder, name), b"x")
    for name in ("one", "many", "nothing"):
        files.remove(files.join(folder, name))
    for name in ("keep", "one", "many", "many/a", "many/deep/b"):
        assert files.exists(files.join(folder, name)) == (name == "keep")


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_file_is_published_when_a_block_ends_without_an_error(folder, error):
    path = files.join(folder, "a")
    with files.write_aside(path) as file:
        file.write(b"all")
        assert not files.exists(path)
    for other in (path, files.join(folder, "new")):
        with pytest.raises(type(error)), files.write_aside(other) as file:
            file.write(b"half")
            raise error
    assert files.read_bytes(path) == b"all"
    assert files.glob(files.join(folder, "*")) == [path]


def test_a_local_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os,
            name,
            lambda *args, real=real, name=name: (calls.append(name), real(*args)),
        )
    files.write_bytes(str(tmp_path / "a"), b"x")
    assert calls == ["fsync", "replace"]


@pytest.mark.parametrize("when", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, when):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, when, fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*/[a-z.]+'$"):
        files.write_bytes(str(tmp_path / "a"), b"x")
    assert os.listdir(tmp_path) == []


def test_two_writers_of_one_name_do_not_disturb_each_other(tmp_path):
    path = str(tmp_path / "a")
    with files.write_aside(path) as first, files.write_aside(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert (tmp_path / "a").read_bytes() == b"first"  # it was published last
    assert os.listdir(tmp_path) == ["a"]


def test_hashes_of_files_and_of_json(folder):
    content = os.urandom((1 << 20) + 5)  # more than one block
    path = files.join(folder, "a")
    files.write_bytes(path, content)
    assert files.sha256_file(path) == hashlib.sha256(content).hexdigest()
    expected = hashlib.sha256(b'{"a":["\\u00e9"],"b":1}').hexdigest()
    assert files.sha256_json({"b": 1, "a": ["é"]}) == expected
