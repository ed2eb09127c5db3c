"""Tests of what `precis doctor` says of corpora, bundles and records, and of the ten
documents that it takes.
"""

import json
import shutil

import pytest
from support.command_line import write_jsonl
from support.doctor_runs import request_of, run_check, the_problem

from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.doctor.models import check_bundle, check_records
from precis.pipelines.doctor.sample import Sample, check_corpus

TEXT = "Rain fell on Oslo on Monday. The mayor closed forty streets of the city. " * 3


def story(number, **changes):
    return {"id": f"d{number}", "article": f"{number} {TEXT}", **changes}


def look(command="summarize", **flags):
    """The findings of a corpus, and the sample."""
    return run_check(check_corpus(request_of(command, output="out", **flags)))


def read(sample, corpus):
    """What the tasks of a sample read."""
    options = CorpusOptions(corpus=corpus)
    return [
        record.document.document_id
        for task in sample.trial
        for record in read_task(task, options)
    ]


def test_ten_documents_are_taken_from_the_first_tasks(tmp_path):
    corpus = write_jsonl(tmp_path / "a.jsonl", map(story, range(200)))
    findings, sample = look(corpus=corpus, task_bytes=1000)
    assert [finding.level for finding in findings] == ["ok", "ok"]
    assert len(sample.tasks) > 20 and 1 < len(sample.trial) < len(sample.tasks)
    assert read(sample, corpus) == [f"d{number}" for number in range(10)]
    assert [task.number for task in sample.trial] == list(range(len(sample.trial)))
    assert sample.documents == pytest.approx(200, rel=0.15)
    assert findings[0].found.startswith("1 file, ")
    assert findings[1].found == (
        "10 documents read: half of them have 43 words or more; highlights in 0"
    )


def test_documents_of_one_split_are_taken_and_counted(tmp_path):
    corpus = write_jsonl(tmp_path / "a.jsonl", map(story, range(400)))
    findings, sample = look(corpus=corpus, split="test", test_share=0.1)
    assert {article.document.split for article in sample.articles} == {"test"}
    assert len(read(sample, corpus)) == 10
    assert sample.documents < 100


def test_a_small_corpus_is_taken_whole(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"{number} {TEXT}")
    findings, sample = look(corpus=f"text:{tmp_path}/*.txt")
    assert len(sample.articles) == 3
    assert "3 files" in findings[0].found


def test_a_corpus_without_the_field_is_refused(tmp_path):
    corpus = write_jsonl(tmp_path / "a.jsonl", map(story, range(3)))
    with pytest.raises(UsageError, match="have no field 'body'|'body'") as raised:
        look(corpus=corpus, article_field="body")
    assert "article" in str(raised.value)


def test_a_field_that_holds_titles_is_a_warning(tmp_path):
    corpus = write_jsonl(tmp_path / "a.jsonl", map(story, range(3)))
    findings, _ = look(corpus=corpus, article_field="id")
    assert findings[1].level == "warning"
    advice = "check that --article_field names the text and not a title"
    assert findings[1].advice == advice


def test_records_that_are_no_documents_are_reported(tmp_path):
    lines = [story(0), "{broken", story(1), {"id": "e", "article": " "}, story(2)]
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)
    (_, faults, _), sample = look(corpus=corpus)
    assert faults.level == "warning"
    assert faults.found.startswith(
        "of the first 5 records, 2 are no documents (invalid_json 1, empty_article 1); "
        f"{tmp_path / 'a.jsonl'}, byte "
    )
    assert "--max_failed_share 0.01" in faults.advice
    assert len(sample.articles) == 3


def test_a_corpus_of_nothing_but_faults_is_a_problem(tmp_path):
    corpus = write_jsonl(tmp_path / "a.jsonl", [story(0, article=" ")] * 4)
    findings, sample = look(corpus=corpus)
    assert sample is None
    assert [finding.level for finding in findings] == ["ok", "problem", "problem"]
    assert findings[2].found == "none of the first 4 records is a document"
    assert findings[2].advice == "check --article_field and --split"


