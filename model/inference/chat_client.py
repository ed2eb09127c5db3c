"""Requests to a server that speaks the chat protocol of OpenAI, as many at once as it
bears.

    429, or Retry-After               all requests wait; half as many at once
    5xx, a time-out, a cut answer     sent again, TRIES times; half as many at once
    every answer                      slowly more at once
    400 and such                      the failure of a document
    401, 404; no server there         the end of the job

A request that fails TRIES times is its document's failure where the server answers
another one, and the end of the job where it does not. Answers are kept in a journal
while a job runs, so that none is paid for twice.
"""

import contextlib
import dataclasses
import datetime
import email.utils
import hashlib
import json
import math
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from precis.model.bundle.address import Address
from precis.model.errors import JobError, UsageError
from precis.model.inference.batches import SEARCH
from precis.model.isolation import Failure, FailureError

KEY_VARIABLE = "OPENAI_API_KEY"
TRIES = 6
# So many requests run at once at first.
_FIRST_LIMIT = 4
# A server that has turned away all requests for so long, or asks for a longer pause,
# ends the job.
_PATIENCE_SECONDS = 300.0
_LONGEST_PAUSE_SECONDS = 20.0
_CONNECT_SECONDS = 10.0
# What no document causes: a wrong key, account, path or name of a model.
_OF_THE_SETUP = (401, 402, 403, 404, 405)
# No other message of a server may hold so many characters of a document on end.
_QUOTED_CHARACTERS = 30
_GO_ON = "the same command goes on, and pays for no answer again"
_PROBE = [{"role": "user", "content": "Say yes."}]


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
      pause: seconds that the server asks to wait; None where it does not.
      is_turned_away: whether the server says that it has too many requests.
    """

    reason: str
    detail: str
    pause: float | None = None
    is_turned_away: bool = False


class Throttle:
    """How many requests run at once: one more after as many answers, half as many after
    a failure (Chiu and Jain 1989).
    """

    def __init__(self, most: int, closing: threading.Event) -> None:
        """Takes how many there are at most, and what says that no more begin."""
        self._closing = closing
        self.limit = float(min(most, _FIRST_LIMIT))
        self._most = most
        self._running = 0
        self._paused_until = self._slowed_at = -math.inf
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def turn(self) -> Iterator[float]:
        """Waits for a place among the requests; gives the time at its begin."""
        with self._changed:
            while not self._closing.is_set():
                pause = self._paused_until - time.monotonic()
                if pause <= 0 and self._running < int(self.limit):
                    break
                self._changed.wait(min(pause, 1.0) if pause > 0 else 1.0)
            else:
                raise Unanswered("stopped", "the job ends")
            self._running += 1
        try:
            yield time.monotonic()
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def speed_up(self) -> None:
        """Takes note of an answer."""
        with self._changed:
            self.limit = min(self._most, self.limit + 1 / self.limit)

    def slow_down(self, begun: float, pause: float) -> None:
        """Takes note of a failure. Requests that ran when the limit fell do not make it
        fall again.

        Args:
          begun: when the request began.
          pause: seconds in which no request begins.
        """
        with self._changed:
            now = time.monotonic()
            self._paused_until = max(self._paused_until, now + pause)
            if begun > self._slowed_at:
                self.limit, self._slowed_at = max(1.0, self.limit / 2), now


class ChatClient:
    """Sends requests; may be used from several threads.

    Attributes:
      closing: set where no request begins any more.
    """

    def __init__(
        self,
        address: Address,
        parameters: Mapping[str, Any],
        *,
        requests: int,
        timeout: float,
        first_pause: float,
        journal: str = "",
    ) -> None:
        """Connects to nothing yet.

        Args:
          address: of the server.
          parameters: of each request beside its messages.
          requests: those that run at once, at most.
          timeout: seconds in which a request is answered.
          first_pause: seconds before a request is sent again; the next ones are longer.
          journal: the file that keeps the answers; "" keeps none.

        Raises:
          UsageError: the key in the environment is none.
        """
        import httpx2

        key = os.environ.get(KEY_VARIABLE, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(
                f"{KEY_VARIABLE} holds characters that no key has; set it again"
            )
        self._url = address.url
        self._parameters = {"model": address.model, **parameters}
        self._timeout = timeout
        self._first_pause = first_pause
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None),
        )
        self.closing = threading.Event()
        self._throttle = Throttle(requests, self.closing)
        self._journal = Journal(journal) if journal else None
        self._answered_at = time.monotonic()

    def model_facts(self) -> dict[str, Any]:
        """What the server says of the model; {} where it says nothing.

        Raises:
          JobError: the server cannot be reached, or knows no such key.
        """
        import httpx2

        try:
            response = self._http.get(f"{self._url}/models", timeout=_CONNECT_SECONDS)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise JobError(
                f"{self._url} cannot be reached ({error}); start the server or correct "
                "--bundle, and run the command again"
            ) from None
        except httpx2.RequestError:
            return {}
        if response.status_code in (401, 403):
            raise self._wrong_setup(response.status_code, _message(response.content))
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            known = {each["id"]: dict(each) for each in response.json()["data"]}
            only = next(iter(known.values())) if len(known) == 1 else {}
            return known.get(self._parameters["model"], only)
        return {}

    def ask(self, prompt: str) -> Answer:
        """The answer to a prompt.

        Raises:
          FailureError: this prompt is not answered.
          JobError: no prompt is.
        """
        import tenacity

        body = self._body([{"role": "user", "content": prompt}])
        if self._journal and (known := self._journal.read(body)):
            return known
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Unanswered),
            wait=self._pause,
            stop=self._gives_up,
            sleep=tenacity.sleep_using_event(self.closing),
            reraise=True,
        )
        try:
            answer: Answer = again(self._send, body, prompt)
        except Unanswered as error:
            raise self._verdict(error) from None
        if self._journal:
            self._journal.write(body, answer)
        return answer

    def _body(self, messages: list[dict[str, str]], **parameters: Any) -> bytes:
        content = {**self._parameters, "messages": messages, **parameters}
        return json.dumps(content, sort_keys=True).encode()

    def _pause(self, state: Any) -> float:
        """Seconds before a request is sent again, for tenacity."""
        import tenacity

        first = self._first_pause
        grows = tenacity.wait_exponential(first, max=_LONGEST_PAUSE_SECONDS)
        asked: float | None = state.outcome.exception().pause
        return grows(state) + random.uniform(0, first) if asked is None else asked

    def _gives_up(self, state: Any) -> bool:
        """Whether a request is not sent again, for tenacity."""
        error = state.outcome.exception()
        if self.closing.is_set() or (error.pause or 0) > _PATIENCE_SECONDS:
            return True
        if error.is_turned_away:
            since = max(self._answered_at, state.start_time)
            return bool(time.monotonic() - since > _PATIENCE_SECONDS)
        # Requests that were turned away do not count, so tenacity's number will not do.
        state.failures = getattr(state, "failures", 0) + 1
        return bool(state.failures >= TRIES)

    def _verdict(self, error: Unanswered) -> Exception:
        """What a request means that is not sent again: the failure of its document, or
        of the server.
        """
        is_known = error.reason == "unreachable" or error.is_turned_away
        if is_known or self.closing.is_set():
            return self._dead(error)
        try:
            self._post(self._body(_PROBE, max_tokens=1), "")
        except Unanswered:
            return self._dead(error)
        except FailureError:
            pass  # Whatever it thinks of the question, it is there.
        detail = f"{error.detail}, in {TRIES} requests, and others are answered"
        return FailureError(Failure(SEARCH, error.reason, detail))

    def _dead(self, error: Unanswered) -> JobError:
        return JobError(
            f"{self._url} answers no request any more: {error.detail}; see to the "
            f"server, and {_GO_ON}"
        )

    def _send(self, body: bytes, prompt: str) -> Answer:
        """Sends a request when its turn comes."""
        with self._throttle.turn() as begun:
            try:
                answer = self._post(body, prompt)
            except Unanswered as error:
                self._throttle.slow_down(begun, error.pause or 0)
                raise
        self._throttle.speed_up()
        self._answered_at = time.monotonic()
        return answer

    def _post(self, body: bytes, prompt: str) -> Answer:
        """Sends a request once.

        Raises:
          Unanswered, FailureError, JobError: there is no answer.
        """
        import httpx2

        begun, content = time.monotonic(), b""
        late = Unanswered("timeout", f"no answer within {self._timeout:g} s")
        try:
            with self._http.stream(
                "POST",
                f"{self._url}/chat/completions",
                content=body,
                headers={"Content-Type": "application/json"},
            ) as response:
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
        if response.status_code != 200:
            self._refuse(response.status_code, response.headers, content, prompt)
        return _read_answer(content, time.monotonic() - begun)

    def _refuse(
        self, status: int, headers: Mapping[str, str], content: bytes, prompt: str
    ) -> None:
        """Raises what a status other than 200 means."""
        message, pause = _message(content), _seconds(headers.get("Retry-After"))
        if status in _OF_THE_SETUP or "insufficient_quota" in message:
            raise self._wrong_setup(status, message)
        detail = f"HTTP {status}"
        ends = range(_QUOTED_CHARACTERS, len(message) + 1)
        if not any(message[end - _QUOTED_CHARACTERS : end] in prompt for end in ends):
            detail += f" {message}".rstrip()
        if pause is not None:
            detail += f" (Retry-After {pause:.0f} s)"
        if status in (408, 409, 425, 429) or status >= 500:
            raise Unanswered(
                f"http_{status}", detail, pause, status == 429 or pause is not None
            )
        raise FailureError(Failure(SEARCH, "refused", detail))

    def _wrong_setup(self, status: int, message: str) -> JobError:
        return JobError(
            f"{self._url} answers HTTP {status} {message}".rstrip() + "; check the key "
            f"in {KEY_VARIABLE}, its account, and the path and the model "
            f"{self._parameters['model']!r} of --bundle; {_GO_ON}"
        )


class Journal:
    """Answers by their requests, in a file of SQLite."""

    def __init__(self, path: str) -> None:
        """Opens the file, or makes it."""
        self._lock = threading.Lock()
        self._file = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._run("CREATE TABLE IF NOT EXISTS answers (request PRIMARY KEY, answer)")

    def read(self, request: bytes) -> Answer | None:
        """The answer to an earlier request."""
        key = hashlib.sha256(request).digest()
        found = self._run("SELECT answer FROM answers WHERE request = ?", key)
        return Answer(*json.loads(found[0][0])) if found else None

    def write(self, request: bytes, answer: Answer) -> None:
        """Keeps an answer."""
        key = hashlib.sha256(request).digest()
        self._run("REPLACE INTO answers VALUES (?, ?)", key, json.dumps(answer))

    def _run(self, statement: str, *values: bytes | str) -> list[Any]:
        try:
            with self._lock:
                return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise JobError(
                f"the answers cannot be kept ({error}); make room below --output, and "
                f"{_GO_ON}"
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
        text = str(message.get("content") or "")
        listed = (choice.get("logprobs") or {}).get("content") or []
        log_probs = [float(token["logprob"]) for token in listed]
    except (ValueError, TypeError, LookupError, AttributeError):
        raise Unanswered("cut_answer", "the answer is cut, or no answer") from None
    if reason == "content_filter" or message.get("refusal"):
        detail = "the server holds its answer back"
        raise FailureError(Failure(SEARCH, "content_filter", detail))
    if not log_probs or not all(map(math.isfinite, log_probs)):
        log_probs = [math.nan]
    return Answer(
        text,
        reason,
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        sum(log_probs) / len(log_probs),
        min(log_probs),
        seconds,
    )


def _message(content: bytes) -> str:
    """What a server says of an error, on one line."""
    with contextlib.suppress(ValueError):
        body = json.loads(content)
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, dict):
            named = (error.get(name) for name in ("code", "type", "message", "detail"))
            error = " ".join(str(each) for each in named if each)
        return " ".join(str(error).split())[:300]
    return ""


def _seconds(retry_after: str | None) -> float | None:
    """The pause that the header Retry-After asks for."""
    with contextlib.suppress(ValueError, TypeError):
        if not math.isnan(seconds := float(retry_after or "")):
            return max(0.0, seconds)
    with contextlib.suppress(ValueError, TypeError):
        moment = email.utils.parsedate_to_datetime(retry_after or "")
        now = datetime.datetime.now(datetime.UTC)
        return max(0.0, (moment - now).total_seconds())
    return None
