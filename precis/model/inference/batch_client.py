"""Requests in batches: files that a server answers within a day, for a lower price.

A round asks every prompt once. A prompt without an answer is noted, and the requests
that were noted become the batches of the next round. The files of a round are in a
folder that any machine may read, so that a job goes on elsewhere:

    requests-00003.jsonl   {custom_id, method, url, body}, a request a line
    requests-00003.json    {requests, input_file_id, id, status}, as far as known
    answers-00003.jsonl    {custom_id, response: {status_code, body}, error}
    errors-00003.jsonl     the same, of requests without an answer

A `custom_id` is the checksum of its body: equal requests are asked once, and answers
may come in any order, repeatedly, or from another machine.

No request is submitted twice. Before a batch is created, its `input_file_id` is
written; if its `id` is not written after that, the batch is looked for on the server.
"""

import contextlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Container, Iterator, Mapping
from typing import Any

from precis.model import files
from precis.model.errors import JobError
from precis.model.inference.batches import SEARCH
from precis.model.inference.chat_client import (
    Answer,
    ChatClient,
    read_answer,
    refusal,
    with_way_out,
)
from precis.model.isolation import NO_ANSWER, PENDING, Failure
from precis.model.progress.stages import say, stage

_URL = "/v1/chat/completions"
# How often a request is submitted, a batch is created, and an unknown batch is looked
# for; and how often any other call is tried.
_TRIES = 3
_CALLS = 6
_MOST_BYTES = 200_000_000  # of a file of requests
_LONGEST_PAUSE_SECONDS = 60.0
_ENDED = ("completed", "failed", "expired", "cancelled", "lost")
# The failures of servers that cannot list batches.
_CANNOT_LIST = ("http_404", "http_405", "http_501")
_REQUESTS = re.compile(r"requests-(\d+)\.jsonl")
_TABLES = (
    "PRAGMA synchronous = OFF",
    "PRAGMA journal_mode = OFF",
    "CREATE TABLE IF NOT EXISTS noted (request PRIMARY KEY, body)",
    "CREATE TABLE IF NOT EXISTS tries "
    "(request, source, counts, status, content, PRIMARY KEY (request, source))",
)


