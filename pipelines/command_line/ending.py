"""SIGINT, which is Ctrl-C, and SIGTERM end a command within five seconds.

    ending = CommandEnding("precis train", kept="", resume="go on with: ...")
    ending.install()

What a command publishes is written aside and renamed, and receipts follow their files,
so a process may end at any instant and loses nothing finished. A thread ends it,
because the main thread may be in the middle of a long call:

    0 s    the signal. `Stopped` is raised in the main thread, which gives back what it
           holds. A training saves its step instead; a pipeline is not waited for.
    2 s    or as soon as the main thread is through, or at a second signal: all
           processes below this one are killed, unfinished files removed, locks released
    4.5 s  at the latest: one line is printed, and the process ends with 130 or 143

A signal that was ignored when the process began stays ignored, as SIGINT of a process
in the background of a shell.
"""

import atexit
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from precis.model.unfinished_files import end_all_files
from precis.pipelines.run.interruption import SIGNALS, Ending, Stopped

# The longest time from the signal to the end.
_LIMIT_SECONDS = 4.5


class CommandEnding(Ending):
    """How this process ends at a signal; the handler of both signals."""

    def __init__(self, program: str, kept: str, resume: str) -> None:
        """Stores its arguments.

        Args:
          program: the first words of the line, such as `precis summarize`.
          kept: what the command keeps where it knows nothing better to say.
          resume: the last words of the line, with a command.
        """
        super().__init__(kept)
        self._program = program
        self._resume = resume
        self._code: int | None = None
        self._arrivals = 0
        self._is_through = threading.Event()
        self._is_clean = threading.Event()
        self._scratch = ""

    def install(self) -> None:
        """Handles the signals from now on; to be called in the main thread."""
        self._scratch = _own_temporary_folder()
        self._reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._forget)
        threading.Thread(target=self._watch, daemon=True).start()
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self)

    def __call__(self, number: int, frame: Any) -> None:
        """Interrupts the main thread, in which Python calls this."""
        self._note(number)
        self._arrivals += 1
        if self._arrivals > 1:
            self._is_through.set()
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
        self._code = code
        self._is_through.set()

    def end(self, detail: str = "") -> NoReturn:
        """Lets the process end after a signal; `detail` says what is kept."""
        self.detail = detail or self.detail
        self._is_through.set()
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
        try:
            with contextlib.suppress(Exception):  # There is no memory for a thread.
                threading.Thread(target=self._clean, daemon=True).start()
                self._is_clean.wait(_LIMIT_SECONDS)
            if not self._is_clean.is_set():
                with contextlib.suppress(Exception):
                    kill_processes_below()
            self._say()
        finally:
            os._exit(128 + self.signal if self._code is None else self._code)

    def _clean(self) -> None:
        """Leaves nothing behind: no process, no lock, no file that is not finished."""
        self._is_through.wait(self.grace_seconds)
        _call_all(self.first_acts)
        with contextlib.suppress(Exception):
            kill_processes_below()
        for path in end_all_files():
            with contextlib.suppress(OSError):
                os.remove(path)
        _call_all(self.last_acts)
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._is_clean.set()

    def _say(self) -> None:
        """Prints the line, unless the command was done before."""
        if self._code is not None:
            return
        words = [f"stopped by {signal.Signals(self.signal).name}", self.detail]
        message = "; ".join(filter(None, [*words, self._resume]))
        line = self.as_line(f"{self._program}: {message}") + "\n"
        if os.isatty(2):  # It shows ^C.
            line = f"\n{line}"
        with contextlib.suppress(OSError):
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
