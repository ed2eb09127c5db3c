"""Tests of jobs: taking possession of an output folder, resuming and finishing."""

import hashlib
import importlib.metadata
import json
import re
import shutil

import pyarrow.parquet as pq
import pytest
from support.command_line import contents, precis

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.corpus.task import CorpusFile, Fields, Task
from precis.pipelines.run.job import finish_job, hash_tasks, open_job


def begin(folder, *, kind="records", **inputs):
    inputs = {"seed": 1, **inputs}
    return open_job(str(folder), kind=kind, inputs=inputs, tasks=2)


def test_a_new_folder_is_taken_and_a_job_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = begin(tmp_path)
    version = importlib.metadata.version("precis-corpus")
    inputs = f'{{"kind":"records","precis_version":"{version}","seed":1}}'
    assert first.fingerprint == hashlib.sha256(inputs.encode()).hexdigest()
    assert first.run_id == first.fingerprint[:16] and first.tasks == 2
    described = json.loads((tmp_path / "_tasks" / "job.json").read_bytes())
    assert len(described.pop("content_sha256")) == 64
    assert described == {
        **{"created_at": "2023-11-14T22:13:20+00:00", "kind": "records", "flags": {}},
        "inputs": {"precis_version": version, "seed": 1},
        "fingerprint": first.fingerprint,
    }
    for name in ("data/part.aside", "_tasks/1.json.ab12.aside", "deep/er/x.12.aside"):
        files.write_bytes(str(tmp_path / name), b"half")
    files.write_bytes(str(tmp_path / "data" / "part"), b"whole")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    assert begin(tmp_path) == first
    assert set(contents(tmp_path)) == {"_tasks/job.json", "data/part"}


def test_a_finished_job_has_nothing_to_do(tmp_path):
    """It was killed once before it had said its name."""
    files.write_bytes(str(tmp_path / "_tasks" / "job.json.0badcafe.aside"), b"{")
    job = begin(tmp_path)
    content = json.dumps({"fingerprint": job.fingerprint}).encode()
    files.write_bytes(str(tmp_path / "dataset.json"), content)
    # What a worker was writing when it died, while the job went on without it.
    files.write_bytes(str(tmp_path / "train-00003.tfrecord.0badcafe.aside"), b"")
    finish_job(job)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["_SUCCESS", "dataset.json"]
    described = hashlib.sha256(content).hexdigest()
    assert (tmp_path / "_SUCCESS").read_text() == f"{job.fingerprint}\n{described}\n"
    # It was killed while it removed its receipts.
    files.write_bytes(str(tmp_path / "_tasks" / "00000.json"), b"{}")
    assert begin(tmp_path) is None
    assert not (tmp_path / "_tasks").exists()


@pytest.mark.parametrize("other", [{"seed": 2}, {"kind": "summaries"}])
def test_the_folder_of_another_job_is_refused(tmp_path, other):
    job = begin(tmp_path)
    unfinished = f"^{tmp_path} holds an unfinished job with other .*; finish that job"
    with pytest.raises(UsageError, match=unfinished):
        begin(tmp_path, **other)
    files.write_bytes(str(tmp_path / "dataset.json"), b"{}")
    finish_job(job)
    finished = f"^{tmp_path} holds a finished result with other .*; name another"
    with pytest.raises(UsageError, match=finished):
        begin(tmp_path, **other)


@pytest.fixture
def lost(request, extractive, prepared_records, corpus, prepare_flags, tmp_path):
    """A result that has lost _SUCCESS, what it was before, and its command."""
    kind = request.param
    result = {"summarize": extractive, "prepare": prepared_records}[kind]
    output = shutil.copytree(result, tmp_path / "out")
    (output / "_SUCCESS").unlink()
    run = {"corpus": corpus, "max_failed_share": 0.5, "task_bytes": 4_000}
    run["deduplicate"] = True
    flags = {"summarize": {**run, "min_source_words": 0}, "prepare": prepare_flags}

    def command(**changes):
        return precis(kind, output=output, **{**flags[kind], **changes})

    return output, contents(result), command


