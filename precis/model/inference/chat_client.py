"""Requests to a server with the chat protocol of OpenAI.

    429                               retried for minutes
    5xx, a time-out, a cut answer     retried a few times, the last time with no other
                                      request running
    400, 401, 403, 404 and such       not retried

The wait before a retry doubles each time, and is at least `Retry-After`. When a request
is given up, a small test request is sent. If the server answers it, the document fails;
if not, the job fails. Answers are kept in a journal while a job runs, so that no answer
is paid for twice.
"""

import contextlib
import email.utils
import json
import math
import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import IO, Any, NamedTuple

import httpx2

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.model.inference.batches import SEARCH
from precis.model.inference.summarizer import Summary
from precis.model.isolation import TOO_LONG, Failure, ResultT
from precis.model.quality.flags import REFUSAL
from precis.model.text.answer import answer_text

_KEY_VARIABLE = "OPENAI_API_KEY"
_TRIES = 6
# Tries of the test request.
_CHECKS = 3
# A request is given up if the server has answered only 429 for longer than this, or
# asks for a longer pause.
_PATIENCE_SECONDS = 300.0
_LONGEST_PAUSE_SECONDS = 20.0
_MOST_BYTES = 1 << 24  # of a response
# Kinds of `finish_reason`: a filter withheld the answer; the server broke it off, so a
# retry may help; or it is whole. Others mean a length limit, or are unknown.
_WITHHELD = re.compile("filter|safety|recit|block|prohib|spii|sensit|guard|refus|tox")
_BROKEN = re.compile("error|abort|cancel|time_?out|resource|fail|interrupt|overload")
_WHOLE = re.compile("|none|null|normal|(?:stop|eos|end_|complete|finish).*")
# Error messages of servers about a prompt that is too long.
_TOO_LONG = re.compile(
    "(?i)HTTP 413|HTTP 4(?!29).*token|context(?! deadline| cancel)|too (?:long|large)"
)
# A message of a server is dropped if it quotes this many consecutive characters of a
# request.
_QUOTED_CHARACTERS = 30
# The reason of the failure if a filter of the server withholds an answer.
_HELD_BACK = "content_filter"


class Answer(NamedTuple):
    """The answer of a server; takes the place of a hypothesis.

    Attributes:
      summary: the unchanged answer; its log-probabilities are NaN if the server gives
        none.
      prompt_tokens, written_tokens: token counts of the server; 0 if it gives none.
      seconds: the time from the request to the answer.
    """

    summary: Summary
    prompt_tokens: int
    written_tokens: int
    seconds: float

    @property
    def tokens(self) -> range:
        """Placeholders for the written tokens, as a server gives only their number."""
        return range(self.written_tokens)


