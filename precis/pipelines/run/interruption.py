"""Ends a command within five seconds of SIGINT (Ctrl-C) or SIGTERM.

A command is a child of the process that the shell started. The parent only waits, so it
can react while the command is in a long call:

    0 s    the signal is passed on: `Interrupted` is raised in the main thread of the
           command. As with any error, engines cancel their jobs, processes end, locks
           are released and unfinished files removed. One line is printed. A training
           saves its step first
    4.5 s  at the latest: all processes of the command are killed, and the parent
           prints the line

Results are written aside and renamed, and receipts follow their files, so a kill loses
nothing finished; the next run removes the leftovers. A signal that was ignored when the
process began stays ignored, such as SIGINT in the background of a shell. A Python
program that calls `precis.summarize` keeps its own handlers; nothing here applies.
"""

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from precis.model.credentials import redact
from precis.model.errors import Interrupted

# The longest time from a signal to the end of all processes.
_LIMIT_SECONDS = 4.5
# The signal that a command gets instead. A terminal sends SIGINT to all processes, so a
# command and the processes that it starts ignore it.
_PASSED_ON = {signal.SIGINT: signal.SIGUSR1, signal.SIGTERM: signal.SIGTERM}
_RECEIVED = {passed: number for number, passed in _PASSED_ON.items()}
_PR_SET_PDEATHSIG = 1
# The commands that resume their work; the others start again.
_RESUMED = ("prepare", "summarize", "train", "train-selector", "train-summarizer")


def print_error(text: str) -> None:
    """Writes a line to stderr, which may already be closed."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def become_command(arguments: Sequence[str]) -> None:
    """Continues in a child process. This process waits for it, passes signals on and
    ends with its exit code.

    If there is room, the command's processes write temporary files to a folder that is
    removed at the end.

    Args:
      arguments: the words after `precis`, for the last line.
    """
    folder = ""
    with contextlib.suppress(OSError):
        folder = tempfile.mkdtemp(prefix="precis-")
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None
    # Block signals until the handlers are set.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    if child := os.fork():
        _wait(child, arguments, mask, folder)
    # The child dies with the process that waits for it, on Linux only.
    if set_option := getattr(ctypes.CDLL(None), "prctl", None):
        set_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number, passed in _PASSED_ON.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_IGN)
            signal.signal(passed, interrupt)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait(
    child: int, arguments: Sequence[str], mask: set[Any], folder: str
) -> NoReturn:
    """Ends this process with its child; arguments as for `become_command`."""
    received: list[int] = []

    def pass_on(number: int, _: Any) -> None:
        if not received:
            signal.setitimer(signal.ITIMER_REAL, _LIMIT_SECONDS)
        received.append(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, _PASSED_ON[signal.Signals(number)])

    signal.signal(signal.SIGALRM, lambda *_: kill_processes_below())
    for number in _PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:  # Killed, by `kill_processes_below` or from outside.
        number = received[0] if received else -code
        print_error(stopped_line(arguments, Interrupted(number=number)))
        code = 128 + number
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def interrupt(number: int, _: Any) -> NoReturn:
    """Raises an exception for a signal; later signals are ignored."""
    for passed in _RECEIVED:
        signal.signal(passed, signal.SIG_IGN)
    raise Interrupted(number=_RECEIVED[signal.Signals(number)])


@contextlib.contextmanager
def saving() -> Iterator[Callable[[], bool]]:
    """Yields a function that tells whether a signal has arrived, so that the block can
    save its state and raise `Interrupted`. Other code gets the signal as usual.
    """
    received: list[signal.Signals] = []

    def note(number: int, _: Any) -> None:
        received.append(_RECEIVED[signal.Signals(number)])

    ours = [each for each in _RECEIVED if signal.getsignal(each) is interrupt]
    for each in ours:
        signal.signal(each, note)
    try:
        yield lambda: bool(received)
    except Interrupted as stop:
        stop.number = received[0]
        raise
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_IGN if received else interrupt)


def stopped_line(arguments: Sequence[str], stop: Interrupted) -> str:
    """The last line of a stopped command.

    Args:
      arguments: the words after `precis`.
      stop: the interruption that stopped it.
    """
    is_resumed = arguments[:1] and arguments[0] in _RESUMED
    again = redact(shlex.join([precis_program(), *arguments]))
    words = [
        f"stopped by {signal.Signals(stop.number).name}",
        str(stop) or ("finished work is kept" if is_resumed else ""),
        f"{'continue' if is_resumed else 'start again'} with: {again}",
    ]
    return f"{' '.join(['precis', *arguments[:1]])}: {'; '.join(filter(None, words))}"


def precis_program() -> str:
    """The program name for command lines in messages: `precis`, or the path by which it
    was called, as without an activated environment.
    """
    path = sys.argv[0]
    is_path = os.sep in path and os.path.basename(path) == "precis"
    return path if is_path else "precis"


def kill_processes_below() -> None:
    """Kills all processes below this one.

    The resource tracker of multiprocessing stays: it removes the shared memory that the
    others leave, and ends after the last of them.
    """
    import psutil  # The import is slow, and most commands succeed.

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "resource_tracker" not in "".join(process.cmdline()):
                process.kill()
