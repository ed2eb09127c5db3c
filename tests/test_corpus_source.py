"""The --corpus syntax, splits, and options that are refused before the work."""

import hashlib
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.corpus_records import read_records

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import DeadLetter
from precis.pipelines.corpus.task_reader import split_of


@pytest.fixture
def corpus(tmp_path):
    lines = [
        json.dumps({"id": f"d{index}", "article": f"Text {index}."}) + "\n"
        for index in range(400)
    ]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    return f"jsonl:{tmp_path}/a.jsonl"


def _read(options):
    return [
        record for task in list_tasks(options) for record in read_records(task, options)
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"corpus": "xml:a"},
            (
                r"unknown corpus 'xml:a'; "
                r".*jsonl, csv, parquet, text, stories, tfds, sample$"
            ),
        ),
        ({"corpus": "news.jsonl"}, r"unknown corpus 'news.jsonl'; write scheme:where"),
        ({"corpus": "gs://bucket/a"}, r"unknown corpus 'gs://bucket/a'"),
        ({"corpus": "jsonl:"}, r"'jsonl:' says no place"),
        (
            {"corpus": "jsonl:a", "task_bytes": 0},
            r"--task_bytes must be at least 1, not 0",
        ),
        (
            {"corpus": "jsonl:a", "max_record_mb": 0},
            r"--max_record_mb must be at least 1, not 0",
        ),
        (
            {"corpus": "jsonl:a", "validation_share": 1.5},
            r"lie between 0 and 1 and add up to at most 1, not 1.5 and 0.05",
        ),
        (
            {"corpus": "jsonl:a", "test_share": -0.1},
            r"lie between 0 and 1 and add up to at most 1, not 0.05 and -0.1",
        ),
        (
            {"corpus": "jsonl:a", "validation_share": 0.6, "test_share": 0.6},
            r"add up to at most 1, not 0.6 and 0.6",
        ),
        ({"corpus": "text:a", "id_field": "x"}, r"text: has no fields to name"),
        ({"corpus": "jsonl:a", "article_field": ""}, r"--article_field is empty"),
        (
            {"corpus": "jsonl:a", "data_dir": "d"},
            r"--data_dir goes with tfds: alone, not with jsonl:a",
        ),
        (
            {"corpus": "sample:", "split": "dev"},
            r"sample: has the splits train, validation, test, not 'dev'",
        ),
        (
            {"corpus": "jsonl:a", "split": "dev"},
            r"jsonl: has the splits train, validation, test, not 'dev'",
        ),
    ],
)
def test_options_are_refused_before_any_file_is_opened(values, message):
    with pytest.raises(UsageError, match=message):
        CorpusOptions(**values)


@pytest.mark.parametrize("scheme", ["jsonl", "csv", "parquet", "text"])
def test_a_pattern_without_files_is_refused(tmp_path, scheme):
    with pytest.raises(
        UsageError,
        match=rf"no file matches {tmp_path}/\*.x \(the folder {tmp_path} exists\)",
    ):
        list_tasks(CorpusOptions(corpus=f"{scheme}:{tmp_path}/*.x"))
    with pytest.raises(
        UsageError, match=rf"no file matches .* \(there is no folder {tmp_path}/none\)"
    ):
        list_tasks(CorpusOptions(corpus=f"{scheme}:{tmp_path}/none/*"))
    with pytest.raises(
        UsageError, match=r"is a folder; name the files in it, as in .*/\*$"
    ):
        list_tasks(CorpusOptions(corpus=f"{scheme}:{tmp_path}"))
    with pytest.raises(
        UsageError, match=r"no file matches none-\*.x \(in the working directory\)"
    ):
        list_tasks(CorpusOptions(corpus=f"{scheme}:none-*.x"))


@pytest.mark.parametrize("scheme", ["jsonl", "csv"])
def test_empty_files_are_refused(tmp_path, scheme):
    (tmp_path / "a").touch()
    with pytest.raises(UsageError, match="holds no documents; its files are empty"):
        list_tasks(CorpusOptions(corpus=f"{scheme}:{tmp_path}/a"))


def test_the_hash_of_the_id_decides_the_split(corpus):
    options = CorpusOptions(corpus=corpus, validation_share=0.2, test_share=0.3)
    documents = _read(options)
    assert len(documents) == 400
    for document in documents:
        place = (
            int(
                hashlib.sha256(f"17:{document.document_id}".encode()).hexdigest()[:16],
                16,
            )
            / 2**64
        )
        assert document.split == (
            "validation" if place < 0.2 else "test" if place < 0.5 else "train"
        )
    parts = {
        split: _read(
            CorpusOptions(
                corpus=corpus, validation_share=0.2, test_share=0.3, split=split
            )
        )
        for split in ("train", "validation", "test")
    }
    assert {
        split: [d for d in documents if d.split == split] for split in parts
    } == parts
    # Five standard deviations of a binomial of 400.
    assert abs(len(parts["validation"]) - 80) < 40
    assert abs(len(parts["test"]) - 120) < 46
    other_seed = CorpusOptions(
        corpus=corpus, validation_share=0.2, test_share=0.3, seed=18
    )
    assert [d.split for d in _read(other_seed)] != [d.split for d in documents]


