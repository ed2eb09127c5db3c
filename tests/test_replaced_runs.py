"""Tests of runs that replace their own earlier result, and of results that are
repaired: whatever interrupts them, the same command ends as an undisturbed one.
"""

import shutil

import pyarrow.parquet as pq
import pytest
from support.command_line import contents, write_jsonl
from support.incremental_runs import (
    CountedRuns,
    article,
    check_accounts,
    line,
    write_corpus,
)
from support.summarize_runs import rows_of

from precis.model.errors import DataError, JobError
from precis.pipelines.run import job
from precis.pipelines.run.result_files import damaged_files, read_success
from precis.pipelines.summarize import summarize
from precis.pipelines.summarize.equal_texts import JoinWorker
from precis.pipelines.summarize.known_documents import CopyWorker
from precis.pipelines.summarize.summarize_task import SummarizeWorker

# Each test takes several whole runs.
pytestmark = pytest.mark.slow

OLD = {
    "a.jsonl": [line(number) for number in range(30)],
    "b.jsonl": ["{broken", line(4, id="copy"), line(90), {"id": "e", "article": ""}],
}
NEW = {
    "a.jsonl": [line(number) for number in range(25)],
    "b.jsonl": ["{broken", line(40), line(41), line(2, id="copy"), line(90)],
}


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return CountedRuns(monkeypatch)


@pytest.fixture(scope="module")
def generations(tmp_path_factory):
    """A result, and what it is after it was replaced; the folder of both."""
    folder = tmp_path_factory.mktemp("generations")
    out = folder / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        runs = CountedRuns(patch)
        corpus = write_corpus(folder / "corpus", OLD)
        manifest = runs.run(out, corpus, reuse=out)
        assert len(manifest["files"]) >= 3 and len(runs.inferred) == 31
        old = contents(out)
        write_corpus(folder / "corpus", NEW)
        manifest = runs.run(out, corpus, reuse=out)
        assert runs.inferred == ["d040", "d041"]
        assert manifest["counts"]["reused"] == 26
        new = contents(out)
    assert not [name for name in old if name in new and old[name] == new[name]]
    assert {row["document_id"] for row in rows_of(out)} == {
        *(line["id"] for line in NEW["a.jsonl"]),
        *("d040", "d041", "copy", "d090"),
    }
    check_accounts(out, {f"{folder}/corpus/{name}": len(NEW[name]) for name in NEW})
    return folder, old, new


