"""Requests to a server with the chat protocol of OpenAI.

    429                               sent again, for minutes
    5xx, a time-out, a cut answer     sent again, some times, the last time alone
    400, 401, 403, 404 and such       not sent again

Before each further try a request waits twice as long, and as long as `Retry-After`
says. A request that is not sent again is the failure of its document where the server
answers a small one, and the end of the job where it does not. Answers are kept in a
journal while a job runs, so that none is paid for twice.
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
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import httpx2

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.model.inference.batches import SEARCH
from precis.model.inference.summarizer import Summary
from precis.model.isolation import TOO_LONG, Failure
from precis.model.quality.flags import REFUSAL
from precis.model.text.answer import answer_text

_KEY_VARIABLE = "OPENAI_API_KEY"
_TRIES = 6
# Of the question whether a server answers at all.
_CHECKS = 3
# A server that has answered 429 to all requests for so long, or asks for a longer
# pause, ends the job.
_PATIENCE_SECONDS = 300.0
_LONGEST_PAUSE_SECONDS = 20.0
_MOST_BYTES = 1 << 24  # of a response
# What `finish_reason` may say: a filter held the answer back; the server broke it off,
# and may not do so again; or it is whole. Others are limits, or not known.
_WITHHELD = re.compile("filter|safety|recit|block|prohib|spii|sensit|guard|refus|tox")
_BROKEN = re.compile("error|abort|cancel|time_?out|resource|fail|interrupt|overload")
_WHOLE = re.compile("|none|null|normal|(?:stop|eos|end_|complete|finish).*")
# What a server says of a prompt that is longer than it reads.
_TOO_LONG = re.compile(
    "(?i)HTTP 413|HTTP 4(?!29).*token|context(?! deadline| cancel)|too (?:long|large)"
)
# No message of a server may hold so many characters of a request on end.
_QUOTED_CHARACTERS = 30
# The reason of an answer that a filter of the server holds back.
_HELD_BACK = "content_filter"


class Answer(NamedTuple):
    """What a server wrote, in place of a hypothesis.

    Attributes:
      summary: the answer as it is; its log-probabilities are NaN where the server gives
        none.
      prompt_tokens, written_tokens: as the server counts them; 0 where it does not.
      seconds: from the request to the answer.
    """

    summary: Summary
    prompt_tokens: int
    written_tokens: int
    seconds: float

    @property
    def tokens(self) -> range:
        """As many as were written; which, a server does not say."""
        return range(self.written_tokens)


class ChatClient:
    """Sends requests; may be used from several threads.

    Attributes:
      requests: those that run at once, at most.
      closing: set where no request begins any more.
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
          url: of the server, up to `/v1`.
          parameters: of each request beside its messages.
          requests: those that run at once, at most.
          timeout: seconds in which a request is answered.
          journal: the file of SQLite that keeps the answers; "" is a temporary one.

        Raises:
          UsageError: the key in the environment is none.
        """
        self._url, self._parameters, self._timeout = url, parameters, timeout
        self._key = os.environ.get(_KEY_VARIABLE, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(
                f"{_KEY_VARIABLE} holds characters that no key has; set it again"
            )
        self._http = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx2.Timeout(timeout, connect=10.0),
            limits=httpx2.Limits(max_connections=None),
        )
        self.requests, self.closing = requests, threading.Event()
        self._answered_at = -math.inf
        # Whoever holds the turn may take places. Each request that runs has one, and
        # one that runs alone has all.
        self._turn, self._places = threading.Lock(), threading.Semaphore(requests)
        self._lock = threading.Lock()
        # Prompts that are not answered yet.
        self._asked: dict[str, Future[Answer | Failure]] = {}
        self._journal = sqlite3.connect(
            journal, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._keep("CREATE TABLE IF NOT EXISTS answers (request PRIMARY KEY, answer)")

    def ask(self, prompt: str) -> Answer | Failure:
        """The answer to a prompt, or why there is none. Equal prompts at the same time
        are sent once, and share it.

        Raises:
          JobError: no prompt is answered.
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
        body = self._body(prompt)
        key = files.sha256_json(body)
        for (known,) in self._keep("SELECT answer FROM answers WHERE request = ?", key):
            with contextlib.suppress(ValueError, TypeError):
                summary, *cost = json.loads(known)
                return Answer(Summary(*summary), *cost)
        answer = self._send(body, _TRIES)
        if isinstance(answer, Answer):
            self._keep("REPLACE INTO answers VALUES (?, ?)", key, json.dumps(answer))
        elif answer.reason != _HELD_BACK:
            self.check()
            detail = f"{answer.detail}; other requests are answered"
            if _TOO_LONG.search(answer.detail):
                detail += "; give the context of the server as context_tokens"
                answer = answer._replace(reason=TOO_LONG)
            answer = answer._replace(detail=detail)
        return answer

    def check(self) -> None:
        """Asks a small question that any model answers.

        Raises:
          JobError: the server does not answer it.
        """
        answer = self._send(self._body("Say yes."), _CHECKS)
        if isinstance(answer, Failure) and answer.reason != _HELD_BACK:
            raise JobError(
                f"{self._url} answers no request: {answer.detail}; check "
                f"the server, the key in {_KEY_VARIABLE} and its account, the path and "
                f"the model {self._parameters.get('model')!r} of `bundle=`, and "
                "`request_json=`; the same command goes on, and pays for no answer "
                "again"
            )

    def _body(self, prompt: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        return {**self._parameters, "messages": messages}

    def _send(self, body: Mapping[str, Any], tries: int) -> Answer | Failure:
        """The answer to a request, which is sent until there is one or it has failed so
        often; or its last failure.
        """
        first = pause = self._timeout / 100
        begun, failures = time.monotonic(), 0
        while not self.closing.is_set():
            # Requests that were answered meanwhile may be why this one was not.
            is_alone = failures == tries - 1 and self._answered_at > begun
            with self._place(self.requests if is_alone else 1):
                if self.closing.is_set():
                    break
                answer, wait = self._post(body)
            if isinstance(answer, Answer) or answer.reason == _HELD_BACK:
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
            # Together long enough for a server that starts again.
            self.closing.wait(max(pause, wait) + random.uniform(0, first))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return Failure(SEARCH, "stopped", "the job ends")

    @contextlib.contextmanager
    def _place(self, places: int) -> Iterator[None]:
        """Waits for places, which the block has."""
        with self._turn:
            for _ in range(places):
                self._places.acquire()
        try:
            yield
        finally:
            self._places.release(places)

    def _post(self, body: Mapping[str, Any]) -> tuple[Answer | Failure, float]:
        """Sends a request once.

        Returns:
          The answer, or why there is none; and the seconds in which the server wants no
          request, which are infinite where it makes no sense to send it again.
        """
        begun, content = time.monotonic(), bytearray()
        try:
            with self._http.stream("POST", "chat/completions", json=body) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if time.monotonic() - begun > self._timeout:
                        raise httpx2.ReadTimeout("a part of it came in time")
                    if len(content) > _MOST_BYTES:
                        raise httpx2.ReadError(f"more than {_MOST_BYTES} bytes")
        except httpx2.RequestError as error:
            is_late = isinstance(error, httpx2.TimeoutException)
            reason = "timeout" if is_late else "cut_answer"
            # One that never answered does not come back: its address is wrong.
            is_wrong = isinstance(error, httpx2.ConnectError)
            is_wrong &= self._answered_at == -math.inf
            failure = Failure(SEARCH, reason, f"no answer ({error!r})")
            return failure, math.inf if is_wrong else 0.0
        status, pause = read_status(response.status_code, content), 0.0
        if status == 200:
            return _read_answer(content, time.monotonic() - begun), pause
        message = _message(content, body)
        if self._key:  # Some servers repeat it.
            message = message.replace(self._key, "***")
        after = response.headers.get("Retry-After", "")
        with contextlib.suppress(ValueError):
            pause = float(after)
        with contextlib.suppress(ValueError):
            pause = email.utils.parsedate_to_datetime(after).timestamp() - time.time()
        is_final = pause > _PATIENCE_SECONDS or "insufficient_quota" in message
        # What no document causes: a wrong key, account, path or name of a model.
        is_final |= status < 408 and status != 400
        is_early = status in (408, 409, 425, 429) or status >= 500
        reason = f"http_{status}" if is_final or is_early else "refused"
        failure = Failure(SEARCH, reason, f"HTTP {status} {message[:300]}".rstrip())
        return failure, pause if is_early and not is_final else math.inf

    def _keep(self, statement: str, *values: str) -> list[Any]:
        """Reads or writes the journal: answers by the checksums of their requests."""
        try:
            with self._lock:
                return self._journal.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise JobError(
                f"an answer is not kept ({error}); make room below `output=`, and go on"
            ) from error


def read_status(status: int, content: bytearray) -> int:
    """The status of a response, or of the error in a body that came with 200."""
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError):
        body = json.loads(content)
        error = body.get("error") or (body.get("choices") or [{}])[0].get("error")
        if status == 200 and (error or body.get("object") == "error"):
            said = json.dumps(error or body)
            code = re.search(r'"(?:code|status)": "?([45]\d\d)\b', said)
            is_early = re.search("(?i)rate.?limit|exhausted|too.?many", said)
            return int(code[1]) if code else 429 if is_early else 502
    return status