class ChatClient:
    """Sends requests; thread-safe.

    Attributes:
      url: the address of the server, up to `/v1`.
      requests: the maximum number of requests at once.
      closing: set when no further request may begin.
    """

    def __init__(
        self,
        url: str,
        parameters: Mapping[str, Any],
        requests: int,
        timeout: float,
        journal: str,
    ) -> None:
        """Connects to nothing yet.

        Args:
          url: the address of the server, up to `/v1`.
          parameters: the fields of each request besides its messages.
          requests: the maximum number of requests at once.
          timeout: the time-out of a request in seconds.
          journal: the SQLite file that keeps the answers; "" is a temporary one.

        Raises:
          UsageError: the key in the environment is not a valid key.
        """
        self.url, self._parameters, self._timeout = url, parameters, timeout
        self._key = os.environ.get(_KEY_VARIABLE, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(
                f"{_KEY_VARIABLE} holds characters that cannot be in a key; set it "
                "again"
            )
        self._http = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx2.Timeout(timeout, connect=10.0),
            limits=httpx2.Limits(max_connections=None),
        )
        self.requests, self.closing = requests, threading.Event()
        self._answered_at = -math.inf
        # Only the holder of the turn may take places. A running request has one place,
        # or all places if no other request may run.
        self._turn, self._places = threading.Lock(), threading.Semaphore(requests)
        self._lock = threading.Lock()
        # Prompts that have no answer yet.
        self._asked: dict[str, Future[Answer | Failure]] = {}
        self._journal = sqlite3.connect(
            journal, timeout=60, isolation_level=None, check_same_thread=False
        )
        self.keep("CREATE TABLE IF NOT EXISTS answers (request PRIMARY KEY, answer)")

    def ask(self, prompt: str) -> Answer | Failure:
        """The answer to a prompt, or a failure. Equal prompts at the same time are sent
        once and share the answer.

        Raises:
          JobError: the server does not answer the test request either.
        """
        own = Future[Answer | Failure]()
        if (asked := self._asked.setdefault(prompt, own)) is own:
            try:
                own.set_result(self._ask(prompt))
            except Exception as error:
                own.set_exception(error)
            del self._asked[prompt]
        return asked.result()

    def _ask(self, prompt: str) -> Answer | Failure:
        """The answer to a prompt, from the journal or the server; raises as `ask`."""
        body = self.body(prompt)
        key = files.sha256_json(body)
        if known := self.known(key):
            return known
        answer = self._send(body, _TRIES)
        if isinstance(answer, Answer):
            self.keep("REPLACE INTO answers VALUES (?, ?)", key, json.dumps(answer))
        elif answer.reason != _HELD_BACK:
            self.check()
            detail = f"{answer.detail}; the server answers other requests"
            answer = with_way_out(answer._replace(detail=detail))
        return answer

    def known(self, key: str) -> Answer | None:
        """The answer in the journal to the request with a checksum."""
        for (known,) in self.keep("SELECT answer FROM answers WHERE request = ?", key):
            with contextlib.suppress(ValueError, TypeError):
                summary, *cost = json.loads(known)
                return Answer(Summary(*summary), *cost)
        return None

    def check(self) -> None:
        """Sends a small test request that any model answers.

        Raises:
          JobError: the server does not answer it.
        """
        answer = self._send(self.body("Say yes."), _CHECKS)
        if isinstance(answer, Failure) and answer.reason != _HELD_BACK:
            raise JobError(
                f"{self.url} answers no request: {answer.detail}; check the server, "
                f"the key in {_KEY_VARIABLE} and its account, the path and the model "
                f"{self._parameters.get('model')!r} of `bundle=`, and "
                "`request_json=`; then run the same command to continue: answers "
                "already received are kept"
            )

    def body(self, prompt: str) -> dict[str, Any]:
        """The request that asks a prompt."""
        messages = [{"role": "user", "content": prompt}]
        return {**self._parameters, "messages": messages}

    def _send(self, body: Mapping[str, Any], tries: int) -> Answer | Failure:
        """As `retry`, for the answer to a request."""
        return self.retry(lambda: self._post(body), tries)

    def retry(
        self, call: Callable[[], tuple[ResultT | Failure, float]], tries: int
    ) -> ResultT | Failure:
        """Calls the server until there is a result or it has failed `tries` times;
        returns the result or the last failure.

        Args:
          call: returns the result or a failure, and the seconds to wait before a retry.
          tries: the maximum number of failures other than 429.
        """
        first = pause = self._timeout / 100
        begun, failures = time.monotonic(), 0
        while not self.closing.is_set():
            # If other requests were answered meanwhile, the load may be the cause.
            is_alone = failures == tries - 1 and self._answered_at > begun
            with self._place(self.requests if is_alone else 1):
                if self.closing.is_set():
                    break
                answer, wait = call()
            if not isinstance(answer, Failure) or answer.reason == _HELD_BACK:
                self._answered_at = time.monotonic()
                return answer
            if answer.reason == "http_429":
                since = max(self._answered_at, begun)
                is_over = time.monotonic() - since > _PATIENCE_SECONDS
            else:
                failures += 1
                is_over = failures >= tries
            if is_over or wait > _PATIENCE_SECONDS:
                return answer
            # In total, the pauses are long enough for a server to restart.
            self.closing.wait(max(pause, wait) + random.uniform(0, first))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return Failure(SEARCH, "stopped", "the job was stopped")

    @contextlib.contextmanager
    def _place(self, places: int) -> Iterator[None]:
        """Holds a number of places while a block runs."""
        with self._turn:
            for _ in range(places):
                self._places.acquire()
        try:
            yield
        finally:
            self._places.release(places)

    def _post(self, body: Mapping[str, Any]) -> tuple[Answer | Failure, float]:
        """Sends a request once; returns as `exchange`."""
        begun, prompt = time.monotonic(), body["messages"][0]["content"]
        content, pause = self.exchange("POST", "chat/completions", prompt, json=body)
        if isinstance(content, Failure):
            return content, pause
        return read_answer(content, time.monotonic() - begun), pause

    def exchange(
        self,
        method: str,
        path: str,
        prompt: str = "",
        into: IO[bytes] | None = None,
        **sent: Any,
    ) -> tuple[bytearray | Failure, float]:
        """Calls the server once.

        Args:
          method, path: the HTTP method, and the path after `/v1/`.
          prompt: what no message of a failure may quote.
          into: takes the content of a response of any length and duration.
          **sent: the content of the request, for the HTTP client.

        Returns:
          The content of the response or a failure, and the seconds to wait before a
          retry; infinity if a retry is useless.
        """
        content = bytearray()
        try:
            with self._http.stream(method, path, **sent) as response:
                begun, status = time.monotonic(), response.status_code
                status = 200 if status == 201 else status  # A file was created.
                for chunk in response.iter_bytes():
                    if into and status == 200:
                        into.write(chunk)
                        continue
                    content += chunk
                    if time.monotonic() - begun > self._timeout:
                        raise httpx2.ReadTimeout("only a part of it came in time")
                    if len(content) > _MOST_BYTES:
                        raise httpx2.ReadError(f"more than {_MOST_BYTES} bytes")
        except httpx2.RequestError as error:
            is_late = isinstance(error, httpx2.TimeoutException)
            reason = "timeout" if is_late else "cut_answer"
            # If the server has never answered, its address is wrong: no retry.
            is_wrong = isinstance(error, httpx2.ConnectError)
            is_wrong &= self._answered_at == -math.inf
            failure = Failure(SEARCH, reason, f"no answer ({error!r})")
            return failure, math.inf if is_wrong else 0.0
        failure, pause = refusal(status, content, prompt, self._key), 0.0
        if failure is None:
            return content, pause
        after = response.headers.get("Retry-After", "")
        with contextlib.suppress(ValueError):
            pause = float(after)
        with contextlib.suppress(ValueError):
            pause = email.utils.parsedate_to_datetime(after).timestamp() - time.time()
        is_final = pause > _PATIENCE_SECONDS or b"insufficient_quota" in content
        is_final |= not failure.is_of_server
        return failure, math.inf if is_final else pause

    def keep(self, statement: str, *values: Any) -> list[Any]:
        """Reads or writes the journal: answers by the checksums of their requests."""
        try:
            with self._lock:
                return self._journal.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise JobError(
                f"an answer could not be saved ({error}); free some space below "
                "`output=`, and run the same command to continue"
            ) from error


