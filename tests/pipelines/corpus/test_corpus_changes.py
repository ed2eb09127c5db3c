"""Files that change between the listing of a corpus and its reading."""

import os
import pickle
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from support.command_line import error_lines, precis
from support.corpus_records import read_corpus
from support.prepared import scan_corpus
from support.run_invariants import read_dead_letters
from support.summarize_runs import manifest_of

from precis.model.errors import DataError
from precis.pipelines.corpus import opening
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import FileError
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.run import job
from precis.pipelines.run.job import hash_tasks
from precis.pipelines.transforms.beam_transforms import ReadCorpus


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"article": "one"}\n{"article": "two"}\n')
    return path


def listed(path):
    options = CorpusOptions(corpus=f"jsonl:{path}")
    (task,) = list_tasks(options)
    return task, options


def cut(path):
    path.write_bytes(path.read_bytes()[:25])


def edit(path):
    """Keeps the size and the time of the file."""
    status = path.stat()
    path.write_text(path.read_text().replace("two", "TWO"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_a_fifo(path):
    path.unlink()
    os.mkfifo(path)


def test_a_touch_changes_nothing_and_an_edited_byte_does(path):
    before, options = listed(path)
    os.utime(path, ns=(1, 2))
    assert hash_tasks([listed(path)[0]]) == hash_tasks([before])
    assert len(list(read_task(before, options))) == 2
    edit(path)
    edited = listed(path)[0]
    assert edited.size_bytes == before.size_bytes
    assert hash_tasks([edited]) != hash_tasks([before])


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (cut, "it has 25 bytes, but had 38 when the corpus was listed"),
        (edit, "its content changed after the corpus was listed"),
        (os.remove, "it can no longer be read: No such file or directory"),
        (replace_by_a_fifo, "it was replaced by something that is not a file"),
    ],
)
@pytest.mark.parametrize("is_read", [False, True])
def test_a_changed_file_fails_its_task(path, change, detail, is_read):
    task, options = listed(path)
    records = iter(read_task(task, options))
    if is_read:
        next(records)
    change(path)
    with pytest.raises(FileError, match=f"^{path}: {detail}") as failure:
        list(records)
    letter = failure.value.letter
    assert (letter.source_file, letter.reason) == (str(path), "file_changed")
    assert letter.retryable and letter.source_position == "file"
    copy = pickle.loads(pickle.dumps(failure.value))
    assert (str(copy), vars(copy)) == (str(failure.value), vars(failure.value))


