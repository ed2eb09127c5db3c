"""Tests of object stores without one: requests, errors, credentials, objects."""

import io
import logging

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from support.command_line import exit_code
from support.processes import closed_port

from precis.model import files
from precis.model.credentials import RedactingFormatter, redact, refuse_credentials
from precis.model.errors import UsageError
from precis.model.storage import clients
from precis.model.storage.store import ObjectStore

SECRET = "hunter2hunter2"


class RefusedError(Exception):
    """What gcsfs raises: no OSError, and with the status."""

    __module__ = "gcsfs.retry"

    def __init__(self, code):
        super().__init__(f"{code} for http://h/o?upload_id={SECRET}&name=x")
        self.code = code


FAILED_REQUESTS = [
    (FileNotFoundError("x"), FileNotFoundError, "no such object, or no bucket"),
    (FileExistsError("x"), FileExistsError, "it already exists"),
    (OSError("Forbidden: x\nno"), PermissionError, "no permission .Forbidden: x"),
    (PermissionError("no"), PermissionError, "use credentials that may read and"),
    (RefusedError(401), PermissionError, "no permission .401"),
    (RefusedError(503), OSError, "the request failed .503 .* try again, or check"),
    (TimeoutError(), OSError, "the request failed .TimeoutError"),
    (KeyError("defect"), KeyError, "defect"),  # not one of a store
]


@pytest.mark.parametrize(("error", "kind", "words"), FAILED_REQUESTS)
def test_a_request_that_fails_is_explained(monkeypatch, error, kind, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail)
    with pytest.raises(kind, match=words) as caught:
        files.write_bytes("memory://b/a", b"x")
    assert SECRET not in str(caught.value)
    assert kind is KeyError or caught.value.filename == "memory:///b/a"


@pytest.fixture
def store():
    memory = fsspec.filesystem("memory")
    yield ObjectStore("memory")
    for name in memory.find("/"):
        memory.rm_file(name)


def test_an_object_is_created_once(store):
    assert store.create("/b/lock", b"first")
    assert not store.create("/b/lock", b"second")
    assert store.read("/b/lock", 0, 5) == b"first"


def test_odd_names_are_names_and_no_patterns(store):
    names = ["a b", "a#12", "a?generation=3", "a%20b", "a[1]", "a*", "é"]
    for name in names:
        files.write_bytes(f"memory://b/{name}", name.encode())
    assert [files.read_bytes(f"memory://b/{name}").decode() for name in names] == names
    assert files.list_folder("memory://b") == sorted(names)
    files.remove("memory://b/a*")
    assert files.list_folder("memory://b") == sorted(set(names) - {"a*"})


def test_a_file_is_moved_to_another_name(store, tmp_path):
    for folder in ("memory://b", str(tmp_path)):
        files.write_bytes(files.join(folder, "old"), b"x")
        files.move(files.join(folder, "old"), files.join(folder, "deep", "new"))
        assert not files.exists(files.join(folder, "old"))
        assert files.read_bytes(files.join(folder, "deep", "new")) == b"x"


def test_an_object_is_read_from_everywhere(store):
    content = bytes(range(256)) * 8
    files.write_bytes("memory://b/a", content)
    with files.open_read("memory://b/a") as opened:
        assert opened.seek(-6, io.SEEK_END) == len(content) - 6
        assert opened.read(3) == content[-6:-3] and opened.read() == content[-3:]
        assert opened.seek(300) == 300 and opened.read(2) == content[300:302]
        assert opened.seek(1, io.SEEK_CUR) == 303 and opened.read(1) == content[303:304]


def test_a_folder_is_not_read_as_an_object(store):
    files.write_bytes("memory://b/folder/a", b"x")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        files.open_read("memory://b/folder")


def test_an_object_that_shrinks_while_it_is_read_is_an_error(store):
    files.write_bytes("memory://b/a", b"x" * 10)
    opened = files.open_read("memory://b/a")
    files.write_bytes("memory://b/a", b"x")
    with pytest.raises(OSError, match="1 bytes arrived of 10; it was replaced"):
        opened.read()


