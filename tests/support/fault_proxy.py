"""An HTTP proxy in front of an emulator of an object store, which makes faults.

    with fault_proxy(endpoint, Faults(one_in=10, seed=3)) as proxied: ...

Which requests fail is a function of the seed and of their order:

    unavailable   503, and the store does not see the request
    reset         the connection is reset, and the store does not see the request
    lost          the store does what was asked, and the answer is lost
    stall         no answer for `stall_seconds`, then the connection is closed
"""

import collections
import contextlib
import dataclasses
import hashlib
import http.client
import http.server
import socket
import struct
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

KINDS = ("unavailable", "reset", "lost", "stall")
_HOP_HEADERS = ("connection", "transfer-encoding", "keep-alive", "content-length")


@dataclasses.dataclass(frozen=True)
class Faults:
    """Which faults a proxy makes.

    Attributes:
      one_in: about how many requests there are for each fault; 0 makes none.
      seed: chooses the requests.
      kinds: of faults.
      stall_seconds: of a stalled request; longer than the client waits.
      forbidden: answer every request with 403.
    """

    one_in: int = 0
    seed: int = 0
    kinds: tuple[str, ...] = KINDS
    stall_seconds: float = 5.0
    forbidden: bool = False

    def kind(self, number: int) -> str:
        """The fault of the request of that number, from 0 on; "" if it has none."""
        if not self.one_in:
            return ""
        digest = hashlib.sha256(f"{self.seed}:{number}".encode()).digest()
        if int.from_bytes(digest[:4], "big") % self.one_in:
            return ""
        return self.kinds[digest[4] % len(self.kinds)]


class FaultProxy(http.server.ThreadingHTTPServer):
    """A running proxy.

    Attributes:
      made: how many faults of each kind were made.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str, faults: Faults) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.faults = faults
        self._requests = 0
        self.made: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_fault(self) -> str:
        """Counts a request and says what goes wrong with it."""
        with self._lock:
            kind = self.faults.kind(self._requests)
            self._requests += 1
            self.made[kind] += bool(kind)
            return kind

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that have gone are no news."""


@contextlib.contextmanager
def fault_proxy(target: str, faults: Faults) -> Iterator[FaultProxy]:
    """Runs a proxy in front of the endpoint `target`."""
    with FaultProxy(target, faults) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    """Hands one request on and its answer back."""

    protocol_version = "HTTP/1.1"
    server: FaultProxy

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def handle_request_of_any_kind(self) -> None:
        body = self._body()
        if self.server.faults.forbidden:
            self._answer(403, [], b'{"error": {"code": 403, "message": "denied"}}')
            return
        fault = self.server.next_fault()
        if fault == "unavailable":
            self._answer(503, [], b"Service Unavailable")
        elif fault == "reset":
            self._reset()
        else:
            status, headers, content = self._forward(body)
            if fault == "lost":
                self._reset()
            elif fault == "stall":
                time.sleep(self.server.faults.stall_seconds)
                self._reset()
            else:
                self._answer(status, headers, content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = (
        handle_request_of_any_kind
    )

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        address = urllib.parse.urlsplit(self.server.target)
        connection = http.client.HTTPConnection(address.netloc, timeout=60)
        with contextlib.closing(connection):
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in (*_HOP_HEADERS, "expect")
            }
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes
    ) -> None:
        self.send_response(status)
        length = len(content)
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = int(value)
            if name.lower() not in (*_HOP_HEADERS, "date", "server"):
                # An upload in several requests is to come back here.
                value = value.replace(self.server.target, self.server.endpoint)
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _reset(self) -> None:
        """Closes the connection so that the client sees a reset and no end."""
        no_linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
        # The streams hold the socket open.
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
        self.close_connection = True
