"""A server with the batches of OpenAI that has faults, on loopback."""

import contextlib
import email.parser
import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.chat_server import MODEL, completion


class BatchServer:
    """Answers the requests of a batch at its second look at it.

    Attributes:
      faults: by story, what the batches do in place of an answer, one after the other:
        a status, "expired", "missing", or parts of a `completion`.
      statuses: how the batches end, one after the other; "completed" where none is
        left. "failed" answers nothing, "lost" is not known any more.
      calls: by method and first part of the path, the statuses of the next calls;
        "cut" does what was asked, but does not answer.
      asked: how often each story was submitted; `batches`: all that were created.
      on_call: called with the method and path, before and after a call is done; the
        call is dropped if it returns True.
    """

    def __init__(
        self,
        faults: dict[int, list[Any]] | None = None,
        *,
        statuses: tuple[str, ...] = (),
        calls: dict[str, list[Any]] | None = None,
        on_call: Callable[[str, bool], Any] = lambda call, is_done: None,
    ) -> None:
        self.faults, self.calls, self.on_call = faults or {}, calls or {}, on_call
        self.asked: Counter[int] = Counter()
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self._statuses, self._ids = iter(statuses), itertools.count()
        self._looks: Counter[str] = Counter()

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serves in a thread; gives the `--bundle`."""

        class Handler(BaseHTTPRequestHandler):
            do_POST = do_GET = lambda request: self._handle(request)
            log_message = lambda *_: None  # noqa: E731

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,)).start()
            try:
                yield f"openai-batch://127.0.0.1:{server.server_port}/v1#{MODEL}"
            finally:
                server.shutdown()

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        sent = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        path, _, query = request.path.removeprefix("/v1/").partition("?")
        call = f"{request.command} {path}"
        if self.on_call(call, False):
            return request.connection.close()
        kind = " ".join(re.findall(r"[A-Za-z]+", call)[:2])
        fault = self.calls.get(kind) and self.calls[kind].pop(0)
        found: Any = (
            None if isinstance(fault, int) else self._do(call, sent, query, request)
        )
        self.on_call(call, True)
        if fault == "cut":
            return request.connection.close()
        status = fault if isinstance(fault, int) else 404 if found is None else 200
        content = found if isinstance(found, bytes) else json.dumps(found).encode()
        request.send_response(status)
        if status == 429:
            request.send_header("Retry-After", "0.1")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        with contextlib.suppress(ConnectionError):
            request.wfile.write(content)

    def _do(self, call: str, sent: bytes, query: str, request: Any) -> Any:
        match call.split("/"):
            case ["POST files"]:
                head = f"Content-Type: {request.headers['Content-Type']}\n\n".encode()
                parts = email.parser.BytesParser().parsebytes(head + sent).get_payload()
                return {"id": self._store(parts[-1].get_payload(decode=True))}
            case ["GET files", file_id, "content"]:
                return self.files.get(file_id)
            case ["POST batches"]:
                batch = {**json.loads(sent), "id": f"batch_{next(self._ids)}"}
                batch["status"] = next(self._statuses, "completed")
                self.batches[batch["id"]] = batch
                if batch["status"] != "failed":
                    self.asked.update(map(self._story, self._lines(batch)))
                return {**batch, "status": "validating"}
            case ["GET batches"]:  # Two a page, the newest first.
                ids = [*self.batches][::-1]
                if after := re.search("after=([^&]+)", query):
                    ids = ids[ids.index(after[1]) + 1 :]
                return {
                    "data": [*map(self.batches.get, ids[:2])],
                    "has_more": ids[2:] != [],
                }
            case ["GET batches", batch_id]:
                return self._look(self.batches[batch_id])

    def _look(self, batch: dict[str, Any]) -> Any:
        self._looks[batch["id"]] += 1
        if batch["status"] == "lost":
            return None
        if batch["status"] == "failed":
            return {**batch, "errors": {"data": [{"message": "the file has\nno end"}]}}
        if self._looks[batch["id"]] == 1:
            return {**batch, "status": "in_progress", "request_counts": None}
        if "output_file_id" not in batch:
            self._answer(batch)
        return batch

    def _answer(self, batch: dict[str, Any]) -> None:
        """Writes the answers from the last to the first, the last of them twice."""
        answers, errors = [], []
        for line in reversed(self._lines(batch)):
            story = self._story(line)
            fault = self.faults.get(story) and self.faults[story].pop(0)
            made = {"id": "r", "custom_id": line["custom_id"], "error": None}
            if fault == "expired":
                error = {"code": "batch_expired", "message": "it could not be executed"}
                errors.append({**made, "response": None, "error": error})
            elif isinstance(fault, int):
                body = {"error": {"message": f"story {story} is bad"}}
                response = {"status_code": fault, "request_id": "", "body": body}
                errors.append({**made, "response": response})
            elif fault != "missing":
                body = completion(story, **(fault or {}))
                # As of Llama Stack, where the body is text.
                body = json.dumps(body) if story % 2 else body
                answers.append({**made, "response": {"status_code": 200, "body": body}})
        batch["output_file_id"] = self._store(_jsonl([*answers, *answers[-1:]]))
        batch["error_file_id"] = self._store(_jsonl(errors)) if errors else None
        counts = {"completed": len(answers), "failed": len(errors)}
        batch["request_counts"] = {"total": len(answers) + len(errors), **counts}

    def size(self, batch_id: str) -> int:
        """The number of requests of a batch."""
        return len(self._lines(self.batches[batch_id]))

    def _lines(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        return [*map(json.loads, self.files[batch["input_file_id"]].splitlines())]

    def _story(self, line: dict[str, Any]) -> int:
        content = line["body"]["messages"][0]["content"]
        return int(re.search(r"Story (\d+)", content)[1])  # pyright: ignore[reportOptionalSubscript]  # All have one.

    def _store(self, content: bytes) -> str:
        name = f"file-{next(self._ids)}"
        self.files[name] = content
        return name


def _jsonl(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
