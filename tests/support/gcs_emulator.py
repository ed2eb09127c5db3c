"""An emulator of Google Cloud Storage: fake-gcs-server, which Go builds once.

    with gcs_emulator(buckets=["news"]) as endpoint:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)

The binary lies in `~/.cache/precis-tests`, or where `PRECIS_TEST_CACHE` says. Building
it takes minutes and the Go module proxy; afterwards it starts in a moment. Tests that
use it carry the marker `engines`.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

from support.processes import free_port

VERSION = "v1.56.1"
_MODULE = "github.com/fsouza/fake-gcs-server"
_BUILD_SECONDS = 1800
_START_SECONDS = 60


def cache_folder() -> Path:
    """The folder in which programs for tests are kept."""
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "precis-tests"
    return Path(os.environ.get("PRECIS_TEST_CACHE", default)).expanduser()


def emulator_program() -> Path:
    """The path of the emulator, which is built when it is asked for first.

    Raises:
      RuntimeError: Go is not installed.
      subprocess.CalledProcessError: it could not be built.
    """
    folder = cache_folder() / f"fake-gcs-server-{VERSION}"
    program = folder / "fake-gcs-server"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Several tests may ask at once.
        if not program.exists():
            if shutil.which("go") is None:
                raise RuntimeError(
                    "the emulator of Google Cloud Storage is built by Go, which is "
                    "not installed; install Go 1.24 or newer, or put the program "
                    f"at {program}"
                )
            subprocess.run(
                ["go", "install", f"{_MODULE}@{VERSION}"],
                env={**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0"},
                timeout=_BUILD_SECONDS,
                check=True,
            )
    return program


@contextlib.contextmanager
def gcs_emulator(
    *, buckets: Iterable[str] = (), data: Path | None = None
) -> Iterator[str]:
    """Runs an emulator and yields its endpoint, as in `http://127.0.0.1:40123`.

    Args:
      buckets: that are created, empty.
      data: a folder whose folders become buckets with the files in them. Objects lie
        in memory, and the folder is not written to.
    """
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [
        *(str(emulator_program()), "-scheme", "http", "-backend", "memory"),
        *("-host", "127.0.0.1", "-port", str(port), "-log-level", "error"),
        # Uploads in several requests go where this leads.
        *("-external-url", endpoint, "-public-host", f"127.0.0.1:{port}"),
        *(("-data", str(data)) if data else ()),
    ]
    process = subprocess.Popen(command)
    try:
        _wait_until_up(process, endpoint)
        for bucket in buckets:
            create_bucket(endpoint, bucket)
        yield endpoint
    finally:
        process.terminate()
        process.wait(timeout=30)


def create_bucket(endpoint: str, name: str) -> None:
    """Creates a bucket."""
    request = urllib.request.Request(
        f"{endpoint}/storage/v1/b?project=test",
        data=json.dumps({"name": name}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with _opener().open(request, timeout=30) as response:
        response.read()


def _opener() -> urllib.request.OpenerDirector:
    """Opens URLs of this machine, whatever proxy the environment names."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _wait_until_up(process: subprocess.Popen, endpoint: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            url = f"{endpoint}/storage/v1/b?project=test"
            with _opener().open(url, timeout=5) as response:
                response.read()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
