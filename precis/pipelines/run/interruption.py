"""SIGINT, which is Ctrl-C, and SIGTERM end a command within five seconds.

    ending = Ending("precis train", resume="go on with: ...")
    ending.install()

    with at_end(release):       # called if a signal ends the process in the block
        pipeline.run()

What a command publishes is written aside and renamed, and receipts follow their files,
so a process may end at any instant and loses nothing finished. A thread ends it,
because the main thread may be in the middle of a long call:

    0 s    the signal. A training has four seconds to save its step; nothing else is
           waited for. One line is printed, engines cancel their jobs, all processes
           below this one are killed, locks released, unfinished files removed
    4.5 s  at the latest: the process ends with 130 or 143

A signal that was ignored when the process began stays ignored, as SIGINT of a process
in the background of a shell. In a Python program that calls `precis.summarize` there is
no `Ending`, and all of this does nothing.
"""

import atexit
import contextlib
import dataclasses
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from precis.model import unfinished_files

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How long a training may save its state, and the longest time from signal to end.
_SAVING_SECONDS = 4.0
_LIMIT_SECONDS = 4.5

Act = Callable[[], object]


def print_error(text: str) -> None:
    """Writes a line to stderr, which may be closed by now."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass(eq=False)
class Ending:
    """How this process ends at a signal; the handler of both signals.

    Attributes:
      program: the first words of its last line, such as `precis summarize`.
      resume: the last words of the line, with a command.
      detail: what is kept, between them.
      signal: the signal that has arrived, or 0.
      code: the exit code of a command that is done.
      is_saving: whether the main thread saves its state after a signal.
      is_saved: set when it has.
      acts: called at the end, the last one first, whatever they raise.
      say: writes the last line.
      stderr: another descriptor of the standard error, as it was at the beginning.
      deciding: held where `code` is set, and for ever by the thread that ends the
          process.
    """

    program: str
    resume: str
    detail: str = ""
    signal: int = 0
    code: int | None = None
    is_saving: bool = False
    is_saved: threading.Event = dataclasses.field(default_factory=threading.Event)
    acts: list[Act] = dataclasses.field(default_factory=list)
    say: Callable[[str], None] = print_error
    stderr: int = 2
    deciding: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def install(self) -> None:
        """Handles the signals from now on; to be called in the main thread."""
        self._use_own_temporary_folder()
        self.acts += [_remove_unfinished_files, kill_processes_below]
        with contextlib.suppress(OSError):  # It may be closed.
            self.stderr = os.dup(2)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()
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
            self.acts.append(lambda: remove(folder, ignore_errors=True))

    def __call__(self, number: int, frame: Any) -> None:
        """Lets the main thread go on: another one ends the process."""

    def finish(self, code: int) -> None:
        """Takes the exit code of a command that is done: a signal only ends the process
        from now on. A command that a signal has ended does not come back from here.
        """
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        with self.deciding:
            self.code = code

    def end(self, detail: str) -> NoReturn:
        """Lets the process end after a signal; `detail` says what is saved."""
        self.detail = detail
        self.is_saved.set()
        while True:
            time.sleep(_LIMIT_SECONDS)

    def _watch(self, reader: int) -> None:
        """Waits for a signal and ends the process."""
        # Python writes here whatever signal has a handler.
        while (number := os.read(reader, 1)[0]) not in SIGNALS:
            pass
        self.signal = number
        with contextlib.suppress(Exception):  # There is no memory for a thread.
            threading.Timer(_LIMIT_SECONDS, self._exit).start()
        if self.is_saving and not self.is_saved.wait(_SAVING_SECONDS):
            self.detail = "not saved in time, the last checkpoint is kept"
        self.deciding.acquire()
        try:
            for act in [self._say, *reversed(self.acts)]:
                with contextlib.suppress(Exception):
                    act()
        finally:
            self._exit()

    def _say(self) -> None:
        """Prints the last line, unless the command was done before."""
        if self.code is None:
            words = [f"stopped by {signal.Signals(self.signal).name}", self.detail]
            message = "; ".join(filter(None, [*words, self.resume]))
            os.dup2(self.stderr, 2)  # It is silent while TensorFlow is imported.
            self.say(f"{self.program}: {message}")
            # What fails from now on fails because of the signal.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

    def _exit(self) -> None:
        try:
            kill_processes_below()
        finally:
            os._exit(128 + self.signal if self.code is None else self.code)


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


def _remove_unfinished_files() -> None:
    # Never released: a file that another thread began now would stay.
    unfinished_files.beginning.acquire()
    for path in [*unfinished_files.names]:
        with contextlib.suppress(OSError):
            os.remove(path)


def installed() -> Ending | None:
    """How this process ends, where it is a command."""
    handlers: Iterator[Any] = map(signal.getsignal, SIGNALS)
    return next((each for each in handlers if isinstance(each, Ending)), None)


@contextlib.contextmanager
def at_end(act: Act) -> Iterator[None]:
    """Has a function called if a signal ends the process while the block runs.

    Those of inner blocks are called first, and before the processes below this one are
    killed. What they raise is ignored.
    """
    ending = installed()
    acts = ending.acts if ending else []
    acts.append(act)
    try:
        yield
    finally:
        acts.remove(act)


@contextlib.contextmanager
def saving() -> Iterator[Callable[[], bool]]:
    """A function that says whether a signal has arrived, for a block that then saves
    its state and raises an exception.
    """
    ending = installed() or Ending("", "")
    ending.is_saving = True
    try:
        yield lambda: bool(ending.signal)
    finally:
        ending.is_saving = False
