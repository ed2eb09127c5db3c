"""Tests of summaries whose requests a server answers in batches."""

import json
import os
import signal
import subprocess
import sys

import pytest
from support.batch_server import BatchServer
from support.chat_server import ChatServer, completion
from support.command_line import command_words, exit_code, precis, write_jsonl
from support.summarize_runs import manifest_of, rows_of, settings_of

from precis.model.errors import DataError, JobError, Unfinished, UsageError
from precis.pipelines.summarize.summarize import summarize

LONG = {"text": "This story " + "goes on and on and " * 5 + "ends."}


@pytest.fixture
def flags(tmp_path):
    """Ten stories in three tasks, and a run of them."""
    rain = "Rain fell on the coast all day. " * 5
    texts = [f"Story {n} begins. {rain}" for n in range(10)]
    records = [{"id": f"d{n}", "article": text} for n, text in enumerate(texts)]
    corpus = write_jsonl(tmp_path / "stories.jsonl", records)
    flags = {"corpus": corpus, "output": tmp_path / "run", "request_timeout": 1.0}
    return {**flags, "max_words": 9, "sentences": 1, "task_bytes": 800}


def test_batches_are_asked_until_every_document_has_an_answer(flags, tmp_path, capfd):
    faults = {1: [LONG, {"text": "So it goes."}], 2: [500, 503], 4: [400]}
    faults |= {3: ["expired", "missing"], 5: [500, 500, 500], 6: [LONG, 500]}
    calls = {"POST files": [429, 429], "POST batches": ["cut"], "GET batches": [503]}
    server = BatchServer(faults, calls=calls, statuses=("completed", "expired"))
    with server.serve() as bundle:
        assert precis("summarize", bundle=bundle, max_failed_share=0.3, **flags) == 0
    said = capfd.readouterr()
    rows = {row["document_id"]: row for row in rows_of(tmp_path / "run")}
    assert {*rows} == {f"d{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9)}
    asked_again = {1: 2, 2: 3, 3: 3, 5: 3, 6: 3}
    assert server.asked == dict.fromkeys(range(10), 1) | asked_again
    assert rows["d1"]["summary"] == "So it goes."
    assert rows["d1"]["written_tokens"] == 10 and rows["d1"]["prompt_tokens"] == 80
    manifest = manifest_of(tmp_path / "run")
    assert manifest["bundle"] == bundle and manifest["batches"] == [*server.batches]
    assert manifest["failures"] == {"search/http_500": 1, "search/refused": 1}
    assert " is expired; its requests without an answer are submitted" in said.err
    assert exit_code("verify", str(tmp_path / "run")) == 0
    assert not [*tmp_path.rglob("*batches*")]


@pytest.mark.slow
def test_a_command_killed_at_each_step_submits_no_request_twice(flags, tmp_path):
    steps = [
        *(("POST files", False), ("POST files", True), ("POST batches", False)),
        *(("POST batches", True), ("GET batches/", True), ("GET files/", True)),
    ] * 2  # The second round asks again what is too long.
    del steps[6]  # Nothing is left to upload before the first round is loaded.
    killed = []

    def kill(call, is_done):
        if steps and call.startswith(steps[0][0]) and is_done == steps[0][1]:
            killed.append(steps.pop(0))
            os.killpg(process.pid, signal.SIGKILL)
            return True

    server = BatchServer({1: [LONG], 2: [LONG]}, on_call=kill)
    with server.serve() as bundle:
        words = command_words("summarize", bundle=bundle, **flags)
        codes = []
        while not codes or (codes[-1] == -9 and len(codes) < 20):
            process = subprocess.Popen(
                [sys.executable, "-m", "precis", *words], start_new_session=True
            )
            codes.append(process.wait(timeout=120))
    assert codes == [-9] * 11 + [0] and len(killed) == 11
    asked = dict.fromkeys(range(10), 1) | {1: 2, 2: 2}
    assert server.asked == asked and len(server.batches) == 2
    assert len(rows_of(tmp_path / "run")) == 10


def test_a_run_goes_on_where_batches_are_lost_or_refused(flags, tmp_path, capfd):
    statuses = ("lost", "cancelled", "failed", "failed", "completed")
    server = BatchServer({}, statuses=statuses)
    with server.serve() as bundle:
        flags |= {"bundle": bundle, "batch_requests": 5}
        with pytest.raises(Unfinished, match="submitted: 5 .*; run the same command"):
            summarize(submit_only=True, **flags)
        with pytest.raises(JobError, match="none of its 5 .*end; correct the cause"):
            summarize(**flags)
        # The cause is corrected by smaller batches. While one goes on, the others may
        # fail.
        summarize(**{**flags, "batch_requests": 2})
    said = capfd.readouterr().err
    assert "is lost; its requests" in said and "is cancelled; its requests" in said
    assert [server.size(each) for each in server.batches] == [5, 5, 5, 2, 2, 1, 2]
    assert len(rows_of(tmp_path / "run")) == 10
    assert sorted(server.asked.values()) == [1] * 5 + [2] * 5


def test_a_batch_that_may_exist_is_never_created_again(flags, tmp_path):
    calls = {"POST batches": ["cut"], "GET batches": [200, *[405] * 2]}
    server = BatchServer({}, calls=calls)
    server.calls["GET batches"][0] = None
    message = "batch of .*00000.jsonl was .*HTTP 405.*add its .id.*, otherwise remove"
    with server.serve() as bundle:
        for _ in range(2):
            with pytest.raises(JobError, match=message):
                summarize(bundle=bundle, **flags)
        summarize(bundle=bundle, **flags)  # It lists them now.
    assert server.asked == dict.fromkeys(range(10), 1)


def test_requests_are_answered_by_hand(flags, tmp_path, capfd):
    asked, answers = tmp_path / "asked", tmp_path / "answers"
    flags |= {"bundle": "openai-batch://127.0.0.1:9/v1#tiny/model", "batch_requests": 4}
    with pytest.raises(Unfinished, match="wrote 10 requests .*; have them answered"):
        summarize(requests_to=asked, **flags)
    with pytest.raises(UsageError, match="--requests_to .*asked: .*; name another"):
        summarize(requests_to=asked, **flags)
    with pytest.raises(UsageError, match="--answers_from .*answers: it holds no file"):
        summarize(answers_from=answers, **flags)
    lines = [json.loads(line) for file in asked.glob("*") for line in open(file)]
    made = []
    for line in lines[1:]:
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        story = int(line["body"]["messages"][0]["content"].partition("Story ")[2][0])
        response = {"status_code": 200, "request_id": "r", "body": completion(story)}
        made.append({"id": "r", "custom_id": line["custom_id"], "response": response})
    # As vLLM writes a failure.
    failed = {"status_code": 400, "request_id": "r", "body": None}
    made[3] |= {"response": failed, "error": {"message": "bad", "code": 400}}
    write_jsonl(answers / "a.jsonl", [*made[:5], b"{broken", *lines])
    write_jsonl(answers / "b.jsonl", made[5:])
    with pytest.raises(Unfinished, match="wrote 1 req.* add the answers to .*answers"):
        summarize(answers_from=answers, requests_to=tmp_path / "more", **flags)
    with pytest.raises(DataError, match="no_answer 1.*to retry 1 of them"):
        summarize(answers_from=answers, **flags)
    said = capfd.readouterr().err
    assert "holds no answer to 1 requests; add --requests_to to write them" in said
    assert "a.jsonl: 11 of its lines are not the answers of a batch, and were" in said
    summarize(answers_from=answers, max_failed_share=0.2, **flags)
    assert len(rows_of(tmp_path / "run")) == 8


def test_what_cannot_ask_in_batches_is_refused(flags, tmp_path):
    server = ChatServer({3: [{"text": "..."}]})
    batch = {"bundle": "openai-batch://127.0.0.1:9/v1#tiny/model"}
    for given, message in (
        (batch, "only `precis summarize` of a corpus asks in batches; write openai://"),
        ({"bundle": "openai-batch://h"}, "asks in batches; write openai"),
    ):
        with pytest.raises(UsageError, match=message):
            settings_of(**given)
    for given, message in (
        ({"beam_args": ["--runner", "PrismRunner"]}, "PrismRunner .*; leave --runner"),
        ({"requests": 2}, "`requests=2` has no effect where .* writes; leave it out"),
        ({"submit_only": True, "requests_to": "x"}, "without; leave one of them out$"),
        (
            {"bundle": "openai://h#m", "submit_only": True},
            "no effect where an endpoint",
        ),
        ({"bundle": "openai-batch://h"}, "openai-batch://... asks in batches"),
    ):
        with pytest.raises(UsageError, match=message):
            summarize(**flags, **{**batch, **given})
    with pytest.raises(JobError, match="takes no batches: no answer .ConnectError"):
        summarize(**flags, **batch)
    with server.serve() as bundle, pytest.raises(DataError, match="empty_answer 1"):
        summarize(bundle=bundle, **flags)  # The other way goes on with the same run.
    with BatchServer({}).serve() as bundle:  # And back.
        summarize(bundle=bundle, **flags, max_failed_share=0.2)
    assert len(rows_of(tmp_path / "run")) == 9
