"""Corpora of `hf://`, with the real client against a hub on loopback."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import contents, exit_code, precis, write_jsonl
from support.corpus_records import list_tasks, read_corpus, read_task, story
from support.processes import closed_port
from support.small_hub import GATED, LIMITED, SmallHub, small_hub, use_hub

from precis.model.errors import UsageError
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import FileError
from precis.pipelines.run.job import hash_tasks

SET = "hf://datasets/acme/news"
TOKEN = "hf_a_secret"
RUN = {"extractive": "lead", "workers": 2}


@pytest.fixture
def folder(tmp_path):
    """The files of a data set."""
    folder = tmp_path / "set"
    (folder / "data" / "deep").mkdir(parents=True)
    rows = [story(number) for number in range(24)]
    table = pa.Table.from_pylist(rows[:20])
    pq.write_table(table, folder / "data" / "train-0.parquet", row_group_size=5)
    pq.write_table(table.slice(0, 3), folder / "data" / "test-0.parquet")
    write_jsonl(folder / "data" / "a b#1%20.jsonl", rows[20:22])
    write_jsonl(folder / "data" / "b.jsonl", rows[22:])
    for name in ("x.txt", "y@1.txt", "deep/z.txt"):
        (folder / "data" / name).write_text(f"News of {name}. All is well.")
    (folder / "README.md").write_text("A set.")
    return folder


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    """A hub with one commit of the set as `main` and as `refs/convert/parquet`."""
    with small_hub() as server:
        use_hub(monkeypatch, server.url, tmp_path)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        for branch in ("main", "refs/convert/parquet"):
            server.push("datasets/acme/news", folder, branch)
        yield server


def _push(hub: SmallHub, folder: Path, number: int, changed: str) -> str:
    """Pushes a copy of the set in which one file is longer; returns the commit."""
    copy = shutil.copytree(folder, folder.with_name(f"set{number}"))
    with open(copy / changed, "a") as file:
        file.write('{"id": "new", "article": "News. All is well."}\n')
    return hub.push("datasets/acme/news", copy)


def test_the_documents_are_those_of_the_files_at_the_commit(hub, folder):
    for address, revision in (
        ("parquet:data/train-*.parquet", "@refs%2Fconvert%2Fparquet"),
        ("parquet:data/t*-?.parquet", "@refs/convert/parquet"),
        ("jsonl:data/*.jsonl", "@main"),
        *(("jsonl:data/b.jsonl", ""), ("text:data/*.txt", "")),
        ("text:data/**/*.txt", "@main"),
    ):
        scheme, _, pattern = address.partition(":")
        _, expected = read_corpus(f"{scheme}:{folder}/{pattern}")
        at_commit = f"{SET}@{hub.refs['datasets/acme/news']['main']}"
        for _ in range(2):
            tasks, documents = read_corpus(f"{scheme}:{SET}{revision}/{pattern}")
            assert expected and documents == [
                each._replace(
                    source_file=each.source_file.replace(str(folder), at_commit)
                )
                for each in expected
            ]
        assert {task.where for task in tasks} == {f"{at_commit}/{pattern}"}


def test_a_file_of_many_tasks_is_downloaded_once(hub: SmallHub, tmp_path):
    name = "train-0.parquet"
    corpus = f"parquet:{SET}@main/data/{name}"
    for output in ("first", "again"):
        hub.requests.clear()
        run = tmp_path / output
        flags = {"corpus": corpus, "output": run, "task_bytes": 2000, **RUN}
        assert precis("summarize", **flags) == 0
        # A redirect leads there; only the footer is asked for as a range.
        whole = re.findall(f"^GET /lfs/.*{name}$", "\n".join(hub.requests), re.M)
        assert len(whole) == (output == "first")
    manifest = json.loads((run / "manifest.json").read_text())
    commit = hub.refs["datasets/acme/news"]["main"]
    assert len(manifest["files"]) == 4
    recorded = manifest["provenance"]["flags"]["corpus"]
    assert recorded == corpus.replace("@main", f"@{commit}")
    assert list(manifest["sources"]) == [f"{SET}@{commit}/data/{name}"]
    assert not any(TOKEN.encode() in content for content in contents(run).values())


def test_a_job_keeps_its_commit_unless_its_files_changed(
    hub: SmallHub, folder, tmp_path, capsys
):
    (folder / "data" / "bad.jsonl").write_text("no JSON\n")
    first = hub.push("datasets/acme/news", folder)
    run, corpus = tmp_path / "run", f"jsonl:{SET}/data/b*.jsonl"
    flags = {"corpus": corpus, "output": run, **RUN}
    assert precis("summarize", **flags) == 1
    _push(hub, folder, 2, changed="README.md")
    assert precis("summarize", **flags, max_failed_share=1) == 0
    manifest = json.loads((run / "manifest.json").read_text())
    at_first = f"{SET}@{first}/data"
    assert [*manifest["sources"]] == [f"{at_first}/b.jsonl", f"{at_first}/bad.jsonl"]
    # The corpus is found by its branch, and by the commit of the manifest.
    for named in (corpus, manifest["provenance"]["flags"]["corpus"]):
        assert exit_code("verify", str(run), "--corpus", named) == 0
    _push(hub, folder, 3, changed="README.md")
    assert precis("summarize", **flags, max_failed_share=1) == 0
    capsys.readouterr()
    last = _push(hub, folder, 4, changed="data/b.jsonl")
    assert precis("summarize", **flags) == 2
    message = rf"other settings: --corpus jsonl:\S+@{first}/\S+ there, \S+@{last}/"
    assert re.search(message, capsys.readouterr().err)
    other = tmp_path / "2"
    reused = {**flags, "output": other, "reuse": run, "max_failed_share": 1}
    assert precis("summarize", **reused) == 0
    counts = json.loads((other / "manifest.json").read_text())["counts"]
    assert (counts["reused"], counts["written"]) == (2, 1)


def test_files_are_identified_by_content(hub: SmallHub, folder):
    options = CorpusOptions(corpus=f"text:{SET}/data/x.txt,text:{folder}/README.md")
    before = hash_tasks(list_tasks(options))
    _push(hub, folder, 2, changed="data/y@1.txt")
    assert hash_tasks(list_tasks(options)) == before
    copy = shutil.copytree(folder, folder.with_name("set3"))
    (copy / "data" / "x.txt").write_text("News of y.txt. All is well.")
    hub.push("datasets/acme/news", copy)
    assert hash_tasks(list_tasks(options)) != before


WAYS = "correct the name, or request access on its page and set HF_TOKEN"


def test_what_the_hub_does_not_give_is_refused_at_the_start(hub, folder):
    for address, message in (
        ("acme/none/a", f"404 .*; {WAYS}"),
        ("acme/gated/a", f"403 .*; {WAYS}"),
        ("acme/busy/a", "429 .*; check HF_TOKEN, or run the same command again later"),
        ("acme/news@v9/a", "404 .*; name a branch, a tag or a commit"),
        ("acme", "Repository id must be .*; write hf://datasets/ORG/NAME/PATH, or"),
    ):
        hub.push("datasets/acme/gated", folder)
        hub.refusals = {"datasets/acme/gated": GATED, "datasets/acme/busy": LIMITED}
        path = f"hf://datasets/{address}"
        with pytest.raises(UsageError, match=f"^{path}: .*{message}") as refusal:
            read_corpus(f"text:{path}")
        assert "\n" not in str(refusal.value) and TOKEN not in str(refusal.value)
        assert not [each for each in hub.requests if re.search("GET.*/resolve/", each)]


def test_other_paths_that_cannot_be_read_are_refused_at_the_start(
    hub: SmallHub, capsys
):
    for path, message in (
        (f"{SET}/dat/*.txt", "no file matches .*@.* .there is no folder .*/dat"),
        ("hf://buckets/acme/b/a", "a bucket has no commits; write hf://datasets/"),
        (f"hf://me:{TOKEN}@huggingface.co/x", r"hf://\*\*\*@.*remove the credentials"),
    ):
        with pytest.raises(UsageError, match=message):
            read_corpus(f"text:{path}")
    for command in ("summarize", "prepare"):
        flags = {"corpus": f"text:{SET}/data/*.txt", "output": f"{SET}/out"}
        assert precis(command, **flags) == 2
        assert "only reads from the hub; name another place" in capsys.readouterr().err
    program = "import sys; sys.modules['huggingface_hub'] = None; "
    program += f"from precis.model import files; files.exists('{SET}/a')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert re.search(rb"UsageError: hf://.* pip install .*\[train\]", done.stderr)


def test_a_hub_that_cannot_be_reached(hub: SmallHub, tmp_path, monkeypatch):
    from huggingface_hub import constants

    with closed_port() as port:
        use_hub(monkeypatch, f"http://127.0.0.1:{port}", tmp_path)
        with pytest.raises(UsageError, match="refused.*; check the network and HF_HUB"):
            read_corpus(f"text:{SET}/data/*.txt")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="offline.*or download the files once with"):
        read_corpus(f"text:{SET}/data/*.txt")


def test_a_file_that_is_withdrawn_fails_its_task_only(hub: SmallHub):
    options = CorpusOptions(corpus=f"text:{SET}/data/*.txt", task_bytes=1)
    tasks = list_tasks(options)
    assert len(list(read_task(tasks[0], options))) == 1
    hub.refusals = {"datasets/acme/news": GATED}
    assert len(list(read_task(tasks[0], options))) == 1
    with pytest.raises(FileError, match="can no longer be read: 403 .*; correct") as e:
        list(read_task(tasks[1], options))
    assert e.value.letter.retryable
