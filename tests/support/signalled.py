"""A command that is sent a signal, and what is left of it afterwards."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from support.processes import command_line, processes_with

ROOT = Path(__file__).parents[2]
PROGRAM = "precis.pipelines.command_line.cli"
# The limit is 5 s. The machine of the tests may have other work.
LIMIT_SECONDS = 15.0


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
      code: its exit code.
      lines: what it wrote to stderr, without the lines of its progress.
      seconds: from the signal to the end.
      left: the command lines of the processes that were still there, and the temporary
          files.
    """

    code: int
    lines: list[str]
    seconds: float
    left: list[str]


def end_by_signal(
    flags: Iterable[object],
    number: signal.Signals,
    when: Callable[[int], bool],
    *,
    folder: Path,
    to_group: bool = True,
    program: Iterable[str] = ("-m", PROGRAM),
    cwd: Path = ROOT,
) -> Ended:
    """Starts a command and sends it a signal.

    Args:
      flags: of the command, its name first.
      number: the signal.
      when: asked with the id of the process until it says True.
      folder: for the temporary files of the command.
      to_group: whether all its processes get the signal, as Ctrl-C sends it.
      program: what Python runs.
      cwd: the folder in which it runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = shell_environment(TMPDIR=str(folder), MARK=str(folder))
    with open(folder / "stderr", "wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, *program, *map(str, flags)],
            cwd=cwd,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + 900
        while not when(process.pid):
            assert process.poll() is None, (folder / "stderr").read_text()[-3000:]
            assert time.monotonic() < until, "the moment did not come"
            time.sleep(0.01)
        sent = time.monotonic()
        (os.killpg if to_group else os.kill)(process.pid, number)
        code = process.wait(60)
        seconds = time.monotonic() - sent
        left = leftovers(folder)
    finally:
        for pid in processes_of(folder):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    lines = (folder / "stderr").read_text().splitlines()
    lines = [line for line in lines if line and not is_progress(line)]
    return Ended(code, lines, seconds, left)


def shell_environment(**variables: str) -> dict[str, str]:
    """The environment of a command, without what a library has set in this process:
    JAX sets TF_CPP_MIN_LOG_LEVEL, and keras-hub imports JAX.
    """
    environment = {**os.environ, **variables}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return environment


def is_progress(line: str) -> bool:
    """Whether a line shows how far a stage has come, as in `encode   43%  ...`."""
    return bool(re.match(r"[a-z]+( [a-z]+)*  ", line))


def leftovers(folder: Path) -> list[str]:
    """The processes that a command left, two seconds after it, and its files."""
    until = time.monotonic() + 2
    while processes_of(folder) and time.monotonic() < until:
        time.sleep(0.05)
    left = [command_line(pid) for pid in processes_of(folder)]
    return left + [path.name for path in folder.iterdir() if path.name != "stderr"]


def processes_of(folder: Path) -> list[int]:
    """The processes that inherited the variable MARK of a command."""
    return processes_with(f"MARK={folder}")


def has_mapped(name: str) -> Callable[[int], bool]:
    """True when a command, the child of a process, has loaded a library whose path has
    a name in it.
    """

    def is_there(pid: int) -> bool:
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                return name in Path(f"/proc/{child}/maps").read_text()
        return False

    return is_there


def asides(folder: Path) -> list[str]:
    """The files below a folder that are not finished."""
    return [path.name for path in folder.rglob("*.aside")]