def test_a_split_without_documents_is_a_problem(tmp_path):
    lines = [story(number, part="train") for number in range(1500)]
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)
    findings, sample = look(corpus=corpus, split="dev", split_field="part")
    assert sample is None
    assert the_problem(findings).found == (
        "none of the first 1,500 records is a document of the split dev"
    )


@pytest.mark.parametrize(
    ("command", "flags", "what"),
    [
        ("prepare", {}, "--target highlights"),
        ("summarize", {"extractive": "lead,oracle"}, "--extractive oracle"),
    ],
)
def test_references_that_are_needed_and_missing_are_a_problem(
    command, flags, what, tmp_path
):
    corpus = write_jsonl(tmp_path / "a.jsonl", map(story, range(3)))
    findings, _ = look(command, corpus=corpus, **flags)
    problem = the_problem(findings)
    assert problem.found.endswith(f"highlights in 0, which {what} needs")
    assert problem.advice == "name their field with --highlights_field"


def test_a_corpus_that_holds_the_output_is_refused(tmp_path):
    corpus = write_jsonl(tmp_path / "a.jsonl", [story(0)])
    for command in ("prepare", "summarize"):
        request = request_of(command, corpus=corpus, output=str(tmp_path))
        with pytest.raises(UsageError, match="lies in --output"):
            list(check_corpus(request))


def test_an_empty_sample_has_no_documents():
    assert Sample([], [], [], 0).documents == 0


def test_reading_ends_behind_the_last_record_that_a_task_names(tmp_path):
    """The line after that is read, and nothing behind it."""
    lines = [*map(story, range(10)), story(10), *["{broken"] * 5]
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)
    _, sample = look(corpus=corpus)
    (task,) = sample.trial
    reader = read_task(task, CorpusOptions(corpus=corpus))
    assert sum(isinstance(record, Article) for record in reader) == 10
    (whole,) = list_tasks(CorpusOptions(corpus=corpus))
    everything = read_task(whole, CorpusOptions(corpus=corpus))
    assert sum(getattr(record, "records", 1) for record in everything) == 16
    assert reader.read.total() == 10


# Bundles and records.


def test_a_bundle_as_it_was_written_has_no_finding(bundle):
    (finding,) = check_bundle(str(bundle))
    assert finding.level == "ok"
    assert finding.found.startswith(f"{bundle}: abstractive model ")


def test_an_edited_bundle_is_a_problem(bundle, tmp_path):
    folder = shutil.copytree(bundle, tmp_path / "bundle")
    weights = folder / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    problem = the_problem(check_bundle(str(folder)))
    assert problem.found.startswith(f"{folder}: weights.safetensors: ")
    assert "checksum differs" in problem.found
    assert problem.advice == "copy the bundle again or train it again"


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(UsageError, match="this is no complete bundle"):
        list(check_bundle(str(tmp_path)))


def test_records_are_opened_and_ten_examples_are_read(records_folder):
    request = request_of("train", records=records_folder, output="b")
    (finding,) = check_records(request)
    assert finding.level == "ok"
    assert finding.found.endswith("train 60, validation 12; 10 examples read")


def test_damaged_records_and_those_without_labels_are_refused(copy_records, tmp_path):
    folder = copy_records(tmp_path / "records")
    request = request_of("train-extractor", records=folder, output="b")
    with pytest.raises(UsageError, match="these records hold no oracle labels"):
        list(check_records(request))
    shard = sorted((tmp_path / "records").glob("train-*.tfrecord"))[0]
    shard.write_bytes(shard.read_bytes()[:100])
    request = request_of("train", records=folder, output="b")
    with pytest.raises(Exception, match="the file ends within a record"):
        list(check_records(request))


def test_records_without_a_training_example_are_a_problem(copy_records, tmp_path):
    folder = copy_records(tmp_path / "records")
    path = tmp_path / "records" / "dataset.json"
    described = json.loads(path.read_text())
    del described["splits"]["train"]
    path.write_text(json.dumps(described))
    request = request_of("train", records=folder, output="b")
    problem = the_problem(check_records(request))
    assert "has no training example: validation 12" in problem.found
