"""Tests of `s3://` against the server of moto."""

import concurrent.futures
import logging
import urllib.request

import pytest
from moto.server import ThreadedMotoServer
from support.command_line import exit_code
from support.fault_proxy import Faults, fault_proxy
from support.object_stores import (
    CORPORA,
    ODD_NAMES,
    address_below,
    digest_of_run,
    environment,
    files_with,
    read_documents,
    write_corpora,
)

from precis.model import files
from precis.model.errors import UsageError
from precis.model.storage import clients
from precis.pipelines.corpus.listing import list_files

pytestmark = pytest.mark.slow

SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def server():
    """The endpoint of an S3 server with the bucket `news`."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    request = urllib.request.Request(f"http://{host}:{port}/news", method="PUT")
    with urllib.request.urlopen(request) as response:
        response.read()
    yield f"http://{host}:{port}"
    server.stop()


def variables(endpoint):
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET}
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": "us-east-1", **keys}


@pytest.fixture(autouse=True)
def s3(server):
    with environment(**variables(server)):
        yield server


@pytest.fixture(scope="module")
def corpora(server, tmp_path_factory):
    """The folder of the corpora on the disk; `s3://news/in` has the same files."""
    with environment(**variables(server)):
        return write_corpora(tmp_path_factory.mktemp("corpora"), "s3://news/in")


def test_corpora_are_the_same_as_on_the_disk(corpora):
    for address in CORPORA:
        local = read_documents(address_below(address, corpora))
        assert local and read_documents(address_below(address, "s3://news/in")) == local
    for name in ODD_NAMES:
        assert files.read_bytes(f"s3://news/in/text/{name}")


def test_a_run_has_the_digest_of_the_disk(s3, corpora, tmp_path, monkeypatch):
    expected = digest_of_run(f"jsonl:{corpora}/jsonl/*", str(tmp_path / "run"))
    corpus = "jsonl:s3://news/in/jsonl/*"
    assert digest_of_run(corpus, "s3://news/run") == expected
    assert exit_code("verify", "s3://news/run") == 0
    assert exit_code("evaluate", "--input", "s3://news/run", "--resamples", "10") == 0
    assert files_with("s3://news/run", SECRET) == []
    # One request in ten fails.
    monkeypatch.setattr(clients, "_SILENCE_SECONDS", 1.5)
    with fault_proxy(s3, Faults(one_in=10, seed=5, stall_seconds=4)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        assert digest_of_run(corpus, "s3://news/faulty") == expected
        assert len(proxy.made) > 2


def test_of_many_that_create_an_object_one_does():
    store, _ = files.filesystem("s3://news/")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        created = [*pool.map(lambda n: store.create("news/lock", b"%d" % n), range(8))]
    assert sum(created) == 1
    assert files.read_bytes("s3://news/lock") == b"%d" % created.index(True)


def test_thousands_of_objects_are_listed_in_pages():
    store, _ = files.filesystem("s3://news/")
    names = [f"news/many/{number:05d}.txt" for number in range(2_500)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.write(name, name.encode()), names))
    listed = [file.path for file in list_files("s3://news/many/*.txt")]
    assert listed == [f"s3://{name}" for name in names]
    assert len(read_documents("text:s3://news/many/*99.txt")) == 25


def test_a_large_object_goes_in_parts():
    with files.write_aside("s3://news/large") as file:
        file.write(b"0123456789abcdef" * (120 << 16))
    store, name = files.filesystem("s3://news/large")
    assert store.info(name)["size"] == 120 << 20
    with files.open_read("s3://news/large") as opened:
        opened.seek((120 << 20) - 3)
        assert opened.read() == b"def"


def test_a_bucket_that_is_not_there_and_a_server_that_does_not_answer(monkeypatch):
    with pytest.raises(FileNotFoundError, match="no bucket nobucket; check the name"):
        files.write_bytes("s3://nobucket/a", b"x")
    assert not files.exists("s3://nobucket/a")
    with pytest.raises(UsageError, match="remove the credentials, as the path"):
        files.exists(f"s3://key:{SECRET}@news/a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(UsageError, match="127.0.0.1:1 cannot be reached .Connection"):
        files.exists("s3://news/a")


def test_a_server_that_refuses(s3, monkeypatch):
    with fault_proxy(s3, Faults(forbidden=True)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        with pytest.raises(PermissionError, match="no permission .*docs/ENGINES.md"):
            files.read_bytes("s3://news/a")