def restore(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def is_whole(folder):
    success = read_success(str(folder))
    return success is not None and not damaged_files(str(folder), "summaries", success)


class Killed(BaseException):
    """The end of a process, which no `except Exception` sees."""


def kill(patch, owner, step, *, after=0):
    """Ends the process where a step is called, or called again."""
    real = getattr(owner, step)
    calls = []

    def end(*arguments, **named):
        calls.append(step)
        if len(calls) > after:
            raise Killed
        return real(*arguments, **named)

    patch.setattr(owner, step, end)


def observe(patch, owner, step, check):
    """Checks what a kill would leave where a step is called."""
    real = getattr(owner, step)

    def observed(*arguments, **named):
        check()
        return real(*arguments, **named)

    patch.setattr(owner, step, observed)


def test_a_result_is_whole_until_it_is_replaced(generations, runs, monkeypatch):
    folder, old, new = generations
    out, corpus = folder / "out", f"jsonl:{folder}/corpus/*.jsonl"
    restore(out, old)
    checked = []

    def check_old():
        checked.append(is_whole(out) and contents(out).items() >= old.items())

    with monkeypatch.context() as patch:
        for worker in (JoinWorker, SummarizeWorker):
            observe(patch, worker, "run", check_old)
        kill(patch, CopyWorker, "run")
        with pytest.raises((Killed, JobError)):
            runs.run(out, corpus, reuse=out)
    assert runs.inferred == ["d040", "d041"]
    assert is_whole(out) and contents(out).items() >= old.items()
    with monkeypatch.context() as patch:
        observe(patch, job, "check_failures", check_old)
        observe(patch, job, "publish_result", check_old)
        kill(patch, job, "finish_job")
        with pytest.raises(Killed):
            runs.run(out, corpus, reuse=out)
    assert len(checked) >= 5 and all(checked)
    # The manifest is that of the new result, and _SUCCESS is still to be written.
    assert read_success(str(out)) is None and runs.inferred == []
    with monkeypatch.context() as patch:
        kill(patch, job, "_clear_up")
        with pytest.raises(Killed):
            runs.run(out, corpus, reuse=out)
    assert is_whole(out) and contents(out).items() >= {**old, **new}.items()
    runs.run(out, corpus, reuse=out)
    assert runs.inferred == [] and contents(out) == new


def test_a_run_that_fails_leaves_the_result_that_it_would_replace(generations, runs):
    folder, old, _ = generations
    out, corpus = folder / "out", f"jsonl:{folder}/corpus/*.jsonl"
    restore(out, old)
    with pytest.raises(DataError, match="1 of 30 records failed"):
        runs.run(out, corpus, reuse=out, max_failed_share=0.0)
    assert is_whole(out) and contents(out).items() >= old.items()


def test_a_damaged_result_is_repaired_by_its_command(
    tmp_path, runs, monkeypatch, capsys
):
    """Later, and with the very bytes that it had."""
    out = tmp_path / "out"
    lines = {
        "a.jsonl": [*[line(number) for number in range(40)], line(2, id="copy")],
        "b.jsonl": ["{broken", {"id": "e", "article": ""}, line(3, id="other")],
        "c.jsonl": [line(number, article=article(1)) for number in (90, 91)],
    }
    corpus = write_corpus(tmp_path / "corpus", lines)
    manifest = runs.run(out, corpus)
    whole = contents(out)
    assert len(manifest["files"]) >= 4 and len(runs.inferred) == 40
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    first, second, *_ = [out / file["file"] for file in manifest["files"]]
    lost = [
        row["document_id"]
        for path in (first, second)
        for row in pq.read_table(path).to_pylist()
        if row["duplicate_of"] is None
    ]
    first.unlink()
    second.write_bytes(whole[f"data/{second.name}"][:-9] + b"\0" * 9)
    (letters,) = (out / "dead_letters").iterdir()
    letters.write_bytes(letters.read_bytes()[:-1])
    capsys.readouterr()
    assert runs.run(out, corpus) == manifest
    assert contents(out) == whole
    # Copies of three texts stand in parts that are whole.
    assert runs.inferred == sorted({*lost} - {"d001", "d002", "d003"})
    said = capsys.readouterr().err
    for path in (first, second, letters):
        name = path.relative_to(out)
        assert f"precis summarize: {name} is damaged; repairing" in said.splitlines()
    (out / "manifest.json").write_bytes(whole["manifest.json"].replace(b"40", b"41"))
    runs.run(out, corpus)
    assert contents(out).keys() == whole.keys()
    again = {name: content for name, content in contents(out).items() if "/" in name}
    assert again == {name: whole[name] for name in again} and len(again) >= 5


def test_an_interrupted_replacement_gives_way_to_the_next_one(tmp_path, monkeypatch):
    path = tmp_path / "news.jsonl"
    output = tmp_path / "run"
    flags = {"output": output, "reuse": str(output), "min_source_words": 0}

    def run(*articles):
        lines = [{"id": f"d{n}", "article": text} for n, text in enumerate(articles)]
        return summarize.summarize(corpus=write_jsonl(path, lines), **flags)

    # The first night finds no earlier result.
    assert run("Rain fell.")["counts"]["written"] == 1

    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("precis.pipelines.run.job.check_failures", fail)
        with pytest.raises(OSError, match="Input/output"):
            run("Rain fell.", "Snow fell.")
    counts = run("Rain fell.", "Hail fell.")["counts"]
    assert (counts["written"], counts["reused"]) == (1, 1)
    (part,) = (output / "data").iterdir()
    assert pq.read_metadata(part).num_rows == 2
