"""The --corpus syntax, splits, refused options, packed tasks, the built-in corpus."""

import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.corpus_records import parted, read_corpus, read_records

from precis.model.errors import UsageError
from precis.pipelines.corpus.corpus import list_tasks, pack_tasks
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample import generator
from precis.pipelines.corpus.task import FileError
from precis.pipelines.run.job import hash_tasks

SHARES = "must be from 0 to 1 and add up to at most 1, not"
SPLITS = "has the splits .*, test, not 'dev'; if .*, name it with --split_field"


def test_options_are_refused_before_any_file_is_opened():
    for corpus, flags, message in (
        ("xml:a", {}, "unknown corpus 'xml:a'; .*jsonl, csv, parquet, arr.*ple$"),
        ("news.jsonl", {}, r"did you mean 'jsonl:news.jsonl'\? write SCHEME:WHERE"),
        ("gs://bucket/a", {}, "unknown corpus 'gs://bucket/a'"),
        ("jsonl:", {}, "'jsonl:' does not say where"),
        ("jsonl:a", {"task_bytes": 0}, "`task_bytes=` must be at least 1, not 0"),
        ("jsonl:a", {"max_record_mb": 0}, "`max_record_mb=` must be at least 1, not 0"),
        ("jsonl:a", {"validation_share": 1.5}, f"{SHARES} 1.5 and 0.05"),
        ("jsonl:a", {"test_share": -0.1}, f"{SHARES} 0.05 and -0.1"),
        ("jsonl:a", {"validation_share": 0.6, "test_share": 0.6}, f"{SHARES} 0.6 and"),
        ("jsonl:a", {"language": "de-AT"}, "not 'de-AT'; did you mean de"),
        ("text:a", {"id_field": "x"}, "text: has no fields; flags such as "),
        ("sample:", {"keep_fields": "x"}, "--article_field are for jsonl, csv, parq"),
        ("jsonl:a", {"data_dir": "d"}, "--data_dir is only for tfds:, not for js"),
        ("sample:", {"split": "dev"}, f"^sample: {SPLITS}"),
        ("jsonl:a", {"split": "dev"}, f"jsonl:a {SPLITS}"),
    ):
        with pytest.raises(UsageError, match=message):
            CorpusOptions(corpus=corpus, **flags)


def test_a_pattern_without_files_is_refused(tmp_path):
    for where, message in (
        ("{}/*.x", r"no file matches {}/\*.x \(the folder {} exists\)"),
        ("{}/none/*", r"no file matches .* \(there is no folder {}/none\)"),
        ("{}", r"no name in the folder {} ends in .*; name the files, such as {}/\*$"),
        ("none-*.x", r"no file matches none-\*.x \(in the working directory\)"),
    ):
        for scheme in ("jsonl", "text"):
            with pytest.raises(UsageError, match=message.format(*[tmp_path] * 2)):
                read_corpus(f"{scheme}:{where.format(tmp_path)}")


def test_the_hash_of_the_id_decides_the_split(tmp_path):
    lines = [{"id": f"d{index}", "article": f"Text {index}."} for index in range(400)]
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)

    def read(**flags):
        shares = {"validation_share": 0.2, "test_share": 0.3}
        return read_corpus(corpus, **shares, **flags)[1]

    documents = read()
    for document in documents:
        digest = hashlib.sha256(f"17:{document.document_id}".encode()).hexdigest()
        place = int(digest[:16], 16) / 2**64
        expected = "validation" if place < 0.2 else "test" if place < 0.5 else "train"
        assert document.split == expected
    for split, count in (("train", 200), ("validation", 80), ("test", 120)):
        part = [document for document in documents if document.split == split]
        assert read(split=split) == part
        assert abs(len(part) - count) < 50  # five standard deviations of a binomial
    assert [d.split for d in read(seed=18)] != [d.split for d in documents]


def test_an_article_without_text_is_given_with_its_bytes(tmp_path):
    lines = [b'{"article": " \\n", "id": "a"}\n', b'{"article": "(CNN) -- "}\n']
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "b.csv").write_bytes(b"id,article\n7,\n")
    (tmp_path / "c.txt").write_bytes(b"\n\n")
    table = pa.table({"article": ["", "Rain."], "id": [1, 2], "x": [3, 4]})
    pq.write_table(table, tmp_path / "d.parquet")
    names = "jsonl:{}/a.jsonl", "csv:{}/b.csv", "text:{}/*.txt", "parquet:{}/d.parquet"
    _, found = parted(read_corpus(",".join(names).format(*[tmp_path] * 4))[1])
    assert {letter.reason for letter in found} == {"empty_article"}
    assert [(each.document_id, each.source_position, each.raw) for each in found] == [
        ("a", "byte 0", lines[0]),
        (None, f"byte {len(lines[0])}", lines[1]),
        ("7", "byte 11", b"7,\n"),
        ("c", "file", b"\n\n"),
        ("1", "row group 0 row 0", b'{"article": "", "id": 1}'),
    ]


