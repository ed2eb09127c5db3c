"""An emulator of Google Cloud Storage: fake-gcs-server, which Go builds once.

    with gcs_emulator(buckets=["news"]) as endpoint:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)

The binary lies in `~/.cache/precis-tests`, or where `PRECIS_TEST_CACHE` says. Building
it takes minutes, Go 1.24 and the Go module proxy; afterwards it starts in a moment.
Tests that use it carry the marker `engines`.
"""

import contextlib
import fcntl
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

from support.processes import free_port, wait_until

VERSION = "v1.56.1"
_MODULE = "github.com/fsouza/fake-gcs-server"


def emulator_program() -> Path:
    """The path of the emulator, which is built when it is asked for first."""
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "precis-tests"
    cache = Path(os.environ.get("PRECIS_TEST_CACHE", default)).expanduser()
    folder = cache / f"fake-gcs-server-{VERSION}"
    program = folder / "fake-gcs-server"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Several tests may ask at once.
        if not program.exists():
            subprocess.run(
                ["go", "install", f"{_MODULE}@{VERSION}"],
                env={**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0"},
                check=True,
            )
    return program


@contextlib.contextmanager
def gcs_emulator(*, buckets: Iterable[str]) -> Iterator[str]:
    """Runs an emulator with empty buckets, and yields its endpoint, as in
    `http://127.0.0.1:40123`. Objects lie in memory.
    """
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [
        *(str(emulator_program()), "-scheme", "http", "-backend", "memory"),
        *("-host", "127.0.0.1", "-port", str(port), "-log-level", "error"),
        # Uploads in several requests go where this leads.
        *("-external-url", endpoint, "-public-host", f"127.0.0.1:{port}"),
    ]
    with subprocess.Popen(command) as process:
        try:
            wait_until(lambda: _request(endpoint), process=process)
            for bucket in buckets:
                _request(endpoint, {"name": bucket})
            yield endpoint
        finally:
            process.terminate()


def _request(endpoint: str, bucket: dict[str, str] | None = None) -> bool:
    """Creates a bucket, or lists all; whether there is an answer."""
    request = urllib.request.Request(
        f"{endpoint}/storage/v1/b?project=test",
        data=json.dumps(bucket).encode() if bucket else None,
        headers={"Content-Type": "application/json"},
    )
    # Whatever proxy the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError):
        opener.open(request, timeout=30).close()
        return True
    return False
