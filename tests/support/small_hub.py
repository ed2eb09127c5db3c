"""A server on loopback that answers as the Hugging Face hub does."""

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What the hub says of a repository that it does not give.
GATED, UNKNOWN, LIMITED = (403, "GatedRepo"), (404, "RepoNotFound"), (429, "")


class SmallHub(http.server.ThreadingHTTPServer):
    """Serves folders as the commits of repositories.

    Attributes:
      commits: the folder of each commit, by repository.
      refs: the commit of each branch, by repository.
      refusals: the status and the code of repositories that are refused.
      requests: the method and the path of each, in order.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.commits: dict[str, dict[str, Path]] = {}
        self.refs: dict[str, dict[str, str]] = {}
        self.refusals: dict[str, tuple[int, str]] = {}
        self.requests: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def push(self, repository: str, folder: Path, branch: str = "main") -> str:
        """Makes a folder the head of a branch; returns the commit."""
        commit = hashlib.sha1(f"{repository} {folder}".encode()).hexdigest()
        self.commits.setdefault(repository, {})[commit] = folder
        self.refs.setdefault(repository, {})[branch] = commit
        return commit


class _Answer(http.server.BaseHTTPRequestHandler):
    server: SmallHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        words = path.removeprefix("/api/models").strip("/").split("/")
        repository, (kind, *rest) = "/".join(words[:2]), words[2:] or ["revision"]
        refusal = self.server.refusals.get(repository)
        if repository not in self.server.commits or refusal:
            return self._send(*(refusal or UNKNOWN))
        commits, refs = self.server.commits[repository], self.server.refs[repository]
        known = [*refs, *commits]
        wanted = "/".join(rest) or "main"
        revision = next(
            (each for each in known if f"{wanted}/".startswith(f"{each}/")), ""
        )
        if not revision:
            return self._send(404, "RevisionNotFound")
        commit = refs.get(revision, revision)
        file = commits[commit] / wanted.removeprefix(revision).strip("/")
        if kind == "revision":
            return self._send(200, body=json.dumps({"id": repository, "sha": commit}))
        if kind == "tree":
            tree = [
                {"type": "file", "path": str(each.relative_to(file)), "oid": "0" * 40}
                | {"size": each.stat().st_size}
                for each in sorted(file.rglob("*"))
                if each.is_file()
            ]
            return self._send(200, body=json.dumps(tree))
        if not file.is_file():
            return self._send(404, "EntryNotFound")
        content = file.read_bytes()
        etag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit}
        return self._send(200, body=content, **headers)

    def _send(
        self, status: int, code: str = "", body: bytes | str = b"", **headers: str
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@contextlib.contextmanager
def small_hub() -> Iterator[SmallHub]:
    """A hub that runs for the length of the block."""
    with SmallHub() as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
