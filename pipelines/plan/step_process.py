"""A step as a process, so that its memory is given back and what ends it ends no more.

The process is in a group of processes of its own: Ctrl-C of a terminal reaches `precis
run` alone, which passes it on once. A training then saves its step as it does without a
job.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from precis.pipelines.processes import interruption

# The program of a step, which lies above this package.
_MODULE = "precis.pipelines.command_line.step_program"
_POLL_SECONDS = 0.1
# A little more than a command takes to end.
_GRACE_SECONDS = 4.7
_LIMIT_SECONDS = 10.0


def run_step(command: str, words: Sequence[str]) -> int:
    """Runs a command and returns its exit code.

    A signal goes to the command. The code is then that of the command, and
    `interruption.installed` knows the signal.

    Args:
      command: such as `train`.
      words: behind it.
    """
    program = [sys.executable, "-m", _MODULE, str(os.getpid())]
    arguments = [*program, command, *words]
    ending = interruption.installed()
    sys.stdout.flush()
    if ending is None:
        with subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, process_group=0
        ) as process:
            return _wait_for(process)
    with ending.changed(grace_seconds=_GRACE_SECONDS):
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, process_group=0)
        is_told = False
        while (code := _poll(process)) is None:
            if ending.signal and not is_told:
                process.send_signal(ending.signal)
                is_told = True
        return _exit_code(code)


def _wait_for(process: subprocess.Popen) -> int:
    """The exit code, where a program of the caller's own handles the signals."""
    try:
        return _exit_code(process.wait())
    except BaseException:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


def _poll(process: subprocess.Popen) -> int | None:
    try:
        return process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _exit_code(code: int) -> int:
    """The code as a shell shows it: 137 for a process that SIGKILL ended."""
    return 128 - code if code < 0 else code
