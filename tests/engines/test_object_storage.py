"""Tests of `gs://` against an emulator: every input and output, faults, late lists."""

from pathlib import Path

import pytest
from support.command_line import exit_code
from support.fault_proxy import Faults, fault_proxy
from support.gcs_emulator import gcs_emulator
from support.object_stores import (
    CORPORA,
    ODD_NAMES,
    address_below,
    digest_of_run,
    environment,
    read_documents,
    write_corpora,
)

from precis.model import files
from precis.model.storage import clients
from precis.pipelines.corpus.listing import list_files

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def emulator():
    with gcs_emulator(buckets=["news"]) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def gcs(emulator, monkeypatch):
    """The endpoint of the emulator, at which `gs://` leads."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return emulator


@pytest.fixture(scope="module")
def corpora(emulator, tmp_path_factory):
    """The folder of the corpora on the disk; `gs://news/in` has the same files."""
    with environment(STORAGE_EMULATOR_HOST=emulator):
        return write_corpora(tmp_path_factory.mktemp("corpora"), "gs://news/in")


@pytest.fixture(scope="module")
def local_digest(corpora, tmp_path_factory):
    """The digest of the run `jsonl:jsonl/*` on the disk."""
    output = tmp_path_factory.mktemp("local") / "run"
    with environment():
        return digest_of_run(f"jsonl:{corpora}/jsonl/*", str(output))


@pytest.mark.parametrize("address", CORPORA)
def test_a_corpus_is_the_same_as_on_the_disk(corpora, address):
    local = read_documents(address_below(address, corpora))
    assert local and read_documents(address_below(address, "gs://news/in")) == local


@pytest.mark.parametrize("name", ODD_NAMES)
def test_characters_of_urls_are_characters_of_names(corpora, name):
    path = f"gs://news/in/text/{name}"
    assert files.read_bytes(path) == Path(corpora, "text", name).read_bytes()
    assert [file.path for file in list_files(path)] == [path]


def test_the_same_digest_where_one_request_in_ten_fails(
    gcs, corpora, local_digest, monkeypatch
):
    faults = Faults(one_in=10, seed=7, stall_seconds=5)
    monkeypatch.setattr(clients, "_SILENCE_SECONDS", 3)
    with fault_proxy(gcs, faults) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.endpoint)
        output = "gs://news/faulty/run"
        assert digest_of_run("jsonl:gs://news/in/jsonl/*", output) == local_digest
        assert exit_code("verify", output) == 0
        assert set(proxy.made) >= set(faults.kinds)