def _read_answer(content: bytearray, seconds: float) -> Answer | Failure:
    """The answer in the body of a response; a failure where the body is cut, the answer
    was broken off, or a filter of the server holds it back.
    """
    try:
        body = json.loads(content)
        choice, usage = body["choices"][0], body.get("usage")
        message, reason = choice["message"], str(choice.get("finish_reason") or "")
        text = message.get("content") or message.get("refusal") or ""
        if not isinstance(text, str):  # It has parts, of text and other kinds.
            text = "".join(part.get("text", "") for part in text)
    except (ValueError, TypeError, LookupError, AttributeError):
        return Failure(SEARCH, "cut_answer", "the answer is cut, or no answer")
    is_refused = message.get("refusal") and not REFUSAL.match(text)  # in other words
    if is_refused or _WITHHELD.search(reason.lower()):
        return Failure(SEARCH, _HELD_BACK, "the answer is held back")
    if _BROKEN.search(reason.lower()):
        detail = f"the server broke it off: {reason[:40]!a}"
        return Failure(SEARCH, "cut_answer", detail)
    usage = usage if isinstance(usage, dict) else {}
    read, written = map(_count, map(usage.get, ("prompt_tokens", "completion_tokens")))
    log_probs = _log_probs(choice, text)
    mean, least = sum(log_probs) / len(log_probs), min(log_probs)
    is_whole = _WHOLE.fullmatch(reason.lower()) is not None
    summary = Summary(text, mean, mean, None, least, None, is_whole)
    return Answer(summary, read, written, seconds)


def _count(tokens: Any) -> int:
    """Tokens that a server counts; 0 where it states no possible number."""
    is_possible = isinstance(tokens, int | float) and 0 <= tokens < 1 << 31
    return int(tokens) if is_possible else 0


def _log_probs(choice: Mapping[str, Any], text: str) -> list[float]:
    """The log-probabilities of the tokens of an answer and of its end, without those of
    the thoughts before it, which llama.cpp lists too; NaN where they are not known.
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
        return [math.nan]  # Which of them are the answer's is not known.
    values = [value for value, end in zip(values, ends, strict=True) if end > place]
    return values if values and all(map(math.isfinite, values)) else [math.nan]


def _message(content: bytearray, body: Mapping[str, Any]) -> str:
    """What a server says of an error, as JSON in ASCII; "" where that quotes a request,
    of which the escapes may be escaped once more.
    """
    with contextlib.suppress(ValueError):
        message = json.dumps(json.loads(content))[:3000]
        asked = json.dumps(body["messages"][0]["content"]).replace("\\", "")
        parts = message.replace("\\", "")
        ends = range(_QUOTED_CHARACTERS, len(parts) + 1)
        if not any(parts[end - _QUOTED_CHARACTERS : end] in asked for end in ends):
            return message
    return ""