def test_an_object_that_the_store_decodes_is_refused(store, monkeypatch):
    files.write_bytes("memory://b/a", b"x")
    info = MemoryFileSystem.info

    def decoded(*args, **keywords):
        return {**info(*args), "contentEncoding": "gzip"}

    monkeypatch.setattr(MemoryFileSystem, "info", decoded)
    with pytest.raises(OSError, match="stored with Content-Encoding: gzip"):
        files.open_read("memory://b/a")


def test_a_store_that_cannot_be_reached_is_said_at_once(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with closed_port() as port:
        message = (
            f"^127.0.0.1:{port} cannot be reached .Connection refused.; check the "
            "network, or the variables STORAGE_EMULATOR_HOST and AWS_ENDPOINT_URL"
        )
        with pytest.raises(UsageError, match=message):
            clients._check_reached(f"127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", "http://proxy:3128")
        clients._check_reached(f"http://127.0.0.1:{port}")


LACKING = [
    ("gs://b/x", "pip install 'precis-corpus.gcs.'"),
    ("s3://b/x", "pip install 'precis-corpus.s3.'"),
    ("abfs://b/x", "install that package"),
    ("nothing://b/x", "name a local path, or one on gs:// or s3://"),
]


@pytest.mark.parametrize(("path", "words"), LACKING)
def test_a_store_without_its_package_is_refused(monkeypatch, path, words):
    def lacks_package(protocol):
        if protocol == "nothing":
            raise ValueError("Protocol not known: nothing")
        raise ImportError("it is missing")

    monkeypatch.setattr("precis.model.storage.store.open_client", lacks_package)
    with pytest.raises(UsageError, match=words):
        files.exists(path)


HIDDEN = [
    (f"gs://user:{SECRET}@bucket/x", "gs://***@bucket/x"),
    (
        f"GET https://h/x?a=1&X-Goog-Signature={SECRET}&b=2 failed",
        "GET https://h/x?a=1&X-Goog-Signature=***&b=2 failed",
    ),
    (f"https://h/x?X-Amz-Security-Token={SECRET}", "https://h/x?X-Amz-Security-"),
    (f"{{'Authorization': 'Bearer {SECRET}'}}", "{'Authorization': 'Bearer ***'}"),
    ("gs://bucket/a@b?c=1", "gs://bucket/a@b?c=1"),
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN)
def test_credentials_are_hidden(text, shown):
    assert redact(text).startswith(shown) and SECRET not in redact(text)


def test_a_log_line_has_no_credentials():
    record = logging.LogRecord("a", 20, "f", 1, "to gs://u:%s@b", (SECRET,), None)
    formatted = RedactingFormatter(logging.BASIC_FORMAT).format(record)
    assert formatted == "INFO:a:to gs://***@b"


@pytest.mark.parametrize(
    "path", [f"gs://user:{SECRET}@b/x", f"https://h/x?Signature={SECRET}"]
)
def test_a_path_with_credentials_is_refused(path, capsys, tmp_path):
    message = "remove the credentials, as the path"
    for use in (refuse_credentials, files.exists):
        with pytest.raises(UsageError, match=message) as caught:
            use(path)
        assert SECRET not in str(caught.value)
    for arguments in (
        ("--corpus", f"jsonl:{path}", "--output", str(tmp_path / "run")),
        ("--corpus", "sample:9", "--output", path),
        ("--corpus", "sample:9", "--output", "out", path),
        ("--corpus", "sample:9", "--output", "out", "--config", path),
        ("--corpus", "sample:9", "--output", "out", "--verbose", "--bundle", path),
    ):
        assert exit_code("summarize", *arguments) == 2
        captured = capsys.readouterr()
        assert SECRET not in captured.out + captured.err
        assert captured.err.startswith("precis summarize: ")
    assert not (tmp_path / "run").exists()