class BatchClient:
    """Answers prompts from files of answers; takes the place of a `ChatClient`.

    Attributes:
      requests, closing: of the `ChatClient`.
    """

    def __init__(self, chat: ChatClient, pause: float, answers_from: str = "") -> None:
        """Connects to nothing yet.

        Args:
          chat: makes requests and calls the server. Its journal is a file of this job,
            which the clients of its tasks share.
          pause: the seconds before a batch is looked at for the second time.
          answers_from: the folder that must hold every answer; if "", a prompt without
            an answer waits for the next round.
        """
        self._chat, self._pause, self._answers_from = chat, pause, answers_from
        self.requests, self.closing = chat.requests, chat.closing
        self._loaded: set[str] = set()
        for statement in _TABLES:
            chat.keep(statement)

    def ask(self, prompt: str) -> Answer | Failure:
        """The answer to a prompt, or a failure. A prompt without an answer is noted."""
        body = self._chat.body(prompt)
        key = files.sha256_json(body)
        if known := self._chat.known(key):
            return known
        select = (
            "SELECT counts, status, content FROM tries WHERE request = ? "
            "ORDER BY source"
        )
        failure, tries = None, 0
        for counts, status, content in self._chat.keep(select, key):
            failure, tries = _failure(status, content, prompt), tries + counts
            if not failure.is_of_server:
                return failure
        if failure and (self._answers_from or tries >= _TRIES):
            return failure
        statement = "INSERT OR IGNORE INTO noted VALUES (?, ?)"
        self._chat.keep(statement, key, json.dumps(body))
        if self._answers_from:
            detail = f"{self._answers_from} holds no answer to its request"
            return Failure(SEARCH, NO_ANSWER, detail)
        return Failure(SEARCH, PENDING, "its request waits for the next batch")

    def count_noted(self) -> int:
        """The number of requests without an answer."""
        return self._chat.keep("SELECT count(*) FROM noted")[0][0]

    def write_requests(self, folder: str, most: int) -> int:
        """Writes the requests that were noted to files, and forgets them.

        Args:
          folder: the folder of the files.
          most: the maximum number of requests in a file.

        Returns:
          The number of files.
        """
        there = [int(_REQUESTS.findall(path)[-1]) for path in _request_files(folder)]
        count, number = 0, 1 + max(there, default=-1)
        lines = self._noted()
        line = next(lines, b"")
        while line:
            path = files.join(folder, f"requests-{number + count:05d}.jsonl")
            with files.write_aside(path) as file:
                requests, size, limit = 0, 0, max(_MOST_BYTES, len(line))
                while line and requests < most and size + len(line) <= limit:
                    file.write(line)
                    requests, size = requests + 1, size + len(line)
                    line = next(lines, b"")
            count += 1
        self._chat.keep("DELETE FROM noted")
        return count

    def _noted(self) -> Iterator[bytes]:
        """The noted requests as lines, in the order of their checksums."""
        select = "SELECT request, body FROM noted WHERE request > ? ORDER BY request"
        key = ""
        while rows := self._chat.keep(f"{select} LIMIT 1000", key):
            for key, body in rows:
                line = {"custom_id": key, "method": "POST", "url": _URL}
                # In ASCII, as some servers take U+2028 for the end of a line.
                yield json.dumps({**line, "body": json.loads(body)}).encode() + b"\n"

    def load_batches(self, folder: str, given_up: Container[str] = ()) -> None:
        """Loads the answers of the batches that have ended since the last call.

        Args:
          folder: the folder of their files.
          given_up: the ids of batches whose failures are not counted as tries.
        """
        for path in _request_files(folder):
            state = _state(path)
            if path in self._loaded or state.get("status") not in _ENDED:
                continue
            self._loaded.add(path)
            counts = state["id"] not in given_up
            for answers in filter(files.exists, _answer_files(path).values()):
                self._load(answers, path, counts)
            detail = f"batch {state['id']} ended as {state['status']} without an answer"
            with files.open_read(path) as lines:
                for line in lines:
                    self._keep_failure(
                        json.loads(line)["custom_id"], path, counts, None, detail
                    )

    def load_answers(self, folder: str) -> None:
        """Loads the files of answers in a folder, which others may have written."""
        for path in files.glob(files.join(folder, "*.jsonl")):
            self._load(path, path, counts=True)

    def _load(self, path: str, source: str, counts: bool) -> None:
        """Loads a file of answers.

        Args:
          path: the file.
          source: the file that stands for its batch: a request fails in it once.
          counts: whether the failures count as tries.
        """
        insert, others = "INSERT OR IGNORE INTO answers VALUES (?, ?)", 0
        with files.open_read(path) as lines:
            for line in filter(None, map(bytes.strip, lines)):
                if not (read := _read_line(line)):
                    others += 1
                    continue
                key, status, text = read
                content = bytearray(text.encode())
                answer = refusal(status, content, "") or read_answer(content, 0.0)
                if isinstance(answer, Answer):
                    self._chat.keep(insert, key, json.dumps(answer))
                else:
                    self._keep_failure(key, source, counts, status, text)
        if others:
            say(
                f"precis summarize: {path}: {others} of its lines are not the answers "
                "of a batch, and were left out"
            )

    def _keep_failure(self, key: str, *values: Any) -> None:
        """Keeps that a source has no answer to a request, unless it has one."""
        self._chat.keep(
            "INSERT OR IGNORE INTO tries SELECT ?, ?, ?, ?, ? "
            "WHERE NOT EXISTS (SELECT 1 FROM answers WHERE request = ?)",
            *(key, *values, key),
        )

    def check(self) -> None:
        """Checks that the server can be reached with the key.

        Raises:
          JobError: it cannot.
        """
        listed = self._call("GET", "batches", field="data", params={"limit": 1})
        if isinstance(listed, Failure) and listed.reason not in _CANNOT_LIST:
            raise self._error("it takes no batches", listed)

    def settle(self, folder: str, *, waits: bool) -> list[dict[str, Any]]:
        """Submits files of requests, and downloads the answers of their batches.

        Args:
          folder: the folder of the files.
          waits: whether to wait until every batch has ended.

        Returns:
          The states of the batches that have not ended.

        Raises:
          JobError: the server refuses a file or every batch, or does not answer.
        """
        states = {path: self._submit(path) for path in _request_files(folder)}
        running = {k: v for k, v in states.items() if v.get("status") not in _ENDED}
        if not running:
            return []
        total, pause = sum(each["requests"] for each in running.values()), self._pause
        done, failed = dict.fromkeys(running, 0), list[str]()
        with stage("batches", total=total, unit="requests") as progress:
            while True:
                for path, state in [*running.items()]:
                    answered = self._look(path, state)
                    progress.advance(max(0, answered - done[path]))
                    done[path] = max(done[path], answered)
                    if state["status"] in _ENDED:
                        del running[path]
                    if "failure" in state:
                        failed.append(state["failure"])
                if len(failed) == len(done):
                    raise JobError(failed[-1])
                if not (running and waits):
                    return [*running.values()]
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _submit(self, path: str) -> dict[str, Any]:
        """Uploads a file of requests and creates its batch, as far as that was not
        done; returns the state of the batch.
        """
        state = _state(path)
        if "id" in state:
            return state
        is_new = "input_file_id" not in state
        if is_new:
            with files.open_read(path) as file:
                state["requests"] = sum(1 for _ in file)
            with files.open_read(path) as file:
                content = (path.rpartition("/")[2], file, "application/jsonl")
                sent: Any = {"data": {"purpose": "batch"}, "files": {"file": content}}
                uploaded = self._call("POST", "files", **sent)
            if isinstance(uploaded, Failure):
                raise self._error(f"it refused {path}", uploaded)
            state["input_file_id"] = uploaded["id"]
            files.write_json(_state_path(path), state)
        request = {"endpoint": _URL, "completion_window": "24h"}
        request["input_file_id"] = state["input_file_id"]
        batch: Any = None
        for number in range(_TRIES):
            if number or not is_new:  # An earlier call may have created the batch.
                time.sleep(self._pause)
                batch = self._find(path, state)
            batch = batch or self._call("POST", "batches", tries=1, json=request)
            if not (isinstance(batch, Failure) and batch.is_of_server):
                break
        if isinstance(batch, Failure):
            raise self._error(f"it creates no batch of {path}", batch)
        state["id"] = batch["id"]
        files.write_json(_state_path(path), state)
        return state

    def _find(self, path: str, state: Mapping[str, Any]) -> Any:
        """The batch of a file of requests on the server; None if there is none.

        Raises:
          JobError: the server does not list its batches.
        """
        seen: set[str] = set()
        params: dict[str, Any] = {"limit": 100}
        while True:
            page = self._call("GET", "batches", field="data", params=params)
            if isinstance(page, Failure):
                place = _state_path(path)
                raise JobError(
                    f"{self._chat.url}: it is not known whether a batch of {path} was "
                    f"created, as the server does not list its batches ({page.detail})"
                    f"; look there for a batch of file {state['input_file_id']}: if "
                    f'there is one, add its "id" to {place}, otherwise remove {place}; '
                    "then run the same command to continue"
                )
            for batch in page["data"]:
                is_same = batch.get("input_file_id") == state["input_file_id"]
                if is_same and batch.get("status") != "failed":
                    return batch
            ids = [batch["id"] for batch in page["data"]]
            # Some servers return their only page again and again.
            if not page.get("has_more", True) or {*ids} <= seen:
                return None
            seen.update(ids)
            params["after"] = ids[-1]

    def _look(self, path: str, state: dict[str, Any]) -> int:
        """Reads the status of a batch into its state, and downloads its answers if it
        has ended; returns the number of requests that the server is done with.

        Raises:
          JobError: the server does not answer.
        """
        batch: Any = {}
        for _ in range(_TRIES):  # A new batch may not be known everywhere at once.
            batch = self._call("GET", f"batches/{state['id']}")
            if not (isinstance(batch, Failure) and batch.reason == "http_404"):
                break
            time.sleep(self._pause)
            batch = {"status": "lost"}
        if isinstance(batch, Failure):
            raise self._error(f"the status of batch {state['id']}", batch)
        state["status"] = str(batch.get("status")).lower()
        has_answers = False
        if state["status"] in _ENDED:
            for kind, answers in _answer_files(path).items():
                if file_id := batch.get(f"{kind}_file_id"):
                    has_answers |= self._download(file_id, answers)
            if state["status"] != "completed":
                say(
                    f"precis summarize: batch {state['id']} is {state['status']}; "
                    "its requests without an answer are submitted again"
                )
            if state["status"] == "failed" and not has_answers:
                # As if never written: the next round asks its requests again, once
                # batches beside it no longer use up the limit of the account.
                files.remove(_state_path(path))
                files.remove(path)
                state["failure"] = (
                    f"{self._chat.url}: batch {state['id']} failed, so none of its "
                    f"{state['requests']} requests was answered: "
                    f"{_first_error(batch)}; correct the cause, or set fewer "
                    "`batch_requests=` if the batch is too large; then run the same "
                    "command to submit them again"
                )
            else:
                files.write_json(_state_path(path), state)
        counts = batch.get("request_counts") or {}
        return (counts.get("completed") or 0) + (counts.get("failed") or 0)

    def _download(self, file_id: str, path: str) -> bool:
        """Downloads a file of the server; returns False if it does not exist there."""
        with tempfile.TemporaryFile() as part:

            def get() -> tuple[bytearray | Failure, float]:
                part.seek(0)
                part.truncate()
                return self._chat.exchange("GET", f"files/{file_id}/content", into=part)

            done = self._chat.retry(get, _CALLS)
            if isinstance(done, Failure):
                if done.reason == "http_404":
                    say(f"precis summarize: the server has lost its file {file_id}")
                    return False
                raise self._error(f"its file {file_id}", done)
            part.seek(0)
            with files.write_aside(path) as file:
                shutil.copyfileobj(part, file)
        return True

    def _call(
        self,
        method: str,
        path: str,
        tries: int = _CALLS,
        field: str = "id",
        **sent: Any,
    ) -> dict[str, Any] | Failure:
        """The object that the server returns, with a field; or a failure."""
        exchange = self._chat.exchange
        content = self._chat.retry(lambda: exchange(method, path, **sent), tries)
        if isinstance(content, Failure):
            return content
        with contextlib.suppress(ValueError):
            value = json.loads(content)
            if isinstance(value, dict) and value.get(field) is not None:
                return value
        return Failure(SEARCH, "cut_answer", f"its answer has no {field!r}")

    def _error(self, what: str, failure: Failure) -> JobError:
        return JobError(
            f"{self._chat.url}: {what}: {failure.detail}; check that the server has "
            "/v1/files and /v1/batches, the path of `bundle=`, and the key in "
            "OPENAI_API_KEY and its account; then run the same command to continue"
        )


