"""What one answer of a server with the chat protocol of OpenAI means."""

import json
import math
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.chat_server import ChatServer, completion

from precis.model.bundle.address import parse_address
from precis.model.inference.chat_client import ChatClient
from precis.model.isolation import Failure


class Hasty(threading.Event):
    """Waits a tenth of the time."""

    def wait(self, timeout=None):
        return super().wait(timeout and timeout / 10)


def asked(*faults, journal="", prompt="Story 0"):
    """What a client makes of the answers to a prompt, and the server."""
    server = ChatServer({0: [*faults]})
    with server.serve() as bundle:
        client = ChatClient(parse_address(bundle)[0], {"model": "m"}, 1, 1.0, journal)
        client.closing = Hasty()
        return client.ask(prompt), server


ENDS = [
    # of OpenAI, TGI, Together, Anthropic, Cohere and DashScope, in this order
    *((None, True), ("stop", True), ("eos_token", True), ("eos", True)),
    *(("end_turn", True), ("stop_sequence", True), ("COMPLETE", True)),
    *(("null", True), ("", True), ("STOP", True)),
    *(("length", False), ("max_tokens", False), ("MAX_TOKENS", False)),
    *(("model_length", False), ("model_context_window_exceeded", False)),
    *(("time_limit", False), ("tool_calls", False), ("new", False), (7, False)),
]


@pytest.mark.parametrize(("reason", "is_finished"), ENDS)
def test_an_answer_is_whole_where_the_reason_of_its_end_says_so(reason, is_finished):
    answer, server = asked({"finish_reason": reason})
    assert answer.summary.is_finished == is_finished and server.asked[0] == 1


BROKEN_OFF = [
    *("error", "abort", "network_error", "insufficient_system_resource"),
    *("cancelled", "ERROR", "timeout"),
]


@pytest.mark.parametrize("reason", BROKEN_OFF)
def test_an_answer_that_the_server_broke_off_is_asked_again(reason):
    broken = {"text": "The council appro", "finish_reason": reason}
    answer, server = asked(broken, broken)
    assert answer.summary.text == "Story 0 is short. It has 0 lines."
    assert server.asked[0] == 3
    failure, _ = asked(broken, ...)
    beside = "the server answers other requests"
    assert failure.detail == f"the server broke off the answer: '{reason}'; {beside}"
    assert failure.retryable and failure.reason == "cut_answer"


@pytest.mark.parametrize(
    "reason", ["CONTENT_FILTER", "content_filtered", "SAFETY", "RECITATION", "refusal"]
)
def test_an_answer_that_a_filter_holds_back_is_not_asked_again(reason):
    failure, server = asked({"finish_reason": reason}, ...)
    assert failure == (
        "search",
        "content_filter",
        "the server withheld the answer",
        None,
    )
    assert not failure.retryable and server.asked.total() == 1


OVERLOADED = {"code": 502, "message": "the model is down"}


ERRORS = [
    ({"error": OVERLOADED}, "http_502"),  # as OpenRouter writes it
    ({"choices": [{"error": OVERLOADED, "message": {}}]}, "http_502"),
    ({"error": "the model is down"}, "http_502"),
    ({"object": "error", "message": "the model is down", "code": 503}, "http_503"),
    ({"error": {"code": "400", "message": "the model is down"}}, "refused"),
]


@pytest.mark.parametrize(("body", "reason"), ERRORS)
def test_an_error_that_comes_with_200_is_the_error_that_it_names(body, reason):
    failure, _ = asked((200, body), ...)
    assert "the model is down" in failure.detail and failure.reason == reason
    assert failure.retryable == (reason != "refused")
    assert asked((200, {"error": None} | completion(0)))[0].written_tokens == 5


def test_an_early_request_that_is_refused_with_200_is_sent_again():
    early = {"code": 429, "message": "slow down"}, {"type": "rate_limit_exceeded"}
    answer, server = asked(*[(200, {"error": each}) for each in early * 4])
    assert answer.written_tokens == 5 and server.asked[0] == 9  # More than 6 failures.


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503])
def test_what_another_try_may_not_meet_is_retryable(status):
    assert Failure("search", f"http_{status}", "").retryable
    assert not Failure("search", "http_403", "").retryable