def read_status(status: int, content: bytearray) -> int:
    """The status of a response; if a response with 200 holds an error, its status."""
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError):
        body = json.loads(content)
        error = body.get("error") or (body.get("choices") or [{}])[0].get("error")
        if status == 200 and (error or body.get("object") == "error"):
            said = json.dumps(error or body)
            code = re.search(r'"(?:code|status)": "?([45]\d\d)\b', said)
            is_early = re.search("(?i)rate.?limit|exhausted|too.?many", said)
            return int(code[1]) if code else 429 if is_early else 502
    return status


def refusal(
    status: int, content: bytearray, prompt: str, key: str = ""
) -> Failure | None:
    """The failure in a response; None if it is an answer.

    Args:
      status, content: the response.
      prompt, key: the prompt and the API key, which the failure may not quote.
    """
    if (status := read_status(status, content)) == 200:
        return None
    message = _message(content, prompt)
    if key:  # Some servers quote it.
        message = message.replace(key, "***")
    # Below 408 except 400: not caused by a document, but by a wrong key, account, path
    # or model name.
    is_of_service = status in (408, 409, 425, 429) or status >= 500
    is_of_service |= status < 408 and status != 400
    reason = f"http_{status}" if is_of_service else "refused"
    return Failure(SEARCH, reason, f"HTTP {status} {message[:300]}".rstrip())


