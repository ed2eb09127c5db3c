"""SIGINT, which is Ctrl-C, and SIGTERM end a command within five seconds.

    ending = interruption.install("precis train", kept="", resume="go on with: ...")

The command line installs this; a Python program that calls `precis.summarize` keeps its
own handlers. What a command publishes is written aside and renamed, and receipts follow
their files, so a process may end at any instant and loses nothing finished. A thread
ends it, because the main thread may be in the middle of a long call:

    0 s    the signal. `Stopped` is raised in the main thread, which gives back what it
           holds. A training saves its step instead; a pipeline is not waited for.
    2 s    or as soon as the main thread is through: all processes below this one are
           killed, unfinished files removed, locks released
    4.5 s  at the latest: one line is printed, and the process ends with 130 or 143

A second signal skips what is left of this but the killing. A signal that was ignored
when the process began stays ignored, as SIGINT of a process in the background of a
shell.
"""

import atexit
import contextlib
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from precis.model.unfinished_files import end_all_files
from precis.pipelines.run.descendants import kill_descendants

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The longest time from the signal to the end.
_LIMIT_SECONDS = 4.5
# How long the main thread has to give back what it holds, or to save a training.
_GRACE_SECONDS = 2.0
_SAVING_SECONDS = 4.0
# Bytes for the thread that ends the process, beside the numbers of signals: to end it
# without waiting any longer, and that nothing is left behind.
_WAKE = 0
_DONE = 255


class Stopped(KeyboardInterrupt):
    """A signal ends the command."""


class Ending:
    """How this process ends at a signal; the handler of both signals."""

    def __init__(self, program: str, kept: str, resume: str) -> None:
        """Stores its arguments.

        Args:
          program: the first words of the line, such as `precis summarize`.
          kept: what the command keeps where it knows nothing better to say.
          resume: the last words of the line, with a command.
        """
        self.signal = 0
        self._program = program
        self._resume = resume
        self._detail = kept
        self._message = ""
        self._code: int | None = None
        self._grace_seconds = _GRACE_SECONDS
        self._is_saving = False
        self._is_raising = True
        # Functions that are called before and after the other processes are killed.
        self.first_acts: list[Callable[[], object]] = []
        self.last_acts: list[Callable[[], object]] = []
        # What is printed for a message.
        self.as_line: Callable[[str], str] = str
        self._terminal = os.dup(2)
        self._reader, self._writer = os.pipe()
        self._scratch = ""

    def install(self) -> None:
        """Handles the signals from now on; to be called in the main thread."""
        self._scratch = _own_temporary_folder()
        os.register_at_fork(after_in_child=_forget)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, daemon=True).start()
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self)

    def __call__(self, number: int, _: Any) -> None:
        """Interrupts the main thread, in which Python calls this."""
        self.signal = self.signal or number
        if self._is_raising:
            self._is_raising = False
            _silence()
            raise Stopped

    def finish(self, code: int) -> None:
        """Takes the exit code of a command that is done: a signal only ends the process
        from now on. A command that a signal failed does not come back from here.
        """
        self._is_raising = False
        if self.signal and code:
            self.end()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        self._code = code

    def end(self, detail: str = "") -> NoReturn:
        """Ends the process after a signal; `detail` says what is kept."""
        self._detail = detail or self._detail
        self._wake()

    def fail(self, message: str, code: int) -> NoReturn:
        """Ends the process without a signal, with a message and an exit code.

        A signal that came first counts: what failed may have failed because of it.
        """
        if not self.signal:
            self._message = message
            self._code = code
        self._wake()

    @contextlib.contextmanager
    def changed(
        self, *, grace_seconds: float, is_saving: bool = False, detail: str = ""
    ) -> Iterator[None]:
        """Interrupts nothing in the main thread while the block runs.

        Args:
          grace_seconds: how long the block may go on after a signal.
          is_saving: whether it saves its state in that time.
          detail: what is kept where it does not come to an end, if that is special.
        """
        before = (self._grace_seconds, self._is_saving, self._detail, self._is_raising)
        self._is_raising = False
        self._grace_seconds = grace_seconds
        self._is_saving = is_saving
        self._detail = detail or self._detail
        try:
            yield
        finally:
            (
                self._grace_seconds,
                self._is_saving,
                self._detail,
                self._is_raising,
            ) = before
            if self.signal:
                self._is_raising = False

    def _wake(self) -> NoReturn:
        os.write(self._writer, bytes([_WAKE]))
        while True:
            time.sleep(_LIMIT_SECONDS)

    def _watch(self) -> None:
        """Waits for a signal and ends the process."""
        arrived = self._next(None, _WAKE)
        until = time.monotonic() + _LIMIT_SECONDS
        self.signal = self.signal or arrived or 0
        try:
            if arrived != _WAKE and self._code is None:
                if not self._is_saving:
                    _silence()
                self._next(self._grace_seconds, _WAKE)
            _silence()
            threading.Thread(target=self._clean, daemon=True).start()
            if self._next(max(until - time.monotonic(), 0.5), _DONE) != _DONE:
                kill_descendants()
            self._say()
        finally:
            code = 128 + self.signal if self._code is None else self._code
            os._exit(code)

    def _next(self, seconds: float | None, other: int) -> int | None:
        """The next signal, or another byte that is waited for; None when the time is
        over.
        """
        until = time.monotonic() + (seconds or 0.0)
        while True:
            left = None if seconds is None else max(until - time.monotonic(), 0.0)
            if not select.select([self._reader], [], [], left)[0]:
                return None
            # Python writes here whatever signal has a handler.
            number = os.read(self._reader, 1)[0]
            if number in (other, *SIGNALS):
                return number

    def _clean(self) -> None:
        """Leaves nothing behind: no process, no lock, no file that is not finished."""
        try:
            _call_all(self.first_acts)
            for path in [*kill_descendants(), *end_all_files()]:
                with contextlib.suppress(OSError):
                    os.remove(path)
            _call_all(self.last_acts)
            if self._scratch:
                shutil.rmtree(self._scratch, ignore_errors=True)
        finally:
            os.write(self._writer, bytes([_DONE]))

    def _say(self) -> None:
        """Prints the line."""
        message = self._message
        if not message:
            if self._code is not None:
                return
            name = signal.Signals(self.signal).name
            words = [f"stopped by {name}", self._detail, self._resume]
            message = "; ".join(filter(None, words))
        line = self.as_line(f"{self._program}: {message}") + "\n"
        if os.isatty(self._terminal):  # It shows ^C.
            line = f"\n{line}"
        with contextlib.suppress(OSError):
            os.write(self._terminal, line.encode(errors="replace"))