@pytest.mark.parametrize("count", [10**30, 2**31, -1, math.nan, "many", None, [5]])
def test_a_count_of_tokens_that_cannot_be_is_unknown(count):
    usage = {"prompt_tokens": 2**31 - 1, "completion_tokens": count}
    answer, _ = asked((200, completion(0) | {"usage": usage}))
    assert (answer.prompt_tokens, answer.written_tokens) == (2**31 - 1, 0)
    assert asked((200, completion(0) | {"usage": [count]}))[0].prompt_tokens == 0


def test_equal_requests_at_the_same_time_are_sent_once():
    server = ChatServer({})
    with server.serve() as bundle, ThreadPoolExecutor(12) as threads:
        client = ChatClient(parse_address(bundle)[0], {"model": "m"}, 12, 5.0, "")
        prompts = [f"Story {number % 10}" for number in range(36)]
        answers = list(threads.map(client.ask, prompts))
    assert [answers[n].summary.text.split(".")[0] for n in (3, 23)] == [
        "Story 3 is short"
    ] * 2
    assert server.paid.total() == 10
    server = ChatServer({0: [(500, {}), ...]})
    with server.serve() as bundle, ThreadPoolExecutor(12) as threads:
        client = ChatClient(parse_address(bundle)[0], {"model": "m"}, 12, 1.0, "")
        asked = [threads.submit(client.ask, "Story 0") for _ in range(12)]
        assert {each.result().reason for each in asked} == {"http_500"}
    assert server.asked[0] == 6  # They share the failure of one.


SAID = [
    # of TGI and Gemini; of LocalAI behind a gateway, Groq, and a proxy
    (422, "`inputs` tokens + `max_new_tokens` must be <= 4096", "too_long"),
    (400, "The input token count exceeds the maximum number", "too_long"),
    (504, "context deadline exceeded", "http_504"),
    (500, "context canceled", "http_500"),
    (503, "the service for auth tokens is down", "http_503"),
]


@pytest.mark.parametrize(("status", "said", "reason"), SAID)
def test_only_what_a_server_says_of_long_prompts_is_too_long(status, said, reason):
    failure, _ = asked((status, {"error": said}), ...)
    assert said in failure.detail and failure.reason == reason


def test_an_answer_of_the_journal_that_cannot_be_read_is_asked_again(tmp_path):
    journal = str(tmp_path / "answers.sqlite")
    for kept in ("{", "[[1]]", "7"):
        assert asked(journal=journal)[1].asked[0] == (kept == "{")
        with sqlite3.connect(journal) as database:
            database.execute("UPDATE answers SET answer = ?", (kept,))
        assert asked(journal=journal)[1].asked[0] == 1


def listed(*tokens):
    return {"content": [{"token": each, "logprob": value} for each, value in tokens]}


MESSAGES = [
    # As llama.cpp lists them: thoughts, the content, and the end as "".
    ({"content": "Rain fell.", "reasoning_content": "Rain."}, -0.5),
    ({"content": "<think>Rain.</think>\n\nRain fell."}, -0.5),
    ({"content": "Rain.</think>\n\nRain fell.<|im_end|>"}, -0.5),
    ({"content": "Sun shone.", "reasoning_content": "Rain."}, None),
    ({"content": "Sun shone.", "reasoning_content": None}, -33 / 8),
]


@pytest.mark.parametrize(("message", "mean"), MESSAGES)
def test_log_probabilities_are_those_of_the_content(message, mean):
    thoughts = ("<think>", -9), ("Rain", -8), (".", -7), ("</think>\n\n", -7)
    content = ("Rain", -0.25), (" fell", -0.5), (".", -1), ("", -0.25)
    logprobs = listed(*thoughts, *content)
    summary = asked({"message": message, "logprobs": logprobs})[0].summary
    assert (
        summary.mean_log_prob == pytest.approx(mean, nan_ok=True)
        if mean
        else (math.isnan(summary.score))
    )
    if mean == -0.5:
        assert summary.score == -0.5 and summary.min_log_prob == -1
    bad = json.loads(json.dumps(logprobs).replace("-0.25", '"low"'))
    assert math.isnan(asked({"logprobs": bad})[0].summary.score)
