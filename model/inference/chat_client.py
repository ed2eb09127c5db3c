"""Requests to a server with the chat protocol of OpenAI, as many at once as it can
answer.

    429                               sent again, for minutes; half as many at once
    5xx, a time-out, a cut answer     sent again, some times; half as many at once
    401, 403, 404 and such            not sent again
    Retry-After                       all requests wait
    every answer                      slowly more at once
    400 and such                      the failure of a document

A request that is not sent again is the failure of its document where the server answers
another one, and the end of the job where it does not. Answers are kept in a journal
while a job runs, so that none is paid for twice.
"""

import contextlib
import dataclasses
import email.utils
import hashlib
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import httpx2
import tenacity

from precis.model.errors import JobError, UsageError
from precis.model.inference.batches import SEARCH
from precis.model.isolation import Failure, FailureError

_KEY_VARIABLE = "OPENAI_API_KEY"
_TRIES = 6
# So many requests run at once at first.
_FIRST_LIMIT = 4
# A server that has answered 429 to all requests for so long, or asks for a longer
# pause, ends the job.
_PATIENCE_SECONDS = 300.0
_LONGEST_PAUSE_SECONDS = 20.0
# The first pause before a request is sent again; each further one is twice as long.
_PAUSE_PER_TIMEOUT = 0.01
_CONNECT_SECONDS = 10.0
# No message of a server may hold so many characters of a request on end.
_QUOTED_CHARACTERS = 30
# What servers call the length of the context in their list of models.
_CONTEXT_NAMES = ("max_model_len", "n_ctx", "context_length", "context_window")


class Answer(NamedTuple):
    """What a server wrote.

    Attributes:
      text: the answer.
      finish_reason: `stop`, or `length` where it was cut.
      prompt_tokens, written_tokens: as the server counts them; None where it does not.
      mean_log_prob, min_log_prob: of the written tokens; NaN where it gives none.
      seconds: from the request to the answer.
    """

    text: str
    finish_reason: str
    prompt_tokens: int | None
    written_tokens: int | None
    mean_log_prob: float
    min_log_prob: float
    seconds: float


@dataclasses.dataclass(eq=False)
class Unanswered(Exception):
    """A request without an answer, which may be sent again.

    Attributes:
      reason, detail: as those of a failure.
      pause: seconds in which the server wants no request.
      is_final: whether it makes no sense to send it again.
    """

    reason: str
    detail: str
    pause: float = 0.0
    is_final: bool = False


