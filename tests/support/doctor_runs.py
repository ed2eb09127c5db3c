"""Calls `precis doctor` and reads its findings; faults that tests seed for it."""

import contextlib
import importlib.abc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from precis.pipelines.doctor.findings import Check, Diagnosis
from precis.pipelines.doctor.request import CommandLine, Request, read_request
from support.command_line import exit_code


def request_of(command: str, *beam_args: str, **flags: Any) -> Request:
    """The request that a command line gives."""
    return read_request(CommandLine(command, flags, beam_args))


def diagnose(capsys: Any, *argv: str) -> tuple[int, list[Diagnosis]]:
    """The exit code of `precis doctor --json ...` and its findings."""
    capsys.readouterr()
    code = exit_code("doctor", "--json", *argv)
    content = json.loads(capsys.readouterr().out)
    return code, [Diagnosis(**finding) for finding in content["findings"]]


def problems(findings: Iterable[Diagnosis] | Check[Any]) -> list[Diagnosis]:
    """The findings that are problems."""
    return [finding for finding in findings if finding.level == "problem"]


def the_problem(findings: Iterable[Diagnosis] | Check[Any]) -> Diagnosis:
    """The only problem among findings."""
    (problem,) = problems(findings)
    return problem


class HidingFinder(importlib.abc.MetaPathFinder):
    """Finds no module of a name, as if it was not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname.partition(".")[0] == self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def hide_module(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Makes a module impossible to import."""
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] == name:
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "meta_path", [HidingFinder(name), *sys.meta_path])


def install_metadata(folder: Path, name: str, version: str, *lines: str) -> None:
    """Writes what pip leaves of a distribution, without its code."""
    described = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    described.mkdir(parents=True)
    content = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines]
    (described / "METADATA").write_text("\n".join(content) + "\n")


@contextlib.contextmanager
def small_disk(folder: Path, *, size: str, options: str = "") -> Iterator[Path]:
    """A file system of a few kilobytes, mounted on a folder; skips the test where this
    process may not mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = f"size={size}{options}"
    command = ["mount", "-t", "tmpfs", "-o", settings, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill_disk(folder: Path) -> None:
    """Writes a file until the disk is full."""
    with contextlib.suppress(OSError), open(folder / "other.bin", "wb", 0) as file:
        while True:
            file.write(bytes(4096))


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


def write_machine(
    root: Path, *, free_kb: int, limit: str | None = None, used: int = 0
) -> str:
    """Files of `proc` and `sys` of a machine below a folder, with a container's limit
    of memory.
    """
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text(
        f"MemTotal:  16000000 kB\nMemFree: 1 kB\nMemAvailable: {free_kb} kB\n"
    )
    (root / "proc" / "self" / "cgroup").write_text("0::/pod/worker\n")
    group = root / "sys" / "fs" / "cgroup" / "pod"
    group.mkdir(parents=True)
    if limit is not None:
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{used}\n")
        (group / "memory.stat").write_text("anon 5\ninactive_file 1000\n")
    return os.fspath(root)


def run_check(check: Check[Any]) -> tuple[list[Diagnosis], Any]:
    """The findings of a check, and what it returns at its end."""
    findings = []
    while True:
        try:
            findings.append(next(check))
        except StopIteration as end:
            return findings, end.value
