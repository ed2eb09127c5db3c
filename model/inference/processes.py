"""Processes that each do one call at a time, and may die.

A `ProcessPoolExecutor` with several processes fails all its calls when one process
dies, and does not tell which call it was. Here every process has an executor of its
own, so only the call of the process that died fails.

They are forked from one that imports once what each of them needs. Python starts one
such process for a command (`multiprocessing.forkserver`). Nothing is
computed in it: TensorFlow may be forked as long as it has only been imported.
"""

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from typing import TypeVar

from precis.model.errors import JobError
from precis.model.garbage_collection import collect_rarely

ResultT = TypeVar("ResultT")

# Set where this process ends.
_is_ending = threading.Event()


class Processes:
    """Processes that do the calls of as many threads."""

    def __init__(
        self,
        count: int,
        *,
        initializer: Callable[[], None] | None = None,
        environment: Mapping[str, str] = os.environ,
        context: BaseContext | None = None,
    ) -> None:
        """Starts no process yet.

        Args:
          count: the number of threads that call, and of processes at most.
          initializer: is called first in each process.
          environment: of the processes, as it is now.
          context: how processes are started; by default they are spawned, because
              TensorFlow does not work in a process that was forked from one that has
              used it.
        """
        self._count = count
        # The fork server has an environment of its own.
        self._start_up = functools.partial(
            _start_process, dict(environment), initializer
        )
        self._context = context or multiprocessing.get_context("spawn")
        self._idle: list[ProcessPoolExecutor] = []
        self._pids: dict[ProcessPoolExecutor, int] = {}
        self._is_closed = False
        # Whoever holds the turn may take a place. `call_alone` holds it until it ends,
        # so that no other call begins.
        self._turn = threading.Lock()
        self._places = threading.Semaphore(count)

    def call(self, function: Callable[..., ResultT], *arguments: object) -> ResultT:
        """Calls a function in a process that is idle, or in a new one.

        Raises:
          BrokenProcessPool: the process died; the next call has another.
          Exception: the function raised it.
        """
        with self._turn:
            self._places.acquire()
        try:
            return self._call(function, *arguments)
        finally:
            self._places.release()

    def call_alone(
        self, function: Callable[..., ResultT], *arguments: object
    ) -> ResultT:
        """Calls a function as `call` does, while no other call is running."""
        with self._turn:
            for _ in range(self._count):
                self._places.acquire()
            try:
                return self._call(function, *arguments)
            finally:
                self._places.release(self._count)

    def close(self) -> None:
        """Ends the processes at once; calls that are running fail, and later ones too.

        Without work they have nothing to finish, and Python takes a second to leave one
        that has imported TensorFlow.
        """
        self._is_closed = True
        for executor, pid in list(self._pids.items()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self._end(executor)

    def _call(self, function: Callable[..., ResultT], *arguments: object) -> ResultT:
        if self._is_closed or _is_ending.is_set():
            raise BrokenProcessPool("the processes were ended")
        try:
            executor = self._idle.pop()
        except IndexError:
            executor = self._start()
        try:
            result = executor.submit(function, *arguments).result()
        except BrokenProcessPool:
            self._end(executor)
            raise
        except BaseException:
            self._idle.append(executor)
            raise
        self._idle.append(executor)
        return result

    def _start(self) -> ProcessPoolExecutor:
        """Starts a process.

        Raises:
          BrokenProcessPool: it died at once.
          JobError: the machine has no shared memory.
        """
        try:
            executor = ProcessPoolExecutor(1, self._context, self._start_up)
        except OSError as error:  # Semaphores lie in shared memory.
            raise JobError(
                f"no process can be started: /dev/shm: {error.strerror}; mount it with "
                "room to write, or give --workers 1"
            ) from error
        with without_interrupts():
            pid = executor.submit(os.getpid)
        self._pids[executor] = pid.result()
        if self._is_closed:  # In this moment; nobody would end this one.
            self.close()
        return executor

    def _end(self, executor: ProcessPoolExecutor) -> None:
        """Waits for a process that ends; only one thread may wait for it."""
        if self._pids.pop(executor, None) is not None:
            executor.shutdown()


def start_no_more() -> None:
    """No process that dies is replaced: this one kills them all, and ends."""
    _is_ending.set()


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Ctrl-C does not reach the processes that this thread starts in the block: Python
    would print a traceback before it comes to `_start_process`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_process(
    environment: Mapping[str, str], initializer: Callable[[], None] | None
) -> None:
    """Prepares a process that another one started: for much work, for Ctrl-C, and for
    the end of its parent.
    """
    collect_rarely()
    os.environ.clear()
    os.environ.update(environment)
    # Ctrl-C reaches the parent too, and the parent reports it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if initializer is not None:
        initializer()


def _die_with_parent() -> None:
    """Ends this process when its parent ends.

    It would not notice by itself that its parent was killed: a process that waits for
    work holds both ends of the queue.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


SEARCH_IMPORTS = "precis.model.inference.search_imports"
_imports: list[str] = []

# Bytes of the longest address of a socket, and what Python adds to the folder of
# temporary files for that of the fork server.
_LONGEST_ADDRESS = 107
_SOCKET_NAME = "/pymp-00000000/listener-00000000"


def can_fork() -> bool:
    """Whether this machine can have a fork server: it runs Linux, as forking is unsafe
    with the libraries of macOS, and the path of its folder of temporary files
    (`TMPDIR`) leaves room for the name of a socket.
    """
    address = os.fsencode(tempfile.gettempdir() + _SOCKET_NAME)
    return sys.platform == "linux" and len(address) <= _LONGEST_ADDRESS


def fork_context(imports: str) -> BaseContext:
    """Starts processes by forking them, or anew where they cannot be forked.

    Args:
      imports: a module that the fork server imports, where it does not run yet;
        otherwise each process imports what it needs.
    """
    if not can_fork():
        return multiprocessing.get_context("spawn")
    if imports not in _imports:
        _imports.append(imports)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_imports)
    return context


def search_context() -> BaseContext:
    """Starts search processes."""
    return fork_context(SEARCH_IMPORTS)


def start_fork_server() -> None:
    """Has the fork server import, before the first process is needed, what the contexts
    so far said; does not wait for it.
    """
    if can_fork():
        with without_interrupts():
            multiprocessing.forkserver.ensure_running()