class Throttle:
    """How many requests run at once: one more after as many answers, half as many after
    a failure (Chiu and Jain 1989).

    Attributes:
      limit: how many run now, at most.
      answered_at: when the last answer came, or the start.
    """

    def __init__(self, most: int, closing: threading.Event) -> None:
        """Takes how many there are at most, and what says that no more begin."""
        self.limit = float(min(most, _FIRST_LIMIT))
        self._most = most
        self._closing = closing
        self._running = 0
        self._paused_until = self._slowed_at = -math.inf
        self._changed = threading.Condition()
        self.answered_at = time.monotonic()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for a place for a request, and takes note of what becomes of it.

        Requests that ran when the limit fell do not make it fall again.
        """
        with self._changed:
            while not self._closing.is_set():
                begun = time.monotonic()
                if begun >= self._paused_until and self._running < int(self.limit):
                    break
                self._changed.wait(0.1)
            else:
                raise Unanswered("stopped", "the job ends")
            self._running += 1
        try:
            yield
            with self._changed:
                self.answered_at = time.monotonic()
                self.limit = min(self._most, self.limit + 1 / self.limit)
        except Unanswered as error:
            with self._changed:
                now = time.monotonic()
                if not error.is_final:
                    self._paused_until = max(self._paused_until, now + error.pause)
                if begun > self._slowed_at:
                    self.limit, self._slowed_at = max(1.0, self.limit / 2), now
            raise
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


class ChatClient:
    """Sends requests; may be used from several threads.

    Attributes:
      closing: set where no request begins any more.
    """

    def __init__(
        self,
        url: str,
        parameters: Mapping[str, Any],
        *,
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
        key = os.environ.get(_KEY_VARIABLE, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(
                f"{_KEY_VARIABLE} holds characters that no key has; set it again"
            )
        self._key = key
        self._url = url
        self._parameters = parameters
        self._timeout = timeout
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._http = httpx2.Client(
            headers=headers,
            timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None),
        )
        self.closing = threading.Event()
        self._throttle = Throttle(requests, self.closing)
        self._lock = threading.Lock()
        self._journal = sqlite3.connect(
            journal, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._keep("CREATE TABLE IF NOT EXISTS answers (request PRIMARY KEY, answer)")

    def context_tokens(self) -> int:
        """Those that the model reads and writes, as the server lists them; 0 where it
        does not.

        Raises:
          JobError: the server cannot be reached.
        """
        try:
            _, _, content = self._exchange("GET", "models")
        except Unanswered as error:
            if error.reason == "unreachable":
                raise self._dead(error) from None
            return 0
        with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError):
            models = json.loads(content)["data"]
            names = [each["id"] for each in models]
            # A server of a single model may have another name for it.
            place = 0 if len(models) == 1 else names.index(self._parameters["model"])
            facts = models[place] | (models[place].get("meta") or {})  # of llama.cpp
            return next(filter(None, map(_count, map(facts.get, _CONTEXT_NAMES))), 0)
        return 0

    def ask(self, prompt: str) -> Answer:
        """The answer to a prompt.

        Raises:
          FailureError: this prompt is not answered.
          JobError: no prompt is.
        """
        body = self._body(prompt)
        key = hashlib.sha256(body.encode()).hexdigest()
        for (known,) in self._keep("SELECT answer FROM answers WHERE request = ?", key):
            return Answer(*json.loads(known))
        first = self._timeout * _PAUSE_PER_TIMEOUT
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Unanswered),
            wait=tenacity.wait_exponential(first, _LONGEST_PAUSE_SECONDS)
            + tenacity.wait_random(0, first),
            stop=self._gives_up,
            sleep=tenacity.sleep_using_event(self.closing),
            reraise=True,
        )
        try:
            answer: Answer = again(self._send, body)
        except Unanswered as error:
            raise self._verdict(error) from None
        self._keep("REPLACE INTO answers VALUES (?, ?)", key, json.dumps(answer))
        return answer

    def _body(self, prompt: str, **parameters: Any) -> str:
        messages = [{"role": "user", "content": prompt}]
        content = {**self._parameters, "messages": messages, **parameters}
        return json.dumps(content, sort_keys=True)

    def _gives_up(self, state: Any) -> bool:
        """Whether a request is not sent again, for tenacity."""
        error = state.outcome.exception()
        if error.is_final or self.closing.is_set():
            return True
        if error.reason == "http_429":
            since = max(self._throttle.answered_at, state.start_time)
            return bool(time.monotonic() - since > _PATIENCE_SECONDS)
        # Requests that were answered 429 do not count, as they do for tenacity.
        state.failures = getattr(state, "failures", 0) + 1
        return bool(state.failures >= _TRIES)

    def _verdict(self, error: Unanswered) -> Exception:
        """What a request means that is not sent again: the failure of its document
        where the server answers another one, or else of the server.
        """
        with contextlib.suppress(Unanswered):
            with contextlib.suppress(FailureError):  # It is there, then.
                self._send(self._body("Say yes.", max_tokens=1))
            detail = f"{error.detail}; other requests are answered"
            return FailureError(Failure(SEARCH, error.reason, detail))
        return self._dead(error)

    def _dead(self, error: Unanswered) -> JobError:
        return JobError(
            f"{self._url} answers no request: {error.detail}; check the server, the "
            f"key in {_KEY_VARIABLE} and its account, and the path and the model "
            f"{self._parameters['model']!r} of --bundle; the same command goes on, and "
            "pays for no answer again"
        )

    def _send(self, body: str) -> Answer:
        """Sends a request when its turn comes."""
        with self._throttle.turn():
            return self._post(body)

    def _post(self, body: str) -> Answer:
        """Sends a request once.

        Raises:
          Unanswered, FailureError, JobError: there is no answer.
        """
        begun = time.monotonic()
        status, headers, content = self._exchange("POST", "chat/completions", body)
        if status == 200:
            return _read_answer(content, time.monotonic() - begun)
        message = _message(content, body)
        pause = _seconds(headers.get("Retry-After", ""))
        if self._key:  # Some servers repeat it.
            message = message.replace(self._key, "***")
        detail = f"HTTP {status} {message[:300]}".rstrip()
        if pause:
            detail += f" (Retry-After {pause:.0f} s)"
        is_final = b"insufficient_quota" in content or pause > _PATIENCE_SECONDS
        # What no document causes: a wrong key, account, path or name of a model.
        is_final |= status < 408 and status != 400
        if is_final or status in (408, 409, 425, 429) or status >= 500:
            raise Unanswered(f"http_{status}", detail, pause, is_final)
        raise FailureError(Failure(SEARCH, "refused", detail))

    def _exchange(
        self, method: str, path: str, body: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """The status, headers and content of a response.

        Raises:
          Unanswered: there is none, or a part of it.
        """
        begun, content = time.monotonic(), b""
        late = Unanswered("timeout", f"no answer within {self._timeout:g} s")
        url = f"{self._url}/{path}"
        try:
            with self._http.stream(method, url, content=body) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if time.monotonic() - begun > self._timeout:
                        raise late
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            detail = f"no connection ({error or type(error).__name__})"
            raise Unanswered("unreachable", detail) from None
        except httpx2.TimeoutException:
            raise late from None
        except httpx2.RequestError as error:
            detail = f"the connection ended before the answer ({type(error).__name__})"
            raise Unanswered("cut_answer", detail) from None
        return response.status_code, response.headers, content

    def _keep(self, statement: str, *values: str) -> list[Any]:
        """Reads or writes the journal: answers by the checksums of their requests."""
        try:
            with self._lock:
                return self._journal.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise JobError(
                f"the answers cannot be kept ({error}); make room below --output, and "
                "the same command goes on"
            ) from error


def _read_answer(content: bytes, seconds: float) -> Answer:
    """The answer in the body of a response.

    Raises:
      Unanswered: the body is cut.
      FailureError: a filter of the server holds the answer back.
    """
    try:
        body = json.loads(content)
        choice, usage = body["choices"][0], body.get("usage") or {}
        message, reason = choice["message"], str(choice.get("finish_reason"))
        text = message.get("content") or ""
        if not isinstance(text, str):  # It has parts, of text and other kinds.
            text = "".join(part.get("text", "") for part in text)
        listed = (choice.get("logprobs") or {}).get("content") or []
        log_probs = [float(token["logprob"]) for token in listed]
        read = _count(usage.get("prompt_tokens"))
        written = _count(usage.get("completion_tokens"))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise Unanswered("cut_answer", "the answer is cut, or no answer") from None
    if reason == "content_filter" or message.get("refusal"):
        detail = "the server holds its answer back"
        raise FailureError(Failure(SEARCH, "content_filter", detail))
    if not log_probs or not all(map(math.isfinite, log_probs)):
        log_probs = [math.nan]
    mean = sum(log_probs) / len(log_probs)
    return Answer(text, reason, read, written, mean, min(log_probs), seconds)


def _count(number: Any) -> int | None:
    """A number of tokens; None where it is none."""
    is_number = isinstance(number, int | float) and number >= 0
    return int(number) if is_number and number % 1 == 0 else None


def _message(content: bytes, body: str) -> str:
    """What a server says of an error, as JSON in ASCII; "" where that quotes a request,
    of which the escapes may be escaped once more.
    """
    with contextlib.suppress(ValueError):
        message, asked = json.dumps(json.loads(content))[:3000], body.replace("\\", "")
        parts = message.replace("\\", "")
        ends = range(_QUOTED_CHARACTERS, len(parts) + 1)
        if not any(parts[end - _QUOTED_CHARACTERS : end] in asked for end in ends):
            return message
    return ""


def _seconds(retry_after: str) -> float:
    """The pause that the header Retry-After asks for."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(retry_after))
    with contextlib.suppress(ValueError):
        moment = email.utils.parsedate_to_datetime(retry_after)
        return max(0.0, moment.timestamp() - time.time())
    return 0.0
