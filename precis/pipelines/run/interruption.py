"""SIGINT, which is Ctrl-C, and SIGTERM end a command within five seconds.

    ending = Ending("precis train", resume="go on with: ...")
    ending.install()

    with at_end(release):       # to be called when the processes below are dead
        with at_once():         # nothing to save: do not wait for the block
            pipeline.run()

What a command publishes is written aside and renamed, and receipts follow their files,
so a process may end at any instant and loses nothing finished. A thread ends it,
because the main thread may be in the middle of a long call:

    0 s    the signal. `Stopped` is raised in the main thread, which gives back what it
           holds. A training saves its step instead; a pipeline is not waited for.
    2 s    or as soon as the main thread is through: all processes below this one are
           killed, unfinished files removed, locks released
    4.5 s  at the latest: one line is printed, and the process ends with 130 or 143

A signal that was ignored when the process began stays ignored, as SIGINT of a process
in the background of a shell. In a Python program that calls `precis.summarize` there is
no `Ending`, and all of this does nothing.
"""

import atexit
import contextlib
import dataclasses
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from precis.model.unfinished_files import end_all_files

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How long the main thread has to give back what it holds, or to save a training.
GRACE_SECONDS = 2.0
SAVING_SECONDS = 4.0
# The longest time from the signal to the end.
_LIMIT_SECONDS = 4.5

Act = Callable[[], object]


class Stopped(KeyboardInterrupt):
    """A signal ends the command."""


@dataclasses.dataclass(eq=False)
class Ending:
    """How this process ends at a signal; the handler of both signals.

    Attributes:
      program: the first words of its last line, such as `precis summarize`.
      resume: the last words of the line, with a command.
      detail: what is kept, between them.
      signal: the signal that has arrived, or 0.
      code: the exit code of a command that is done.
      grace_seconds: how long the main thread may go on after a signal.
      is_raising: whether a signal raises `Stopped` in the main thread.
      is_through: set when the main thread needs no more time.
      first_acts, last_acts: called before and after the processes below this one are
          killed.
      as_line: what is printed for a message.
      exiting: held by the thread that ends the process.
    """

    program: str
    resume: str
    detail: str = ""
    signal: int = 0
    code: int | None = None
    grace_seconds: float = GRACE_SECONDS
    is_raising: bool = True
    is_through: threading.Event = dataclasses.field(default_factory=threading.Event)
    first_acts: list[Act] = dataclasses.field(default_factory=list)
    last_acts: list[Act] = dataclasses.field(default_factory=list)
    as_line: Callable[[str], str] = str
    exiting: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def install(self) -> None:
        """Handles the signals from now on; to be called in the main thread."""
        self._use_own_temporary_folder()
        self._reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._forget)
        threading.Thread(target=self._watch, daemon=True).start()
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self)

    def _use_own_temporary_folder(self) -> None:
        """Has this process and those it starts write their temporary files to a folder
        that goes with it, where there is room for one.
        """
        with contextlib.suppress(OSError):
            folder = tempfile.mkdtemp(prefix="precis-")
            os.environ["TMPDIR"] = folder
            tempfile.tempdir = None
            remove = atexit.register(shutil.rmtree, folder, ignore_errors=True)
            self.last_acts.append(lambda: remove(folder, ignore_errors=True))

    def __call__(self, number: int, frame: Any) -> None:
        """Interrupts the main thread, in which Python calls this."""
        self._note(number)
        if self.is_raising:
            self.is_raising = False
            raise Stopped

    def finish(self, code: int) -> None:
        """Takes the exit code of a command that is done: a signal only ends the process
        from now on. A command that a signal failed does not come back from here.
        """
        self.is_raising = False
        if self.signal and code:
            self.end()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        self.code = code
        self.is_through.set()

    def end(self, detail: str = "") -> NoReturn:
        """Lets the process end after a signal; `detail` says what is kept."""
        self.detail = detail or self.detail
        self.is_through.set()
        while True:
            time.sleep(_LIMIT_SECONDS)

    def _note(self, number: int) -> None:
        """Notes a signal; threads that fail because of it say nothing."""
        self.signal = self.signal or number
        threading.excepthook = lambda _: None
        sys.unraisablehook = lambda _: None
        logging.disable()

    def _watch(self) -> None:
        """Waits for a signal and ends the process."""
        # Python writes here whatever signal has a handler.
        while (number := os.read(self._reader, 1)[0]) not in SIGNALS:
            pass
        self._note(number)
        limit = threading.Timer(_LIMIT_SECONDS, self._exit)
        try:
            with contextlib.suppress(Exception):  # There is no memory for a thread.
                limit.start()
            self.is_through.wait(self.grace_seconds)
            _call_all([kill_processes_below, *self.first_acts])
            for path in end_all_files():
                with contextlib.suppress(OSError):
                    os.remove(path)
            _call_all(self.last_acts)
        finally:
            self._exit()

    def _exit(self) -> None:
        """Ends the process; prints the line, unless the command was done before."""
        self.exiting.acquire()
        try:
            _call_all([self._say, kill_processes_below])
        finally:
            os._exit(128 + self.signal if self.code is None else self.code)

    def _say(self) -> None:
        if self.code is not None:
            return
        words = [f"stopped by {signal.Signals(self.signal).name}", self.detail]
        message = "; ".join(filter(None, [*words, self.resume]))
        line = self.as_line(f"{self.program}: {message}") + "\n"
        if os.isatty(2):  # It shows ^C.
            line = f"\n{line}"
        os.write(2, line.encode(errors="replace"))

    def _forget(self) -> None:
        """Leaves the signals of a forked process to that process."""
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            if signal.getsignal(number) is self:
                signal.signal(number, signal.SIG_DFL)


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
    # They take a while, and most commands are not stopped.
    import psutil

    from precis.model.inference.processes import start_no_more

    start_no_more()
    seen: set[psutil.Process] = set()
    killed = []
    while new := {*psutil.Process().children(recursive=True)} - seen:
        seen |= new
        for process in new:
            with contextlib.suppress(psutil.Error):
                if "resource_tracker" not in "".join(process.cmdline()):
                    process.kill()
                    killed.append(process)
    psutil.wait_procs(killed, timeout=1)


