"""Calls `precis doctor` and reads its findings; faults that tests seed for it."""

import contextlib
import importlib.metadata
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from precis.pipelines.doctor.findings import Diagnosis
from support.command_line import exit_code


def diagnose(capsys: Any, *argv: str) -> tuple[int, list[Diagnosis]]:
    """The exit code of `precis doctor --json ...` and its findings."""
    capsys.readouterr()
    code = exit_code("doctor", "--json", *argv)
    content = json.loads(capsys.readouterr().out)
    return code, [Diagnosis(**finding) for finding in content["findings"]]


def problems(findings: Iterable[Diagnosis]) -> list[Diagnosis]:
    """The findings that are problems."""
    return [finding for finding in findings if finding.level == "problem"]


def the_problem(findings: Iterable[Diagnosis]) -> Diagnosis:
    """The only problem among findings."""
    (problem,) = problems(findings)
    return problem


def hide_distribution(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    """Makes a distribution look as if it was not installed."""
    find = importlib.metadata.version

    def version(name: str) -> str:
        if name == hidden:
            raise importlib.metadata.PackageNotFoundError(name)
        return find(name)

    monkeypatch.setattr(importlib.metadata, "version", version)


def install_metadata(folder: Path, name: str, version: str, *lines: str) -> None:
    """Writes what pip leaves of a distribution, without its code."""
    described = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    described.mkdir(parents=True)
    content = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines]
    (described / "METADATA").write_text("\n".join(content) + "\n")


@contextlib.contextmanager
def serve_json(pages: Mapping[str, Any]) -> Iterator[str]:
    """A server that answers a GET of each page with its JSON, and of any other with
    404; yields host:port.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(pages.get(self.path)).encode()
            self.send_response(200 if self.path in pages else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keeps the output of the tests quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