def with_way_out(failure: Failure) -> Failure:
    """The failure of a request, with what to do if its prompt is too long."""
    if not _TOO_LONG.search(failure.detail):
        return failure
    way_out = "; set context_tokens to the context length of the server"
    return failure._replace(reason=TOO_LONG, detail=failure.detail + way_out)


def read_answer(content: bytearray, seconds: float) -> Answer | Failure:
    """The answer in the body of a response; a failure if the body is cut off, the
    answer was broken off, or a filter of the server withheld it.
    """
    try:
        body = json.loads(content)
        choice, usage = body["choices"][0], body.get("usage")
        message, reason = choice["message"], str(choice.get("finish_reason") or "")
        text = message.get("content") or message.get("refusal") or ""
        if not isinstance(text, str):  # A list of parts: text and other kinds.
            text = "".join(part.get("text", "") for part in text)
    except (ValueError, TypeError, LookupError, AttributeError):
        detail = "the answer is incomplete or in an unknown format"
        return Failure(SEARCH, "cut_answer", detail)
    is_refused = message.get("refusal") and not REFUSAL.match(text)  # in other words
    if is_refused or _WITHHELD.search(reason.lower()):
        return Failure(SEARCH, _HELD_BACK, "the server withheld the answer")
    if _BROKEN.search(reason.lower()):
        detail = f"the server broke off the answer: {reason[:40]!a}"
        return Failure(SEARCH, "cut_answer", detail)
    usage = usage if isinstance(usage, dict) else {}
    read, written = map(_count, map(usage.get, ("prompt_tokens", "completion_tokens")))
    log_probs = _log_probs(choice, text)
    mean, least = sum(log_probs) / len(log_probs), min(log_probs)
    is_whole = _WHOLE.fullmatch(reason.lower()) is not None
    summary = Summary(text, mean, mean, None, least, None, is_whole)
    return Answer(summary, read, written, seconds)


def _count(tokens: Any) -> int:
    """A token count of a server; 0 if it is missing or impossible."""
    is_possible = isinstance(tokens, int | float) and 0 <= tokens < 1 << 31
    return int(tokens) if is_possible else 0


def _log_probs(choice: Mapping[str, Any], text: str) -> list[float]:
    """The log-probabilities of an answer's tokens, end token included, without the
    thoughts before it, which llama.cpp lists too; [NaN] if they are unknown.
    """
    answer, message = answer_text(text), choice["message"]
    written, values, ends = b"", [], []
    try:
        for each in choice["logprobs"]["content"]:
            listed = each.get("bytes")
            written += each["token"].encode() if listed is None else bytes(listed)
            values.append(float(each["logprob"]))
            ends.append(len(written))
    except (TypeError, LookupError, ValueError, AttributeError):
        return [math.nan]
    place = written.rfind(answer.encode(errors="ignore"))
    is_thought = any(message[key] for key in message if "reasoning" in key)
    if place < 0 and (is_thought or answer != text.strip()):
        return [math.nan]  # It is unknown which of them belong to the answer.
    values = [value for value, end in zip(values, ends, strict=True) if end > place]
    return values if values and all(map(math.isfinite, values)) else [math.nan]


def _message(content: bytearray, prompt: str) -> str:
    """The error message of a server, as JSON in ASCII; "" if it quotes a prompt, even
    with its escapes escaped again.
    """
    with contextlib.suppress(ValueError):
        message = json.dumps(json.loads(content))[:3000]
        asked = json.dumps(prompt).replace("\\", "")
        parts = message.replace("\\", "")
        ends = range(_QUOTED_CHARACTERS, len(parts) + 1)
        if not any(parts[end - _QUOTED_CHARACTERS : end] in asked for end in ends):
            return message
    return ""
