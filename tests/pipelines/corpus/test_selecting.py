"""Tests of `--limit` and `--sample`: which documents are taken, by hand and by another
way to draw them, and that every record of a run is still accounted for.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator

import pytest
from support.incremental_runs import line, write_corpus
from support.summarize_runs import rows_of

import precis
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import LISTENER, StageGroup
from precis.model.text.article import Article
from precis.pipelines.corpus import corpus as corpus_tasks
from precis.pipelines.corpus import records as records_module
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import FileError, unread_file
from precis.pipelines.run.accounts import OUTCOMES
from precis.pipelines.run.job import hash_tasks

EMPTY = {"id": "empty", "article": " "}
BAD = {"id": "bad", "article": 7}


class NotedStages:
    """Notes the stages that end.

    Attributes:
      ended: the name of a stage -> what was done of it, and its total.
    """

    def __init__(self) -> None:
        self.ended: dict[str, tuple[int, int | None]] = {}
        self._open: list[StageGroup] = []

    def begin(self, group: StageGroup) -> None:
        """Notes that stages begin."""
        self._open.append(group)

    def end(self, *, is_done: bool) -> None:
        """Notes how far the stages that began last have come."""
        group = self._open.pop()
        assert is_done
        for each, counts in zip(group.stages, group.counts(), strict=True):
            self.ended[each.name] = (counts.documents, each.total)

    def say(self, text: str) -> None:
        """Ignores a message."""


@contextlib.contextmanager
def noted_stages() -> Iterator[NotedStages]:
    """Notes the stages of the block."""
    noted = NotedStages()
    token = LISTENER.set(noted)
    yield noted
    LISTENER.reset(token)


def lines(numbers) -> list:
    """Documents, with an empty one and a bad record before each fifth."""
    return [
        record
        for number in numbers
        for record in ([EMPTY, BAD] * (number % 5 == 4) + [line(number)])
    ]


@pytest.fixture
def corpus(tmp_path):
    """Thirty documents in three files, with six empty ones and six bad records."""
    files = {
        f"{name}.jsonl": lines(range(10 * part, 10 * part + 10))
        for part, name in enumerate("abc")
    }
    return write_corpus(tmp_path / "corpus", files)


def taken(corpus, **flags) -> list[str]:
    """The ids of the documents that the tasks of a corpus take, in order."""
    options = CorpusOptions(corpus=corpus, **flags)
    return [
        record.document.document_id
        for task in list_tasks(options)
        for record in read_task(task, options)
        if isinstance(record, Article)
    ]


def names(*numbers) -> list[str]:
    return [f"d{number:03}" for number in numbers]


@pytest.mark.parametrize("limit", [1, 9, 10, 11, 30, 99])
@pytest.mark.parametrize("task_bytes", [150, 16 << 20])
def test_the_first_documents_are_taken_however_tasks_are_cut(corpus, limit, task_bytes):
    first = taken(corpus, limit=limit, task_bytes=task_bytes)
    assert first == names(*range(30))[:limit]


def test_of_a_sample_only_the_drawn_records_are_read_again(tmp_path, monkeypatch):
    texts = [f'{{"id": "{n}", "article": "{"Rain. " * 500}"}}\n' for n in range(4000)]
    (tmp_path / "a.jsonl").write_text("".join(texts))
    header, rows = "id,article\n", [f'{n},"{"Rain. " * 500}"\n' for n in range(4000)]
    (tmp_path / "a.csv").write_text(header + "".join(rows))
    parsed = []
    for scheme in ("jsonl", "csv"):
        options = CorpusOptions(
            corpus=f"{scheme}:{tmp_path}/a.{scheme}", sample=3, keep_fields="id"
        )
        (task,) = list_tasks(options)
        with monkeypatch.context() as patch:
            patch.setattr(records_module, "kept_values", lambda *a: parsed.append(a))
            assert len(list(read_task(task, options))) == 3
    assert len(parsed) == 6


def test_the_limit_counts_documents_of_the_split(tmp_path):
    parts = ["train", "test", "test"]
    split = [line(number, part=parts[number % 3]) for number in range(12)]
    corpus = write_corpus(tmp_path, {"a.jsonl": split})
    flags = {"split_field": "part", "split": "train"}
    assert taken(corpus, limit=2, **flags) == names(0, 3)
    assert set(taken(corpus, sample=3, **flags)) < set(names(0, 3, 6, 9))
    assert len(taken(corpus, sample=3, **flags)) == 3


def drawn_otherwise(records, count, seed) -> list[str]:
    """The ids of a sample of one file, drawn by sorting digests of all documents."""
    start = 0
    keyed = []
    for record in records:
        key = f"{seed}\nbyte {start}\n{record['id']}".encode()
        if record not in (EMPTY, BAD):
            digest = hashlib.blake2b(key, digest_size=8).hexdigest()
            keyed.append((digest, record["id"]))
        start += len(json.dumps(record)) + 1
    return sorted(name for _, name in sorted(keyed)[:count])


@pytest.mark.parametrize("seed", [17, 18])
@pytest.mark.parametrize("task_bytes", [150, 16 << 20])
def test_a_sample_has_the_smallest_digests_however_tasks_are_cut(
    tmp_path, seed, task_bytes
):
    records = lines(range(40))
    corpus = write_corpus(tmp_path / "one", {"a.jsonl": records})
    flags = {"sample": 7, "seed": seed, "task_bytes": task_bytes}
    assert taken(corpus, **flags) == drawn_otherwise(records, 7, seed)
    moved = write_corpus(tmp_path / "two", {"b.jsonl": records})
    assert taken(moved, **flags) == taken(corpus, **flags)


def test_a_file_that_fails_while_documents_are_drawn_ends_the_command(
    corpus, monkeypatch
):
    def failing(task, options):
        raise FileError(unread_file(*task.paths, "file_unreadable", "no disk"))

    monkeypatch.setattr(corpus_tasks, "read_records", failing)
    with pytest.raises(DataError, match="a.jsonl: no disk; --sample reads every"):
        list_tasks(CorpusOptions(corpus=corpus, sample=12))


def test_what_is_selected_is_part_of_the_fingerprint(corpus):
    # The flag --limit itself is among the inputs of a job.
    flags = ({}, {"limit": 3}, {"sample": 3}, {"sample": 4})
    seeds = [{"sample": 3, "seed": seed} for seed in (1, 2)]
    hashes = [
        hash_tasks(list_tasks(CorpusOptions(corpus=corpus, **each)))
        for each in (*flags, *seeds)
    ]
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"limit": -1}, "`limit=` must not be negative, but is -1; 0 reads all"),
        ({"sample": -2}, "`sample=` must not be negative, but is -2; 0 reads all"),
        ({"limit": 1, "sample": 2}, "--limit reads the first .*; leave one of them"),
    ],
)
def test_impossible_selections_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        CorpusOptions(corpus="sample:", **flags)


def counts_of(manifest) -> dict[str, int]:
    """The counts that are not zero; what was read is the sum of all outcomes."""
    counts = manifest["counts"]
    assert counts["read"] == sum(counts[name] for name in OUTCOMES)
    return {name: counts[name] for name in ("read", *OUTCOMES) if counts[name]}


def test_a_limited_run_ends_with_the_last_document(runs, corpus, tmp_path):
    """Of a corpus with more bad records than the default allows."""
    flags = {"max_failed_share": 0.2, "limit": 12}
    manifest = runs.run(tmp_path / "run", corpus, **flags)
    expected = {"read": 16, "written": 12, "empty": 2, "failed": 2}
    assert counts_of(manifest) == expected
    assert [row["document_id"] for row in rows_of(tmp_path / "run")] == (
        names(*range(12))
    )
    assert manifest["provenance"]["flags"]["limit"] == 12
    assert precis.verify(folder=tmp_path / "run", corpus=corpus).findings == []


def test_a_sampled_run_counts_what_it_leaves_out(runs, corpus, tmp_path):
    manifest = runs.run(tmp_path / "run", corpus, sample=5, max_failed_share=0)
    expected = {"read": 42, "written": 5, "not_selected": 37}
    assert counts_of(manifest) == expected
    drawn = [row["document_id"] for row in rows_of(tmp_path / "run")]
    assert drawn == taken(corpus, sample=5) and len(drawn) == 5
    with noted_stages() as stages:
        found = precis.verify(folder=tmp_path / "run", corpus=corpus)
    assert found.findings == [] and stages.ended["compare"] == (42, 42)
    # The same command finds its finished run, and another sample is refused.
    runs.run(tmp_path / "run", corpus, sample=5, max_failed_share=0)
    assert runs.inferred == []
    with pytest.raises(UsageError, match="seed"):
        runs.run(tmp_path / "run", corpus, sample=5, seed=3, max_failed_share=0)