def test_the_failure_of_one_of_many_files_says_so(tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("text")
    options = CorpusOptions(corpus=f"text:{tmp_path}/*")
    (task,) = list_tasks(options)
    # The file is there when the task begins and gone when its turn comes.
    records = iter(read_task(task, options))
    next(records)
    monkeypatch.setattr(opening, "_local_change", lambda file: "")
    (tmp_path / "b.txt").unlink()
    with pytest.raises(FileError, match="b.txt: it cannot be read: No such file"):
        list(records)

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("precis.pipelines.corpus.text_files.open_source", fail)
    message = r"a.txt: it cannot be read \(or one of the 2 files after it\)"
    with pytest.raises(FileError, match=message):
        list(read_task(task, options))


def test_a_defect_of_a_reader_is_no_failure_of_the_file(path, monkeypatch):
    task, options = listed(path)

    def fail(*_, **__):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("precis.pipelines.corpus.jsonl.read_lines", fail)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        list(read_task(task, options))
    cut(path)
    with pytest.raises(FileError, match="it has 25 bytes"):
        list(read_task(task, options))


def test_an_object_that_is_replaced_or_removed_fails_its_task():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/changes/a.jsonl": b'{"article": "one"}\n', "/changes/b": b""})
    try:
        options = CorpusOptions(corpus="jsonl:memory://changes/*")
        (task,), records = read_corpus(options.corpus)
        assert len(records) == 1
        memory.pipe("/changes/a.jsonl", b'{"article": "ONE"}\n')
        with pytest.raises(FileError, match="a.jsonl: its content changed after"):
            list(read_task(task, options))
        memory.rm("/changes/a.jsonl")
        with pytest.raises(FileError, match="a.jsonl: it was removed after the corp"):
            list(read_task(task, options))
    finally:
        memory.rm("/changes", recursive=True)


def test_an_object_counts_by_the_best_that_its_store_has():
    names = ("md5Hash", "etag", "generation", "updated")
    for number, name in enumerate(names):
        info = {"size": 3} | {other: other for other in names[number:]}
        assert opening.object_version(info) == f"3:{name}"
    assert opening.object_version({"size": 3}) == "3:"


TEXT = "The council met on Monday. It voted for a new bridge over the river."


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(TEXT + name)
    return folder


def summarize(texts: Path, output: Path, **flags: Any) -> int:
    flags |= {"extractive": "lead", "min_source_words": 0}
    return precis("summarize", corpus=f"text:{texts}/*.txt", output=output, **flags)


def ids(output: Path) -> list[str]:
    return sorted(pq.read_table(output / "data")["document_id"].to_pylist())


@pytest.fixture
def change_after_listing(monkeypatch):
    """A function that takes what is to happen between listing and reading."""

    def set_change(change):
        def change_and_open(*arguments, **keywords):
            change()
            monkeypatch.undo()
            return job.open_job(*arguments, **keywords)

        monkeypatch.setattr("precis.pipelines.run.job.open_job", change_and_open)

    return set_change


def test_a_changed_file_is_a_failed_task_that_the_same_command_tries_again(
    texts, tmp_path, change_after_listing, capsys
):
    output = tmp_path / "run"
    edited = (TEXT + "b.txt").replace("Monday", "Friday")
    change_after_listing(lambda: (texts / "b.txt").write_text(edited))
    assert summarize(texts, output, task_bytes=1) == 1
    (line,) = error_lines(capsys.readouterr().err, "summarize")
    assert "1 file(s) changed after the corpus was listed, so an unknown" in line
    (letter,) = read_dead_letters(output)
    assert (letter["stage"], letter["reason"]) == ("read", "file_changed")
    assert letter["source_file"] == f"{texts}/b.txt"
    assert not (output / "_SUCCESS").exists()
    receipts = sorted(path.name for path in (output / "_tasks" / "summarize").iterdir())
    assert receipts == ["00000.json", "00002.json"]
    assert ids(output) == ["a", "c"]
    (texts / "b.txt").write_text(TEXT + "b.txt")
    assert summarize(texts, output, task_bytes=1) == 0
    assert ids(output) == ["a", "b", "c"]
    assert read_dead_letters(output) == []


def test_the_scan_of_prepare_needs_every_file(texts, tmp_path):
    options = CorpusOptions(corpus=f"text:{texts}/*.txt")
    tasks = list_tasks(options)
    (texts / "b.txt").write_text("other")
    with pytest.raises(
        DataError, match="b.txt: it has 5 bytes, but .*; run the comman"
    ):
        scan_corpus(tasks, options, PrepareOptions(output=str(tmp_path / "none")))


def test_the_transform_sends_a_dead_letter_of_a_changed_file(texts):
    corpus = ReadCorpus(f"text:{texts}/*.txt", task_bytes=1)
    with test_pipeline.TestPipeline("FnApiRunner") as pipeline:
        result = pipeline | corpus
        (texts / "b.txt").unlink()
        ids = result.documents | "Ids" >> beam.Map(lambda each: each.document_id)
        assert_that(ids, equal_to(["a", "c"]), label="ids")
        lost = result.dead_letters | beam.Map(
            lambda each: (each.reason, each.source_file)
        )
        expected = [("file_changed", f"{texts}/b.txt")]
        assert_that(lost, equal_to(expected), label="dead_letters")


def test_files_that_are_read_together_with_a_changed_one_are_counted(
    texts, tmp_path, change_after_listing
):
    output = tmp_path / "run"
    change_after_listing(lambda: (texts / "b.txt").unlink())
    assert summarize(texts, output, max_failed_share=1) == 0
    counts = manifest_of(output)["counts"]
    assert (counts["read"], counts["failed"], counts["written"]) == (3, 3, 0)
    details = {
        each["source_file"]: each["detail"] for each in read_dead_letters(output)
    }
    assert set(details) == {f"{texts}/{name}.txt" for name in "abc"}
    assert details[f"{texts}/a.txt"].startswith("it was read in one task with ")
