"""Tests of `gs://` against an emulator: every input and output, faults, late lists."""

import concurrent.futures
import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command_line import error_lines, exit_code
from support.command_line import precis as command
from support.fault_proxy import Faults, fault_proxy
from support.gcs_emulator import (
    gcs_emulator,
)
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
from precis.model.storage.store import ObjectStore
from precis.pipelines.corpus.listing import list_files
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.verification.digest import digest

pytestmark = pytest.mark.engines

PREPARE = {
    "vocabulary_size": 600,
    "max_source_tokens": 64,
    "max_target_tokens": 16,
    "validation_share": 0.2,
}
TRAIN = {
    "network": "tiny",
    "width": 16,
    "heads": 2,
    "feed_forward": 32,
    "batch_tokens": 512,
    "warmup_steps": 2,
    "checkpoint_steps": 1,
    "steps": 2,
}
NETWORK = {"split": "validation", "validation_share": 0.2, "beam_width": 2}


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
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(folder)
    with environment(STORAGE_EMULATOR_HOST=emulator):
        files.copy_tree(str(folder), "gs://news/in")
    return str(folder)


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


def run_all(corpus, folder):
    """The digest of a run with a network that was trained on a corpus, and scores."""
    flags = {"corpus": corpus, "output": f"{folder}/records", **PREPARE}
    assert command("prepare", **flags) == 0
    records, bundle = f"{folder}/records", f"{folder}/bundle"
    assert command("train", records=records, output=bundle, **TRAIN) == 0
    run = f"{folder}/run"
    flags = {"corpus": corpus, "bundle": bundle, "output": run, **NETWORK}
    assert command("summarize", **flags) == 0
    assert command("evaluate", input=run, resamples=10) == 0
    for made in (records, bundle, run):
        assert exit_code("verify", made) == 0
    scores = files.read_json(f"{folder}/run-evaluation/rouge.json")["systems"]
    return digest(run=run), scores


def test_records_bundle_run_and_scores_are_those_of_the_disk(corpora, tmp_path):
    local = run_all(f"jsonl:{corpora}/jsonl/*", str(tmp_path))
    assert run_all("jsonl:gs://news/in/jsonl/*", "gs://news/all") == local
    # A training that goes on from its checkpoints, and one that is finished.
    train = {"records": "gs://news/all/records", "output": "gs://news/all/bundle"}
    weights = files.sha256_file("gs://news/all/bundle/weights.safetensors")
    files.remove("gs://news/all/bundle/manifest.json")
    assert command("train", **train, **TRAIN) == 0
    assert files.sha256_file("gs://news/all/bundle/weights.safetensors") == weights
    files.write_json("gs://news/run.json", {"records": train["records"], **TRAIN})
    flags = {"config": "gs://news/run.json", "output": train["output"]}
    assert command("train", **flags) == 0


def test_the_same_digest_where_one_request_in_ten_fails(
    gcs, corpora, local_digest, monkeypatch
):
    faults = Faults(one_in=10, seed=7, stall_seconds=5)
    monkeypatch.setenv("PRECIS_STORAGE_TIMEOUT", "3")
    with fault_proxy(gcs, faults) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.endpoint)
        output = "gs://news/faulty/run"
        assert digest_of_run("jsonl:gs://news/in/jsonl/*", output) == local_digest
        assert exit_code("verify", output) == 0
        assert set(proxy.made) >= set(faults.kinds)


def test_an_upload_of_several_requests_is_repeated(gcs, monkeypatch):
    faults = Faults(one_in=3, seed=66, kinds=("unavailable", "reset", "lost"))
    content = os.urandom(1 << 20) * 40
    with fault_proxy(gcs, faults) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.endpoint)
        with files.write_aside("gs://news/large") as file:
            file.write(content)
        assert files.read_bytes("gs://news/large") == content
        assert set(proxy.made) >= set(faults.kinds)


def test_the_same_digest_where_lists_are_late(gcs, corpora, local_digest, monkeypatch):
    with fault_proxy(gcs, Faults(listing_lag_seconds=2)) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.endpoint)
        time.sleep(2)  # The corpus may have been uploaded just now.
        output = "gs://news/late/run"
        corpus = "jsonl:gs://news/in/jsonl/*"
        assert digest_of_run(corpus, output) == local_digest
        assert exit_code("verify", output) == 0
        assert evaluate(input=output, resamples=10)["systems"]
        # The same job finds its result, another one is refused.
        assert digest_of_run(corpus, output) == local_digest
        flags = {"corpus": corpus, "output": output, "extractive": "lead"}
        assert command("summarize", **flags) == 2
        assert proxy.hidden > 0