def _call_all(acts: list[Act]) -> None:
    """Calls functions, the last one first, whatever they raise."""
    for act in reversed(acts):
        with contextlib.suppress(Exception):
            act()


def installed() -> Ending | None:
    """How this process ends, where it is a command."""
    handlers: Iterator[Any] = map(signal.getsignal, SIGNALS)
    return next((each for each in handlers if isinstance(each, Ending)), None)


@contextlib.contextmanager
def changed(**values: Any) -> Iterator[Ending | None]:
    """Changes attributes of the installed ending while the block runs."""
    ending = installed()
    if ending is None:
        yield None
        return
    before = {name: getattr(ending, name) for name in values}
    vars(ending).update(values)
    try:
        yield ending
    finally:
        if not ending.signal:
            vars(ending).update(before)


@contextlib.contextmanager
def at_end(act: Act, *, is_first: bool = False) -> Iterator[None]:
    """Has a function called if a signal ends the process while the block runs.

    Args:
      act: what to call; an exception of it is ignored.
      is_first: whether it needs the processes below this one alive.
    """
    ending = installed()
    acts = [] if not ending else ending.first_acts if is_first else ending.last_acts
    acts.append(act)
    try:
        yield
    finally:
        acts.remove(act)


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """A signal does not wait for the block, which would not end when it is interrupted.

    Ctrl-C does not reach the processes that the block starts: they would each print a
    traceback before they are killed.
    """
    with changed(grace_seconds=0.0, is_raising=False) as ending:
        blocked = {signal.SIGINT} if ending else set()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def saving() -> Iterator[Callable[[], bool]]:
    """A function that says whether a signal has arrived, for a block that then saves
    its state and raises an exception.
    """
    detail = "not saved in time, the last checkpoint is kept"
    with changed(
        grace_seconds=SAVING_SECONDS, is_raising=False, detail=detail
    ) as ending:
        yield lambda: ending is not None and bool(ending.signal)
