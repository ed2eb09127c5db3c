"""Whole jobs whose files cannot be read, or change after the corpus was listed."""

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from support.command_line import error_lines, precis
from support.prepared import scan_corpus

from precis.model.errors import DataError
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.run import job
from precis.pipelines.transforms.beam_transforms import ReadCorpus

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


def dead_letters(output: Path) -> list[dict[str, Any]]:
    parts = sorted((output / "dead_letters").glob("*"))
    return [letter for part in parts for letter in read_dead_letters(str(part))]


def ids(output: Path) -> list[str]:
    rows = pq.read_table(output / "data", columns=["document_id"]).to_pylist()
    return sorted(row["document_id"] for row in rows)


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
    (letter,) = dead_letters(output)
    assert (letter["stage"], letter["reason"]) == ("read", "file_changed")
    assert letter["source_file"] == f"{texts}/b.txt"
    assert not (output / "_SUCCESS").exists()
    receipts = sorted(path.name for path in (output / "_tasks" / "summarize").iterdir())
    assert receipts == ["00000.json", "00002.json"]
    assert ids(output) == ["a", "c"]
    (texts / "b.txt").write_text(TEXT + "b.txt")
    assert summarize(texts, output, task_bytes=1) == 0
    assert ids(output) == ["a", "b", "c"]
    assert dead_letters(output) == []


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
    counts = json.loads((output / "manifest.json").read_bytes())["counts"]
    assert (counts["read"], counts["failed"], counts["written"]) == (3, 3, 0)
    details = {each["source_file"]: each["detail"] for each in dead_letters(output)}
    assert set(details) == {f"{texts}/{name}.txt" for name in "abc"}
    assert details[f"{texts}/a.txt"].startswith("it was read in one task with ")
