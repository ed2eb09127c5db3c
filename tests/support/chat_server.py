"""A server with the chat protocol of OpenAI that has faults, on loopback."""

import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "tiny/model"
# What llama.cpp says where the context that its slots share is full, and where a prompt
# is longer than it.
SHED = {"error": {"code": 500, "message": "Context size has been exceeded."}}
EXCEEDED = "request ({} tokens) exceeds the available context size ({} tokens)"


class ChatServer:
    """Answers `Story 3 ...` with `Story 3 is short.`, and counts.

    Attributes:
      faults: by story, what it does in place of an answer, one request after the other;
        the last one stays where `...` stands behind it.
      lives: answers after which no request is answered any more.
      tokens: of a prompt; 40 where none is given.
      shared: tokens of all requests that run; more of them end all of these.
      context: tokens of a prompt; a longer one is refused, or cut as Ollama does.
      cuts: whether it is cut.
      asked, paid: requests, and complete answers, by story.
      most_at_once: requests that ran at the same time.
      headers, bodies, times: of all requests, in seconds of `time.time`.
    """

    def __init__(
        self,
        faults: dict[int, list[Any]],
        *,
        lives: float = 1e9,
        tokens: Callable[[str], int] = lambda prompt: 40,
        shared: float = 1e9,
        context: float = 1e9,
        cuts: bool = False,
    ) -> None:
        self.faults = {story: list(each) for story, each in faults.items()}
        self.lives, self._tokens = lives, tokens
        self.shared, self.context, self.cuts = shared, context, cuts
        self._held: dict[int, int] = {}
        self.asked: Counter[int] = Counter()
        self.paid: Counter[int] = Counter()
        self.most_at_once = self._running = 0
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.times: list[float] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serves in a thread; gives the `--bundle`."""

        class Handler(BaseHTTPRequestHandler):
            do_POST = lambda request: self._answer(request)  # noqa: E731
            log_message = lambda *_: None  # noqa: E731

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as self._server:
            threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()
            try:
                yield f"openai://127.0.0.1:{self._server.server_port}/v1#{MODEL}"
            finally:
                self._server.shutdown()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        found, count = re.search(r"Story (\d+)", prompt), self._tokens(prompt)
        story = int(found[1]) if found else -1
        with self._lock:
            self.headers.append(dict(request.headers))
            self.bodies.append(body)
            self.times.append(time.time())
            self.asked[story] += 1
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
            if self.paid.total() >= self.lives:
                self._server.socket.close()  # No connection is taken any more.
                return request.connection.close()
            faults = self.faults.get(story, [])
            fault = faults[0] if faults else None
            if faults and faults[1:] != [...]:
                faults.pop(0)
            self._held[id(request)] = count
            if sum(self._held.values()) > self.shared:
                self._held.clear()
            if fault == "beside":
                fault = (500, SHED) if self._running > 1 else None
            if count > self.context and not self.cuts:
                fault = (400, {"error": EXCEEDED.format(count, self.context)})
        time.sleep(0.01)
        with self._lock:
            self._running -= 1
            if self._held.pop(id(request), None) is None:
                fault = (500, SHED)
        if fault == "stall":
            time.sleep(1.5)
        elif fault == "drip":
            with contextlib.suppress(ConnectionError):
                self._send(request, 200, completion(story), "drip")
        elif isinstance(fault, tuple):
            self._send(request, *fault)
        else:
            answer = completion(story, **(fault or {}))
            answer["usage"]["prompt_tokens"] = min(count, self.context)
            self._send(request, 200, answer)
            self.paid[story] += 1

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, body: Any, how: str = ""
    ) -> None:
        content = json.dumps(body).encode()
        request.send_response(status)
        if status == 429:
            request.send_header("Retry-After", how or "0.05")
        size = len(content) + 8 * (how == "drip")
        request.send_header("Content-Length", str(size))
        request.end_headers()
        for _ in range(8 * (how == "drip")):
            request.wfile.write(b" ")
            time.sleep(0.2)
        request.wfile.write(content[: -len(content) // 2] if how == "cut" else content)


def completion(story: int, text: str = "", **choice: Any) -> dict[str, Any]:
    """An answer with 40 tokens read and 5 written; `choice` replaces parts of it."""
    tokens = [{"token": "x", "logprob": -value / 8} for value in (1, 2, 3, 4, 5)]
    message = {"content": text or f"Story {story} is short. It has {story} lines."}
    whole = {"message": message, "finish_reason": "stop"}
    return {
        "choices": [{**whole, "logprobs": {"content": tokens}, **choice}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 5},
    }
