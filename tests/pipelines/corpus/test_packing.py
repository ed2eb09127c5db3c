"""Several tasks as one: what they read is what the tasks read, in the same order."""

from pathlib import Path

import pytest
from support.corpus_records import read_records

from precis.pipelines.corpus.corpus import list_tasks, pack_tasks
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import FileError
from precis.pipelines.run.job import hash_tasks


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