def install(program: str, *, kept: str, resume: str) -> Ending:
    """Ends this process at a signal from now on; `Ending` has the arguments."""
    ending = Ending(program, kept, resume)
    ending.install()
    return ending


def installed() -> Ending | None:
    """What `install` made in this process."""
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(handler, Ending):
            return handler
    return None


@contextlib.contextmanager
def at_end(act: Callable[[], object], *, is_first: bool = False) -> Iterator[None]:
    """Has a function called if a signal ends the process while the block runs.

    Args:
      act: what to call; an exception of it is ignored.
      is_first: whether it needs the processes below this one alive.
    """
    ending = installed()
    if ending is None:
        yield
        return
    acts = ending.first_acts if is_first else ending.last_acts
    acts.append(act)
    try:
        yield
    finally:
        acts.remove(act)


@contextlib.contextmanager
def worded(as_line: Callable[[str], str]) -> Iterator[None]:
    """Has a function make the line that is printed if a signal ends the process while
    the block runs.
    """
    ending = installed()
    if ending is None:
        yield
        return
    before, ending.as_line = ending.as_line, as_line
    try:
        yield
    finally:
        if not ending.signal:
            ending.as_line = before


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """A signal does not wait for the block, which would not end when it is interrupted.

    Ctrl-C does not reach the processes that the block starts: they would each print a
    traceback before they are killed.
    """
    ending = installed()
    if ending is None:
        yield
        return
    with ending.changed(grace_seconds=0.0):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def saving() -> Iterator[Callable[[], bool] | None]:
    """A function that says whether a signal has arrived, for a block that then saves
    its state and raises an exception; None where nothing is installed.
    """
    ending = installed()
    if ending is None:
        yield None
        return
    with ending.changed(
        grace_seconds=_SAVING_SECONDS,
        is_saving=True,
        detail="not saved in time, the last checkpoint is kept",
    ):
        yield lambda: bool(ending.signal)


def _forget() -> None:
    """Leaves the signals of a forked process to that process."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if isinstance(signal.getsignal(number), Ending):
            signal.signal(number, signal.SIG_DFL)


def _own_temporary_folder() -> str:
    """A folder for all temporary files of this process and of those it starts, so that
    none stays; empty where there is no room for one.
    """
    try:
        folder = tempfile.mkdtemp(prefix="precis-")
    except OSError:
        return ""
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _call_all(acts: list[Callable[[], object]]) -> None:
    for act in reversed(acts):
        with contextlib.suppress(Exception):
            act()


def _silence() -> None:
    """Discards what is written to stderr from now on: threads that are interrupted, and
    bars.
    """
    with contextlib.suppress(OSError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 2)
        os.close(devnull)
