"""Tests of `--limit` and `--sample`: which documents are taken, by hand and by another
way to draw them, and that every record of a run is still accounted for.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from support.corpus_records import place_and_reason
from support.incremental_runs import CountedRuns, line, write_corpus
from support.stage_totals import noted_stages
from support.summarize_runs import rows_of

import precis
from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus import lines as lines_module
from precis.pipelines.corpus import records as records_module
from precis.pipelines.corpus import sampling
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import FileFailure, Place, Task
from precis.pipelines.run.accounts import OUTCOMES
from precis.pipelines.run.job import hash_tasks
from precis.pipelines.summarize.summary_rows import SummaryRow

EMPTY = {"id": "empty", "article": " "}
BAD = {"id": "bad", "article": 7}


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
    assert (
        taken(corpus, limit=limit, task_bytes=task_bytes) == names(*range(30))[:limit]
    )


def test_nothing_behind_the_limit_is_read(corpus, tmp_path, monkeypatch):
    (tmp_path / "corpus" / "d.jsonl").write_text("{broken\n" * 3)
    options = CorpusOptions(corpus=corpus, limit=12, task_bytes=200)
    (task,) = list_tasks(options)
    assert task.number == 0 and len(task.files) == 4
    reader = read_task(task, options)
    opened = opened_files(monkeypatch)
    kinds = Counter(getattr(each, "reason", "document") for each in reader)
    assert kinds == {"document": 12, "empty_article": 2, "wrong_type": 2}
    assert {*opened} == {task.paths[0], task.paths[1]}
    assert reader.read.total() == 16 and reader.position == (16, 1.0)
    assert not reader.not_selected


def opened_files(monkeypatch) -> list[str]:
    """The files of which lines are read from now on."""
    opened = []
    real = lines_module.open_source
    monkeypatch.setattr(
        lines_module, "open_source", lambda path: opened.append(path) or real(path)
    )
    return opened


def test_of_a_sample_only_the_drawn_records_are_read_again(tmp_path, monkeypatch):
    texts = [f'{{"id": "{n}", "article": "{"Rain. " * 500}"}}\n' for n in range(4000)]
    (tmp_path / "a.jsonl").write_text("".join(texts))
    header, rows = "id,article\n", [f'{n},"{"Rain. " * 500}"\n' for n in range(4000)]
    (tmp_path / "a.csv").write_text(header + "".join(rows))
    parsed = []
    for scheme in ("jsonl", "csv"):
        options = CorpusOptions(corpus=f"{scheme}:{tmp_path}/a.{scheme}", sample=3)
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
    flags = {"sample": 7, "sample_seed": seed, "task_bytes": task_bytes}
    assert taken(corpus, **flags) == drawn_otherwise(records, 7, seed)
    moved = write_corpus(tmp_path / "two", {"b.jsonl": records})
    assert taken(moved, **flags) == taken(corpus, **flags)


def test_the_drawing_of_a_sample_is_shown_a_task_at_a_time(corpus):
    options = CorpusOptions(corpus=corpus, sample=5, task_bytes=200)
    with noted_stages() as stages:
        tasks = list_tasks(options)
    assert stages.ended == {"select": (len(tasks), len(tasks))} and len(tasks) > 3


def test_seeds_draw_other_documents_and_every_one_is_drawn_sometimes(corpus):
    draws = [taken(corpus, sample=6, sample_seed=seed) for seed in range(60)]
    assert {len(draw) for draw in draws} == {6}
    counts = Counter(name for draw in draws for name in draw)
    # 12 are expected of each of thirty; the bounds are 4 standard deviations away.
    assert len(counts) == 30 and 2 <= min(counts.values())
    assert max(counts.values()) <= 24


def test_a_sample_of_more_than_there_are_has_all(corpus):
    assert taken(corpus, sample=31) == names(*range(30))
    assert taken(corpus, sample=30, task_bytes=500) == names(*range(30))


@pytest.mark.parametrize("task_bytes", [1, 16 << 20])
def test_of_equal_digests_the_first_of_the_corpus_are_kept(tmp_path, task_bytes):
    """Equal documents at equal positions of two files have equal digests."""
    records = [{"article": f"Rain fell {number} times."} for number in range(9)]
    flags = {"task_bytes": task_bytes}
    alone = write_corpus(tmp_path, {"a.jsonl": records})
    (smallest,) = selected_places(alone, sample=1, **flags)
    two_smallest = selected_places(alone, sample=2, **flags)
    both = write_corpus(tmp_path, {"a.jsonl": records, "b.jsonl": records})
    again = smallest._replace(source_file=str(tmp_path / "b.jsonl"))
    # Both documents of the smallest digest, and the earlier one of the next.
    assert selected_places(both, sample=3, **flags) == [*two_smallest, again]


def selected_places(corpus, **flags) -> list[Place]:
    """The places of the documents that the tasks of a corpus take, in order."""
    options = CorpusOptions(corpus=corpus, **flags)
    return [
        Place(record.document.source_file, record.document.source_position)
        for task in list_tasks(options)
        for record in read_task(task, options)
    ]


def test_a_file_that_fails_while_documents_are_drawn_is_lost_by_name(
    corpus, monkeypatch
):
    options = CorpusOptions(corpus=corpus, sample=12)
    broken = str(Path(corpus.removeprefix("jsonl:")).parent / "a.jsonl")
    real = sampling.read_records

    def failing(task, options):
        is_broken = broken in task.paths
        yield from list(real(task, options))[: 9 if is_broken else None]
        if is_broken:
            raise FileFailure(broken, "file_unreadable", "no disk")

    with monkeypatch.context() as patch:
        patch.setattr(sampling, "read_records", failing)
        tasks = list_tasks(options)
    lost, *documents = [each for task in tasks for each in read_task(task, options)]
    assert place_and_reason(lost) == (broken, "file", "file_unreadable")
    others = CorpusOptions(corpus=corpus.replace("*", "[bc]"), sample=12)
    expected = [each for task in list_tasks(others) for each in read_task(task, others)]
    texts = {each.document.article for each in expected}
    assert {each.document.article for each in documents} <= texts


def test_what_is_selected_is_part_of_the_fingerprint(corpus):
    # The flag --limit itself is among the inputs of a job.
    flags = ({}, {"limit": 3}, {"sample": 3}, {"sample": 4})
    seeds = [{"sample": 3, "sample_seed": seed} for seed in (1, 2)]
    hashes = [
        hash_tasks(list_tasks(CorpusOptions(corpus=corpus, **each)))
        for each in (*flags, *seeds)
    ]
    assert len(set(hashes)) == len(hashes)
    # A task of all documents keeps the hash that earlier versions gave it.
    assert hash_tasks([Task(0, "sample", (), 0, 5)]) == (
        "4eeb2cad8b5330a834ef87d052577ce0c8245d44d4658a5c946785489f569c76"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"limit": -1}, "--limit must be at least 1, not -1; leave it out for all"),
        ({"sample": -2}, "--sample must be at least 1, not -2; leave it out for all"),
        ({"limit": 1, "sample": 2}, "--limit takes the first .*; leave one of them"),
    ],
)
def test_impossible_selections_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        CorpusOptions(corpus="sample:", **flags)


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return CountedRuns(monkeypatch)


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


@pytest.mark.slow
@pytest.mark.parametrize("flags", [{"limit": 12}, {"sample": 12}])
def test_workers_and_tasks_change_no_row(runs, corpus, tmp_path, flags):
    flags = {"max_failed_share": 0.2, **flags}
    runs.run(tmp_path / "one", corpus, **flags)
    runs.run(tmp_path / "two", corpus, **flags, workers=2, task_bytes=300)
    assert precis.digest(run=tmp_path / "one") == precis.digest(run=tmp_path / "two")


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
    with pytest.raises(UsageError, match="sample_seed"):
        runs.run(tmp_path / "run", corpus, sample=5, sample_seed=3, max_failed_share=0)


def test_duplicates_count_and_rows_of_earlier_runs_are_taken(runs, tmp_path):
    repeated = [line(0), line(0, id="same"), line(1), line(2), line(3)]
    corpus = write_corpus(tmp_path / "corpus", {"a.jsonl": repeated})
    first = runs.run(tmp_path / "first", corpus, limit=3)
    assert counts_of(first) == {"read": 3, "written": 2, "duplicates": 1}
    whole = runs.run(tmp_path / "whole", corpus, reuse=str(tmp_path / "first"))
    assert counts_of(whole) == {"read": 5, "written": 2, "reused": 2, "duplicates": 1}
    part = runs.run(tmp_path / "part", corpus, limit=4, reuse=str(tmp_path / "whole"))
    assert runs.inferred == []
    assert counts_of(part) == {"read": 4, "reused": 3, "duplicates": 1}


def test_failures_are_retried_within_what_is_selected(
    runs, corpus, tmp_path, monkeypatch
):
    measure = SummaryRow.measure
    lost = names(3, 8, 21)

    def fail(row):
        if row.article.document.document_id in lost:
            raise KeyError("the text")
        return measure(row)

    with monkeypatch.context() as patch:
        patch.setattr(SummaryRow, "measure", fail)
        manifest = runs.run(tmp_path / "run", corpus)
    assert manifest["counts"]["failed"] == 6 + 3
    retry = {"retry_failures": str(tmp_path / "run"), "max_empty_share": 1}
    again = runs.run(tmp_path / "again", corpus, **retry, limit=9, max_failed_share=1)
    assert runs.inferred == names(3, 8)
    assert counts_of(again) == {"read": 4, "written": 2, "empty": 1, "failed": 1}
    sample = {"sample": 20, "sample_seed": 2}
    drawn = set(lost) & set(taken(corpus, **sample))
    assert 0 < len(drawn) < 3
    sampled = runs.run(tmp_path / "drawn", corpus, **retry, **sample)
    assert runs.inferred == sorted(drawn)
    assert counts_of(sampled)["not_selected"] == 15 - len(drawn)


@pytest.mark.slow
def test_records_are_prepared_of_what_is_selected(corpus, tmp_path):
    trained = [
        json.loads(text)
        for name in "abc"
        for text in (tmp_path / "corpus" / f"{name}.jsonl").read_text().splitlines()
    ]
    for record in trained:
        record["highlights"] = f"Storm {record['id']}"
    trained[1]["highlights"] = ""  # It is a document, and no training example.
    corpus = write_corpus(tmp_path / "corpus", {"a.jsonl": trained})
    flags = {
        "corpus": corpus,
        "max_failed_share": 1,
        "vocabulary_size": 300,
        "test_share": 0,
        "validation_share": 0,
    }
    info = precis.prepare(output=tmp_path / "limited", limit=8, **flags)
    expected = {"read": 10, "written": 7, "skipped": 1, "empty": 1, "failed": 1}
    assert {name: n for name, n in info.counts.items() if n} == {
        **expected,
        "without_highlights": 1,
    }
    info = precis.prepare(output=tmp_path / "drawn", sample=8, **flags)
    assert info.counts["not_selected"] == 42 - 8
    assert info.counts["written"] + info.counts["skipped"] == 8