def batch_ids(folder: str) -> list[str]:
    """The ids of the batches whose files are in a folder."""
    states = map(_state, _request_files(folder))
    return [state["id"] for state in states if "id" in state]


def _request_files(folder: str) -> list[str]:
    names = filter(_REQUESTS.fullmatch, files.list_folder(folder))
    return [files.join(folder, name) for name in names]


def _answer_files(path: str) -> dict[str, str]:
    """The files of answers to a file of requests, by what the server calls them."""
    folder, _, name = path.rpartition("/")
    number = name.removeprefix("requests")
    kinds = {"output": "answers", "error": "errors"}
    return {kind: files.join(folder, f"{kinds[kind]}{number}") for kind in kinds}


def _state_path(path: str) -> str:
    return path.removesuffix("l")


def _state(path: str) -> dict[str, Any]:
    """The content of the file with the state of a batch; {} if there is none."""
    place = _state_path(path)
    if not files.exists(place):
        return {}
    way_out = "look for the batch on the server, and correct the file"
    return files.read_object(place, way_out=way_out, fields={"requests": int})


def _read_line(line: bytes) -> tuple[str, int, str] | None:
    """A line of a file of answers: the id of the request, the status and the content of
    the response; None if it is another line.
    """
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        read = json.loads(line)
        response, error = read.get("response") or {}, read.get("error")
        if response or error:
            body = response.get("body") or {"error": error}
            status = int(response.get("status_code") or 200)
            # Llama Stack writes the body as text in JSON.
            text = body if isinstance(body, str) else json.dumps(body)
            return str(read["custom_id"]), status, text
    return None


def _failure(status: int | None, text: str, prompt: str) -> Failure:
    """The failure in a response; without a status, the text says what is missing."""
    if status is None:
        return Failure(SEARCH, NO_ANSWER, text)
    content = bytearray(text.encode())
    failure: Any = refusal(status, content, prompt) or read_answer(content, 0.0)
    return with_way_out(failure)


def _first_error(batch: Mapping[str, Any]) -> str:
    """What a server says of a batch that failed, in one line."""
    with contextlib.suppress(LookupError, TypeError, AttributeError):
        return " ".join(str(batch["errors"]["data"][0]["message"]).split())[:300]
    return "the server does not say why"