@pytest.mark.parametrize("lost", ["summarize", "prepare"], indirect=True)
@pytest.mark.parametrize(
    "kept", [None, slice(0), slice(9, None), slice(65), slice(None)]
)
def test_a_result_that_lost_success_is_made_again(lost, kept, runs, capfd):
    """By the same command, which summarizes what is damaged alone."""
    output, whole, command = lost
    content = kept and whole["_SUCCESS"][kept] + b"\n" * (kept == slice(None))
    if content is not None:
        (output / "_SUCCESS").write_bytes(content)
    assert command(task_bytes=4_001) == 2
    message = f"{output} holds a finished result with other settings: --task_bytes "
    assert message in capfd.readouterr().err
    assert contents(output).items() <= {**whole, "_SUCCESS": content}.items()
    (path,) = (*output.glob("dataset.json"), *output.glob("manifest.json"))
    described = path.read_text()
    if not (content or b"").startswith(whole["_SUCCESS"][:65]):
        path.write_text(described[:-9])
        assert command() == 1
        assert f"{path}: damaged (not JSON: " in capfd.readouterr().err
    # A changed count would be in no checksum.
    path.write_text(re.sub(r'"read": \d+', '"read": 7', described))
    first = min([*output.glob("data/*"), *output.glob("*.tfrecord")])
    is_run = first.suffix == ".parquet"
    rows = pq.read_table(first).to_pylist() if is_run else []
    first.write_bytes(first.read_bytes()[:-1])
    assert command() == 0
    lost = {row["document_id"] for row in rows if row["duplicate_of"] is None}
    # A copy of the first stands in a part that is whole.
    assert runs.inferred == sorted(lost - {"d00"})
    said = capfd.readouterr().err
    for damaged in ("_SUCCESS", first.relative_to(output)):
        assert f"{damaged} is damaged; repairing" in said
    assert contents(output) == whole


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "_tasks_of_mine/x"])
def test_a_folder_that_no_job_began_is_refused(tmp_path, name):
    files.write_bytes(str(tmp_path / name), b"mine")
    message = "is not empty and was not made by this command; name an empty or new"
    with pytest.raises(UsageError, match=message):
        begin(tmp_path)
    assert contents(tmp_path) == {name: b"mine"}
    message = "notes.txt/out cannot be written: .*; name another --output"
    if name == "notes.txt":
        with pytest.raises(UsageError, match=message):
            begin(tmp_path / name / "out")


def test_a_damaged_description_of_a_job_or_a_result_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    begin(tmp_path)
    path = tmp_path / "_tasks" / "job.json"
    # A changed digit could be one of the time at which the result is made.
    changed = path.read_bytes().replace(b"2023-11-14", b"2023-11-15")
    for content in (changed, b"[1]", b"{}", b"null", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"job.json: damaged \(.*\); name another"):
            begin(tmp_path)
    path.unlink()
    (tmp_path / "_SUCCESS").write_bytes(b"\xff")
    for content in (b"[1]", b"\xff", b'{"provenance": [1]}'):
        (tmp_path / "dataset.json").write_bytes(content)
        with pytest.raises(DataError, match=r"dataset.json: damaged \(.*\); name anot"):
            begin(tmp_path)


def test_everything_a_task_says_is_part_of_the_fingerprint():
    first = CorpusFile("/in/a", 3, "x")
    sources = (first, CorpusFile("/in/b", 4, "y"))
    fields = Fields("text", "summary", "key", "part")
    task = Task(1, "jsonl", sources, 2, 30, "test", fields, "7:9", 28)
    changes = {"start": 3, "stop": 31, "split": "train", "fields": Fields()}
    changes |= {"version": "7:10", "size_bytes": 29}
    changes |= {"files": (first, CorpusFile("/in/c", 4, "y"))}
    changed = [task, *(task._replace(**{name: changes[name]}) for name in changes)]
    assert len({hash_tasks([each]) for each in changed}) == len(changes) + 1


def test_a_moved_corpus_and_touched_files_keep_the_fingerprint():
    def hash_below(folder, stamp):
        names = ("2023/a.txt", "2024/b.txt")
        first, second = (CorpusFile(folder + name, 1, "", stamp) for name in names)
        tasks = [Task(0, "text", (first,)), Task(1, "text", (second,), version="v")]
        return hash_tasks(tasks)

    before = hash_below("/data/", "0:1")
    assert hash_below("/elsewhere/20/", "0:2") == before
    assert hash_below("gs://bucket/", "") == before


def test_source_date_epoch_must_be_a_number(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    message = "SOURCE_DATE_EPOCH is 'yesterday', but must be whole seconds since 1970"
    with pytest.raises(UsageError, match=message):
        begin(tmp_path / "out")
    assert not (tmp_path / "out").exists()
