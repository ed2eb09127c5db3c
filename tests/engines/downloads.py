"""What the tests of engines download, once: `build/engines` keeps it.

Maven and Go take it from where they are set up to; the checksums that those publish are
checked by them.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

_HERE = Path(__file__).parent
CACHE = _HERE.parents[1] / "build" / "engines"
_PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
_SECONDS = 1800
_COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


def flink_jars() -> Path:
    """The folder with the classes of Flink and of Beam's job server."""
    pom = _HERE / "pom.xml"
    version = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"flink-{version}"
    if not folder.is_dir():
        part = CACHE / f"flink-{version}.part"
        shutil.rmtree(part, ignore_errors=True)
        _run(
            "mvn",
            *("--batch-mode", "--no-transfer-progress", "--file", str(pom)),
            f"{_COPY_PLUGIN}:copy-dependencies",
            *("-DincludeScope=runtime", f"-DoutputDirectory={part}"),
        )
        part.rename(folder)
    return folder


def prism_program() -> Path:
    """The program Prism, built from the Go module of Beam."""
    program = CACHE / "bin" / "prism"
    if not program.is_file():
        _run("go", "install", _PRISM, GOBIN=str(program.parent))
    return program


def _run(*command: str, **variables: str) -> None:
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed; docs/ENGINES.md says more")
    CACHE.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **variables}
    subprocess.run(command, check=True, timeout=_SECONDS, env=environment)
