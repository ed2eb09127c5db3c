"""SIGINT, which is Ctrl-C, and SIGTERM end a command within five seconds.

A command is a child of the process that the shell has started, which waits for it and
has nothing else to do, so that it answers while the command is in a long call:

    0 s    the signal is passed on: `Interrupted` is raised in the main thread of the
           command. As with any error, engines cancel their jobs, processes end, locks
           are released and unfinished files removed. One line is printed. A training
           saves its step before that
    4.5 s  at the latest: all processes of the command are killed, and the line is
           printed here

What a command publishes is written aside and renamed, and receipts follow their files,
so it may be killed at any instant and loses nothing finished; the next run removes what
a killed one has left. A signal that was ignored when the process began stays ignored,
as SIGINT of a process in the background of a shell. A Python program that calls
`precis.summarize` has its own handlers, and all of this does nothing.
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

# The longest time from a signal to the end.
_LIMIT_SECONDS = 4.5
# What a command gets in place of a signal. A terminal sends SIGINT to all processes, so
# a command ignores it, and those that it starts do the same.
_PASSED_ON = {signal.SIGINT: signal.SIGUSR1, signal.SIGTERM: signal.SIGTERM}
_RECEIVED = {passed: number for number, passed in _PASSED_ON.items()}
_PR_SET_PDEATHSIG = 1
# The commands that go on where they were stopped; the others begin again.
_RESUMED = ("prepare", "summarize", "train", "train-selector", "train-summarizer")


def print_error(text: str) -> None:
    """Writes a line to stderr, which may be closed by now."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def become_command(arguments: Sequence[str]) -> None:
    """Goes on in a child of this process, which waits for it, passes signals on and
    ends with its exit code.

    The processes of the command write their temporary files to a folder that goes with
    them, where there is room for one.

    Args:
      arguments: the words behind `precis`, for the last line.
    """
    folder = ""
    with contextlib.suppress(OSError):
        folder = tempfile.mkdtemp(prefix="precis-")
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None
    # What arrives meanwhile waits for the handlers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    if child := os.fork():
        _wait(child, arguments, mask, folder)
    # It is killed with the process that waits for it; only Linux does that.
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
    """Ends this process with its child; arguments as in `become_command`."""
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
    if code < 0:  # It was killed, by `kill_processes_below` or by somebody else.
        number = received[0] if received else -code
        print_error(stopped_line(arguments, Interrupted(number=number)))
        code = 128 + number
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def interrupt(number: int, _: Any) -> NoReturn:
    """Raises an exception in place of a signal; further ones change nothing."""
    for passed in _RECEIVED:
        signal.signal(passed, signal.SIG_IGN)
    raise Interrupted(number=_RECEIVED[signal.Signals(number)])


@contextlib.contextmanager
def saving() -> Iterator[Callable[[], bool]]:
    """A function that says whether a signal has arrived, for a block that then saves
    its state and raises an `Interrupted` that says so. Others get the signal.
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
    """The last line of a command that is stopped.

    Args:
      arguments: the words behind `precis`.
      stop: what has stopped it.
    """
    is_resumed = arguments[:1] and arguments[0] in _RESUMED
    again = redact(shlex.join([precis_program(), *arguments]))
    words = [
        f"stopped by {signal.Signals(stop.number).name}",
        str(stop) or ("what is finished is kept" if is_resumed else ""),
        f"{'go on' if is_resumed else 'begin again'} with: {again}",
    ]
    return f"{' '.join(['precis', *arguments[:1]])}: {'; '.join(filter(None, words))}"


def precis_program() -> str:
    """How precis was called, for the command lines that it prints: `precis`, or its
    path where it was called by that, as before its environment is activated.
    """
    path = sys.argv[0]
    is_path = os.sep in path and os.path.basename(path) == "precis"
    return path if is_path else "precis"


def kill_processes_below() -> None:
    """Kills all processes below this one.

    The tracker of multiprocessing stays: it removes what the others leave in shared
    memory, and ends when the last of them has.
    """
    import psutil  # It takes a while, and most commands are not stopped.

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "resource_tracker" not in "".join(process.cmdline()):
                process.kill()
