"""Commands of precis in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_LIMIT_SECONDS = 1200
# When all jobs begin, for results that are equal byte by byte.
BEGINNING = "1700000000"


def start_precis(
    command: Sequence[str], output: Path, flags: Sequence[str] = ()
) -> subprocess.Popen:
    """Starts a command whose output comes through a pipe."""
    line = [sys.executable, "-m", "precis.pipelines.command_line.cli", *command]
    return subprocess.Popen(
        [*line, "--output", str(output), *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": BEGINNING},
    )


def finish(process: subprocess.Popen, exit_code: int = 0) -> str:
    """What a command that ends with an exit code has printed."""
    try:
        printed, _ = process.communicate(timeout=_LIMIT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == exit_code, printed
    return str(printed)
