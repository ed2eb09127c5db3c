"""Worker processes of the benchmarks: how they are started and spoken to.

A worker is a script with one argument, its job as JSON. It answers each line on its
standard input with a line on its standard output, `WORD number`, and ends with its
input.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import IO, Any


def start(
    script: str,
    python: str,
    job: Any,
    errors: IO[str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Starts a worker, which sets itself up.

    Args:
      script: the path of the program.
      python: the interpreter that runs it.
      job: its argument, anything that JSON can hold.
      errors: the file for its standard error.
      variables: of its environment, besides those of this process.
    """
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "KERAS_BACKEND": "tensorflow",
        **(variables or {}),
    }
    return subprocess.Popen(
        [python, os.path.abspath(script), json.dumps(job)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


def tell(worker: subprocess.Popen[str], line: str) -> None:
    """Sends a line to a worker."""
    assert worker.stdin
    worker.stdin.write(line + "\n")
    worker.stdin.flush()


def answer(worker: subprocess.Popen[str], word: str) -> float:
    """Waits for the line of a worker that begins with a word, and returns its number.

    Raises:
      EOFError: the worker ended without such a line.
    """
    assert worker.stdout
    for line in worker.stdout:
        if line.startswith(word + " "):
            return float(line.split()[1])
    raise EOFError(f"the worker ended and never said {word}")
