"""Commands of precis as processes, with the time and the memory that they take."""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil

PRECIS = (sys.executable, "-m", "precis.pipelines.command_line.cli")
_SECONDS_BETWEEN_LOOKS = 0.2


class CommandRun(NamedTuple):
    """A command that has ended.

    Attributes:
      seconds: from its start to its end.
      peak_bytes: the most resident memory of the command and the processes that it
        started, without the tracker of multiprocessing; what they share counts once.
      processes: the most there were at once.
    """

    seconds: float
    peak_bytes: int
    processes: int


def run_command(*arguments: str) -> tuple[str, float]:
    """Runs a command of precis.

    Returns:
      What it printed, and its seconds.

    Raises:
      SystemExit: it failed; its last lines are the message.
    """
    started = time.monotonic()
    done = subprocess.run([*PRECIS, *arguments], capture_output=True, text=True)
    if done.returncode:
        end = done.stderr[-2000:]
        raise SystemExit(f"precis {' '.join(arguments)} failed:\n{end}")
    return done.stdout, time.monotonic() - started


def run_measured(*arguments: str, program: Sequence[str] = PRECIS) -> CommandRun:
    """Runs a command of precis and looks at its processes meanwhile.

    Args:
      *arguments: its words.
      program: what runs them.

    Raises:
      SystemExit: it failed; its last lines are the message.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [*program, *arguments], stdout=printed, stderr=subprocess.STDOUT
        )
        peak = processes = 0
        while process.poll() is None:
            tree = [process.pid, *_processes_below(process.pid)]
            processes = max(processes, len(tree))
            peak = max(peak, sum(map(_resident_bytes, tree)))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        seconds = time.monotonic() - started
        if process.returncode:
            printed.seek(0)
            end = printed.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"precis {' '.join(arguments)} failed:\n{end}")
    return CommandRun(seconds, peak, processes)


def _processes_below(pid: int) -> list[int]:
    """The processes that a process has started, without the tracker."""
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(pid).children(recursive=True)
        return [each.pid for each in below if not _is_tracker(each)]
    return []


def _is_tracker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "resource_tracker" in "".join(process.cmdline())
    return True


def _resident_bytes(process: int) -> int:
    """The resident memory of a process, its part of shared pages; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