def test_failures_are_retried_and_rows_are_reused(gcs):
    lines = ['{"id": "a", "article": "One. Two. Three."}', "{broken", '{"id": "b"}']
    files.write_bytes("gs://news/again/news.jsonl", "\n".join(lines).encode())
    flags = {
        "corpus": "jsonl:gs://news/again/news.jsonl",
        "extractive": "lead",
        "min_source_words": 0,
    }
    first = summarize(**flags, output="gs://news/again/first", max_failed_share=1)
    assert first["counts"]["failed"] == 2
    retried = summarize(
        **flags,
        output="gs://news/again/retried",
        retry_failures="gs://news/again/first",
        max_failed_share=1,
    )
    assert retried["counts"]["read"] == retried["counts"]["failed"] == 2
    reused = summarize(
        **flags,
        output="gs://news/again/reused",
        reuse="gs://news/again",
        max_failed_share=1,
    )
    assert reused["counts"]["reused"] == 1


def test_a_damaged_run_on_a_store_is_repaired(corpora, local_digest):
    corpus, output = "jsonl:gs://news/in/jsonl/*", "gs://news/repaired/run"
    assert digest_of_run(corpus, output) == local_digest
    part = files.glob(f"{output}/data/*.parquet")[0]
    files.write_bytes(part, b"damaged")
    assert exit_code("verify", output) == 1
    assert digest_of_run(corpus, output) == local_digest
    assert exit_code("verify", output) == 0


def test_a_list_of_several_pages_is_whole(tmp_path):
    """The emulator needs minutes for 10,000 objects; the tests of S3 have as many."""
    names = [f"{number:05d}.txt" for number in range(2_500)]
    (tmp_path / "many").mkdir()
    for name in names:
        (tmp_path / "many" / name).write_text(f"{name} has one sentence.")
    with (
        gcs_emulator(data=tmp_path) as endpoint,
        fault_proxy(endpoint, Faults()) as proxy,
        environment(STORAGE_EMULATOR_HOST=proxy.endpoint),
    ):
        listed = list_files("gs://many/*.txt")
        assert [file.path for file in listed] == [f"gs://many/{name}" for name in names]
        assert proxy.requests >= 3
        assert len(read_documents("text:gs://many/*99.txt")) == 25


def test_of_many_that_create_an_object_one_does(gcs):
    store, _ = files.filesystem("gs://news/")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        created = list(
            pool.map(lambda n: store.create("news/lock", b"%d" % n), range(8))
        )
    assert sum(created) == 1
    content = files.read_bytes("gs://news/lock")
    assert content == b"%d" % created.index(True)


def test_a_second_command_on_the_same_output_is_refused(gcs):
    owner = """
import sys
from precis.pipelines.run.output_lock import own_output
with own_output("gs://news/owned"):
    print("owned", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", owner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "owned\n"
        flags = {"corpus": "sample:9", "output": "gs://news/owned"}
        result = subprocess.run(
            [sys.executable, "-m", "precis.pipelines.command_line.cli", "summarize"]
            + [word for name, value in flags.items() for word in (f"--{name}", value)],
            capture_output=True,
            text=True,
        )
        assert result.returncode == 2
        (line,) = error_lines(result.stderr, "summarize")
        assert f"gs://news/owned is in use by process {process.pid} on" in line
        process.stdin.close()
    assert not files.exists("gs://news/owned/_tasks/lock.json")


def test_an_object_that_changes_after_the_list_is_noticed(gcs):
    path = "gs://news/changing/a.jsonl"
    files.write_bytes(path, b'{"id": "a", "article": "One. Two."}\n')
    (before,) = list_files("gs://news/changing/*")
    files.write_bytes(path, b'{"id": "a", "article": "One. Two."}\n')
    assert list_files("gs://news/changing/*") == [before]  # the same content
    files.write_bytes(path, b'{"id": "a", "article": "One. Too."}\n')
    assert list_files("gs://news/changing/*") != [before]


def test_a_whole_upload_is_seen_or_nothing(gcs):
    with pytest.raises(KeyboardInterrupt), files.write_aside("gs://news/half") as file:
        file.write(b"x" * (9 << 20))
        assert not files.exists("gs://news/half")
        raise KeyboardInterrupt
    assert not files.exists("gs://news/half")


def test_gzip_that_the_store_would_decode_is_refused(gcs):
    store, _ = files.filesystem("gs://news/")
    assert isinstance(store, ObjectStore)
    store._fs.pipe_file(
        "news/encoded.jsonl",
        gzip.compress(b'{"id": "a", "article": "One."}\n' * 9),
        fixed_key_metadata={"content_encoding": "gzip"},
    )
    with pytest.raises(OSError, match="stored with Content-Encoding: gzip"):
        files.read_bytes("gs://news/encoded.jsonl")