def test_shares_of_0_and_1():
    everything = CorpusOptions(corpus="jsonl:a", validation_share=0, test_share=1)
    nothing = CorpusOptions(corpus="jsonl:a", validation_share=0, test_share=0)
    assert {split_of(str(index), everything) for index in range(200)} == {"test"}
    assert {split_of(str(index), nothing) for index in range(200)} == {"train"}


def test_the_split_of_a_record_comes_first(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"article": "a", "part": "dev"}\n'
        '{"article": "b", "part": "x"}\n'
        '{"article": "c", "part": null}\n'
    )
    corpus = f"jsonl:{tmp_path}/a.jsonl"
    assert [
        d.split
        for d in _read(
            CorpusOptions(
                corpus=corpus, split_field="part", validation_share=1, test_share=0
            )
        )
    ] == [
        "dev",
        "x",
        "validation",
    ]
    assert [
        d.article
        for d in _read(CorpusOptions(corpus=corpus, split_field="part", split="dev"))
    ] == ["a"]


def test_the_built_in_corpus_has_tasks_and_splits():
    documents = _read(CorpusOptions(corpus="sample:1500", task_bytes=8 << 20))
    tasks = list_tasks(CorpusOptions(corpus="sample:1500", task_bytes=8 << 20))
    assert len(documents) == 1500
    assert [task.number for task in tasks] == [0, 1, 2]
    some = _read(CorpusOptions(corpus="sample:1500", split="test"))
    assert some == [d for d in documents if d.split == "test"] != []
    places = [(d.source_file, d.source_position) for d in documents]
    assert places == [("sample:", f"record {number}") for number in range(1500)]


def test_documents_of_other_splits_are_counted(corpus):
    options = CorpusOptions(corpus=corpus, split="test", test_share=0.3)
    (task,) = list_tasks(options)
    reader = read_task(task, options)
    taken = len(list(reader))
    assert taken > 0 and reader.other_split.total() > 0
    assert taken + reader.other_split.total() == reader.read.total() == 400


def test_an_article_without_text_is_given_with_its_bytes(tmp_path):
    lines = [
        b'{"article": " \\n", "id": "a"}\n',
        b'{"article": "(CNN) -- ", "highlights": "H."}\n',
    ]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "b.csv").write_bytes(b"id,article\n7,\n")
    (tmp_path / "c.txt").write_bytes(b"\n\n")
    table = pa.table({"article": ["", "Rain."], "id": [1, 2], "x": [3, 4]})
    pq.write_table(table, tmp_path / "d.parquet")
    found = []
    for corpus in ("jsonl:*.jsonl", "csv:*.csv", "text:*.txt", "parquet:*.parquet"):
        scheme, _, name = corpus.partition(":")
        options = CorpusOptions(corpus=f"{scheme}:{tmp_path}/{name}")
        for task in list_tasks(options):
            records = list(read_task(task, options))
            found += [record for record in records if isinstance(record, DeadLetter)]
    assert {letter.reason for letter in found} == {"empty_article"}
    assert [(letter.document_id, letter.raw) for letter in found] == [
        ("a", lines[0]),
        (None, lines[1]),
        ("7", b"7,\n"),
        ("c", b"\n\n"),
        ("1", b'{"article": "", "id": 1}'),
    ]
    assert [letter.source_position for letter in found] == [
        "byte 0",
        f"byte {len(lines[0])}",
        "byte 11",
        "file",
        "row group 0 row 0",
    ]


def test_heavy_modules_are_not_imported_without_need(corpus):
    script = f"""
import sys
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
options = CorpusOptions(corpus={corpus!r})
assert sum(1 for task in list_tasks(options) for _ in read_task(task, options)) == 400
heavy = ("tensorflow", "tensorflow_datasets", "pyarrow", "apache_beam")
print([name for name in heavy if name in sys.modules])
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_a_split_that_cannot_name_files_is_unreadable(tmp_path):
    path = tmp_path / "a.jsonl"
    splits = ["train", "../../escaped/evil", "/abs", "", "x" * 41, "dev_2"]
    path.write_text(
        "".join(
            json.dumps({"id": f"d{i}", "article": "A.", "s": split}) + "\n"
            for i, split in enumerate(splits)
        )
    )
    options = CorpusOptions(corpus=f"jsonl:{path}", split_field="s")
    records = _read(options)
    lines = path.read_bytes().splitlines(keepends=True)
    expected = [
        (
            "read",
            "bad_split",
            f"the split is {splits[i][:80]!r}; it names files, so it must be of at "
            "most 40 letters, digits and underscores",
            None,
            str(path),
            f"byte {sum(map(len, lines[:i]))}",
            lines[i],
        )
        for i in (1, 2, 4)
    ]
    assert [r[:7] for r in records if isinstance(r, DeadLetter)] == expected
    assert [
        record.document_id for record in records if isinstance(record, Document)
    ] == [
        "d0",
        "d3",
        "d5",
    ]