def test_a_split_that_cannot_name_files_is_unreadable(tmp_path):
    splits = ["train", "../../escaped/evil", "/abs", "", "x" * 41, "dev_2"]
    lines = ({"id": f"d{i}", "article": "A.", "s": s} for i, s in enumerate(splits))
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)
    flags = {"split_field": "s", "validation_share": 1, "test_share": 0}
    documents, lost = parted(read_corpus(corpus, **flags)[1])
    assert {letter.reason for letter in lost} == {"bad_split"}
    why = "at most 40 letters, digits and underscores, because files are named after it"
    for letter, split in zip(lost, [splits[1], splits[2], splits[4]], strict=True):
        assert letter.detail == f"the split is {split[:80]!r}, but must be {why}"
        assert json.loads(letter.raw)["s"] == split
    # The split of a record comes first, and the hash decides where it has none.
    splits = {document.document_id: document.split for document in documents}
    assert splits == {"d0": "train", "d3": "validation", "d5": "dev_2"}
    flags["split"] = "dev_2"
    *_, only = read_corpus(corpus, **flags)[1]
    assert only == documents[-1]


@pytest.fixture
def lines(tmp_path: Path) -> CorpusOptions:
    """Sixty files of two documents."""
    line = '{{"id": "{0}-{1}", "article": "Text {0} {1}."}}\n'
    for number in range(60):
        path = tmp_path / f"{number:02d}.jsonl"
        path.write_text(line.format(number, "a") + line.format(number, "b"))
    return CorpusOptions(corpus=f"jsonl:{tmp_path}/*.jsonl")


def ids(tasks, options):
    return [
        record.document_id for task in tasks for record in read_records(task, options)
    ]


def test_many_tasks_become_about_as_many_as_there_may_be(lines):
    tasks = list_tasks(lines)
    assert pack_tasks(tasks, most=60) == tasks and len(tasks) == 60
    packed = pack_tasks(tasks, most=7)
    assert 7 <= len(packed) <= 9
    assert ids(packed, lines) == [f"{n}-{part}" for n in range(60) for part in "ab"]
    files = [file for task in packed for file in task.files]
    assert files == [file for task in tasks for file in task.files]
    sizes = [sum(task.size_bytes for task in each) for each in (packed, tasks)]
    assert sizes[0] == sizes[1]


def test_tasks_of_other_splits_and_unreadable_files_are_not_joined(tmp_path, lines):
    (tmp_path / "zz.jsonl").symlink_to("nothing")
    *readable, unreadable = list_tasks(lines)
    marked = [task._replace(split="test") for task in readable[:2]]
    packed = pack_tasks([*marked, *readable[2:], unreadable], most=1)
    assert [task.split for task in packed] == ["test", "", ""]
    assert [len(task.files) for task in packed] == [2, 58, 1]
    assert packed[-1].scheme == "unreadable"


def test_the_hash_of_a_job_and_a_change_tell_pieces_apart(lines, tmp_path):
    packed = pack_tasks(list_tasks(lines), most=7)
    before = hash_tasks(packed)
    assert before == hash_tasks(pack_tasks(list_tasks(lines), most=7))
    assert before != hash_tasks(list_tasks(lines))
    (tmp_path / "01.jsonl").write_text('{"id": "1-a", "article": "Text 1 c."}\n')
    assert before != hash_tasks(pack_tasks(list_tasks(lines), most=7))
    with pytest.raises(FileError, match=r"01\.jsonl: it has \d+ bytes, but had"):
        ids(packed[:1], lines)


# sha256 over ids, articles and highlights of documents 0 to 999, which have every
# sentence of stories.json. Changes with VERSION only.
GOLDEN_SHA256 = "adc84ce195f5677a52959ba48ef4a8b1a1ccdf6fe4284a2583aa0e9cc5f9c7fa"


def test_documents_are_the_golden_ones():
    digest = hashlib.sha256()
    for index in range(1000):
        document = generator.document(index)
        for text in (document.document_id, document.article, document.highlights):
            digest.update(f"{text}\n".encode())
    assert digest.hexdigest() == GOLDEN_SHA256


def test_task_boundaries_change_nothing():
    tasks, documents = read_corpus("sample:100", task_bytes=7 << 14)
    assert [(task.start, task.stop) for task in tasks[-2:]] == [(91, 98), (98, 100)]
    assert documents == read_corpus("sample:100")[1]
    assert [d.document_id for d in documents] == [f"sample-{n:06d}" for n in range(100)]


@pytest.mark.parametrize("spec", ["0", "-5", "1.5", "many", "20000:test", "٣"])
def test_a_bad_size_is_refused(spec):
    message = f"sample:{re.escape(spec)}: .* is not a positive whole number"
    with pytest.raises(UsageError, match=message):
        generator.list_tasks(spec, CorpusOptions(corpus="sample:"))
