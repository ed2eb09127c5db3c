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
import email.utils
import json
import math
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

import httpx2
import tenacity

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.model.inference.batches import SEARCH
from precis.model.inference.summarizer import Summary
from precis.model.isolation import Failure, FailureError
from precis.model.quality.flags import REFUSAL
from precis.model.text.answer import answer_text

_KEY_VARIABLE = "OPENAI_API_KEY"
_TRIES = 6
# So many requests run at once at first.
_FIRST_LIMIT = 4
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
# No message of a server may hold so many characters of a request on end.
_QUOTED_CHARACTERS = 30


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


class Unanswered(FailureError):
    """A request without an answer.

    Attributes:
      pause: seconds in which the server wants no request.
      is_final: whether it makes no sense to send it again.
    """

    def __init__(
        self, reason: str, detail: str, pause: float = 0.0, is_final: bool = False
    ) -> None:
        super().__init__(Failure(SEARCH, reason, detail))
        self.pause, self.is_final = pause, is_final


class Throttle:
    """How many requests run at once: one more after as many answers, half as many after
    a failure (Chiu and Jain 1989).

    Attributes:
      limit: how many run now, at most.
      answered_at: when the last answer came; before the first minus infinity.
    """

    def __init__(self, most: int, closing: threading.Event) -> None:
        """Takes how many there are at most, and what says that no more begin."""
        self.limit = float(min(most, _FIRST_LIMIT))
        self._most, self._closing = most, closing
        self._running = 0
        self._paused_until = self._slowed_at = -math.inf
        self._changed = threading.Condition()
        self.answered_at = -math.inf

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
                raise Unanswered("stopped", "the job ends", is_final=True)
            self._running += 1
        try:
            yield
        except Unanswered as error:
            if not error.is_final:
                with self._changed:
                    now = time.monotonic()
                    self._paused_until = max(self._paused_until, now + error.pause)
                    if begun > self._slowed_at:
                        self.limit, self._slowed_at = max(1.0, self.limit / 2), now
            raise
        else:
            with self._changed:
                self.answered_at = time.monotonic()
                self.limit = min(self._most, self.limit + 1 / self.limit)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


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
        self._throttle = Throttle(requests, self.closing)
        self._lock = threading.Lock()
        self._turns: MutableMapping[str, Any] = weakref.WeakValueDictionary()
        self._journal = sqlite3.connect(
            journal, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._keep("CREATE TABLE IF NOT EXISTS answers (request PRIMARY KEY, answer)")

    def ask(self, prompt: str) -> Answer:
        """The answer to a prompt. Of equal ones at the same time one is sent.

        Raises:
          FailureError: this prompt is not answered.
          JobError: no prompt is.
        """
        with self._lock:
            turn = self._turns.setdefault(prompt, threading.Lock())
        with turn:
            return self._ask(prompt)

    def _ask(self, prompt: str) -> Answer:
        """The answer to a prompt, from the journal or the server; raises as `ask`."""
        body = self._body(prompt)
        key = files.sha256_json(body)
        for (known,) in self._keep("SELECT answer FROM answers WHERE request = ?", key):
            with contextlib.suppress(ValueError, TypeError):
                summary, *cost = json.loads(known)
                return Answer(Summary(*summary), *cost)
        first = self._timeout / 100  # Each further pause may be twice as long.
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: not getattr(error, "is_final", True)
            ),
            # Together long enough for a server that starts again.
            wait=tenacity.wait_exponential(first, _LONGEST_PAUSE_SECONDS)
            + tenacity.wait_random(0, first),
            stop=self._gives_up,
            sleep=tenacity.sleep_using_event(self.closing),
            reraise=True,
        )
        try:
            answer: Answer = again(self._post, body)
        except Unanswered as error:
            failure = error.failure
            try:  # Does the server answer another one?
                self._post({**self._body("Say yes."), "max_tokens": 1})
            except Unanswered:
                raise JobError(
                    f"{self._url} answers no request: {failure.detail}; check "
                    f"the server, the key in {_KEY_VARIABLE} and its account, and the "
                    f"path and the model {self._parameters['model']!r} of --bundle; "
                    "the same command goes on, and pays for no answer again"
                ) from None
            except FailureError:
                pass  # It answers: this one is refused.
            detail = f"{failure.detail}; other requests are answered"
            raise FailureError(failure._replace(detail=detail)) from None
        self._keep("REPLACE INTO answers VALUES (?, ?)", key, json.dumps(answer))
        return answer

    def _body(self, prompt: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        return {**self._parameters, "messages": messages}

    def _gives_up(self, state: Any) -> bool:
        """Whether a request is not sent again, for tenacity."""
        if state.outcome.exception().failure.reason == "http_429":
            since = max(self._throttle.answered_at, state.start_time)
            return bool(time.monotonic() - since > _PATIENCE_SECONDS)
        # Requests that were answered 429 do not count, as they do for tenacity.
        state.failures = getattr(state, "failures", 0) + 1
        return bool(state.failures >= _TRIES)

    def _post(self, body: Mapping[str, Any]) -> Answer:
        """Sends a request once, when its turn comes.

        Raises:
          Unanswered, FailureError: there is no answer.
        """
        with self._throttle.turn():
            begun, content = time.monotonic(), bytearray()
            try:
                with self._http.stream(
                    "POST", "chat/completions", json=body
                ) as response:
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
                is_final = isinstance(error, httpx2.ConnectError)
                is_final &= self._throttle.answered_at == -math.inf
                detail = f"no answer ({error!r})"
                raise Unanswered(reason, detail, is_final=is_final) from None
            status, pause = read_status(response.status_code, content), 0.0
            if status == 200:
                return _read_answer(content, time.monotonic() - begun)
            message = _message(content, body)
            if self._key:  # Some servers repeat it.
                message = message.replace(self._key, "***")
            detail = f"HTTP {status} {message[:300]}".rstrip()
            after = response.headers.get("Retry-After", "")
            with contextlib.suppress(ValueError):
                pause = float(after)
            with contextlib.suppress(ValueError):
                pause = email.utils.parsedate_to_datetime(after).timestamp()
                pause -= time.time()
            is_final = pause > _PATIENCE_SECONDS or "insufficient_quota" in message
            # What no document causes: a wrong key, account, path or name of a model.
            is_final |= status < 408 and status != 400
            if is_final or status in (408, 409, 425, 429) or status >= 500:
                raise Unanswered(f"http_{status}", detail, pause, is_final)
            raise FailureError(Failure(SEARCH, "refused", detail))

    def _keep(self, statement: str, *values: str) -> list[Any]:
        """Reads or writes the journal: answers by the checksums of their requests."""
        try:
            with self._lock:
                return self._journal.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise JobError(
                f"an answer is not kept ({error}); make room below --output, and go on"
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


def _read_answer(content: bytearray, seconds: float) -> Answer:
    """The answer in the body of a response.

    Raises:
      Unanswered: the body is cut, or the answer was broken off.
      FailureError: a filter of the server holds the answer back.
    """
    try:
        body = json.loads(content)
        choice, usage = body["choices"][0], body.get("usage")
        message, reason = choice["message"], str(choice.get("finish_reason") or "")
        text = message.get("content") or message.get("refusal") or ""
        if not isinstance(text, str):  # It has parts, of text and other kinds.
            text = "".join(part.get("text", "") for part in text)
    except (ValueError, TypeError, LookupError, AttributeError):
        raise Unanswered("cut_answer", "the answer is cut, or no answer") from None
    is_refused = message.get("refusal") and not REFUSAL.match(text)  # in other words
    if is_refused or _WITHHELD.search(reason.lower()):
        raise FailureError(Failure(SEARCH, "content_filter", "the answer is held back"))
    if _BROKEN.search(reason.lower()):
        raise Unanswered("cut_answer", f"the server broke it off: {reason[:40]!a}")
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
        asked = json.dumps(body).replace("\\", "")
        parts = message.replace("\\", "")
        ends = range(_QUOTED_CHARACTERS, len(parts) + 1)
        if not any(parts[end - _QUOTED_CHARACTERS : end] in asked for end in ends):
            return message
    return ""
