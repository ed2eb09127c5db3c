"""A server on loopback that answers as the Hugging Face hub does."""

import contextlib
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

# What the hub says of a repository that it does not give; a gated one can be listed.
GATED, UNKNOWN, LIMITED = (403, "GatedRepo"), (404, "RepoNotFound"), (429, "")


_PAGE = 3  # entries of a folder in one answer


class SmallHub(http.server.ThreadingHTTPServer):
    """Serves folders as the commits of repositories.

    Attributes:
      commits: the folder of each commit, by repository.
      refs: the commit of each branch, by repository.
      refusals: the status and the code of repositories that are refused.
      requests: the method, the path and the range of each, in order.
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
        url = urlsplit(self.path)
        path, asked = unquote(url.path), self.headers.get("Range", "")
        self.server.requests.append(f"{self.command} {path} {asked}".strip())
        place = re.sub("^/(api/|lfs/)?(models/)?", "", path)
        words = place.strip("/").split("/")
        length = 3 if words[0] == "datasets" else 2
        repository = "/".join(words[:length])
        kind, *rest = words[length:] or ["revision"]
        refusal = self.server.refusals.get(repository)
        is_there = repository in self.server.commits
        if refusal == GATED and is_there and kind in ("revision", "tree"):
            refusal = None
        if refusal or not is_there:
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
        if kind in ("revision", "auth-check"):
            return self._send(200, body=json.dumps({"id": repository, "sha": commit}))
        if kind == "tree" and file.is_dir():
            return self._send_tree(file, commits[commit], parse_qs(url.query))
        if not file.is_file():
            return self._send(404, "EntryNotFound")
        content = file.read_bytes()
        etag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit}
        if file.suffix == ".parquet" and not path.startswith("/lfs/"):
            size = str(len(content))
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": size}
            location = self.server.url + "/lfs" + url.path
            return self._send(302, **headers, Location=location)
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", asked):
            start, stop = int(found[1]), int(found[2] or len(content) - 1) + 1
            return self._send(206, body=content[start:stop], **headers)
        return self._send(200, body=content, **headers)

    def _send_tree(self, folder: Path, root: Path, query: dict[str, Any]) -> None:
        """Lists a folder in pages, with all below it if the query says so."""
        is_recursive = query.get("recursive", [""])[0].lower() == "true"
        paths = sorted(folder.rglob("*") if is_recursive else folder.iterdir())
        first = int(query.get("cursor", ["0"])[0])
        tree = []
        for path in paths[first : first + _PAGE]:
            oid = hashlib.sha1(path.read_bytes() if path.is_file() else b"").hexdigest()
            kind = "file" if path.is_file() else "directory"
            size = path.stat().st_size if path.is_file() else 0
            name = str(path.relative_to(root))
            tree.append({"type": kind, "path": name, "oid": oid, "size": size})
        headers = {}
        if first + _PAGE < len(paths):
            place = urlsplit(self.path).path
            next_page = f"{place}?recursive={is_recursive}&cursor={first + _PAGE}"
            headers["Link"] = f'<{self.server.url}{next_page}>; rel="next"'
        self._send(200, body=json.dumps(tree), **headers)

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


def use_hub(patch: pytest.MonkeyPatch, url: str, folder: Path) -> None:
    """Lets huggingface_hub ask a hub, with its cache in a folder."""
    from huggingface_hub import constants

    # The client has read its environment; the processes that this one starts have it.
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, url)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    patch.setattr(constants, "ENDPOINT", url)
    patch.setattr(constants, "HF_HUB_CACHE", str(folder / "hf" / "hub"))
    patch.setenv("HF_ENDPOINT", url)
    patch.setenv("HF_HOME", str(folder / "hf"))


@contextlib.contextmanager
def small_hub() -> Iterator[SmallHub]:
    """A hub that runs for the length of the block."""
    with SmallHub() as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
