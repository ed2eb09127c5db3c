"""Processes that each do one call at a time, and may die.

A `ProcessPoolExecutor` with several processes fails all its calls when one process
dies, and does not tell which call it was. Here every process has an executor of its
own, so only the call of the process that died fails.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from typing import NamedTuple, TypeVar

from precis.model.errors import JobError
from precis.model.garbage_collection import collect_rarely

ResultT = TypeVar("ResultT")


class _Process(NamedTuple):
    """A process and the executor that it belongs to."""

    executor: ProcessPoolExecutor
    pid: int


class Processes:
    """Processes that do the calls of as many threads."""

    def __init__(
        self,
        count: int,
        *,
        initializer: Callable[[], None],
        context: BaseContext | None = None,
    ) -> None:
        """Starts no process yet.

        Args:
          count: the number of threads that call, and of processes at most.
          initializer: is called first in each process.
          context: how processes are started; by default they are spawned, because
              TensorFlow does not work in a process that was forked from one that has
              used it.
        """
        self._count = count
        self._initializer = initializer
        self._context = context or multiprocessing.get_context("spawn")
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._is_killed = False
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

    def kill(self) -> None:
        """Ends the processes at once; calls that are running fail."""
        self._is_killed = True
        for process in list(self._all):
            _kill(process.pid)

    def close(self) -> None:
        """Ends the processes; no call may be running.

        They have nothing to finish, and Python takes a second to leave one that has
        imported TensorFlow.
        """
        while self._idle:
            process = self._idle.pop()
            _kill(process.pid)
            self._end(process)

    def _call(self, function: Callable[..., ResultT], *arguments: object) -> ResultT:
        if self._is_killed:
            raise BrokenProcessPool("the processes were ended")
        try:
            process = self._idle.pop()
        except IndexError:
            process = self._start()
        try:
            result = process.executor.submit(function, *arguments).result()
        except BrokenProcessPool:
            self._end(process)
            raise
        except BaseException:
            self._idle.append(process)
            raise
        self._idle.append(process)
        return result

    def _start(self) -> _Process:
        """Starts a process.

        Raises:
          BrokenProcessPool: it died at once.
          JobError: the machine has no shared memory.
        """
        try:
            executor = ProcessPoolExecutor(1, self._context, self._initializer)
        except OSError as error:  # Semaphores lie in shared memory.
            raise JobError(
                f"no process can be started: /dev/shm: {error.strerror}; mount it with "
                "room to write, or give --workers 1 and --search_processes 1"
            ) from error
        with without_interrupts():
            pid = executor.submit(os.getpid)
        process = _Process(executor, pid.result())
        self._all.add(process)
        if self._is_killed:  # In this moment; nobody would end this one.
            self.kill()
        return process

    def _end(self, process: _Process) -> None:
        process.executor.shutdown()
        self._all.discard(process)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Ctrl-C does not reach the processes that this thread starts in the block: Python
    would print a traceback before it comes to `leave_with_parent`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_with_parent() -> None:
    """Prepares a process that another one started: for much work, for Ctrl-C, and for
    the end of its parent.
    """
    collect_rarely()
    # Ctrl-C reaches the parent too, and the parent reports it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """Ends this process when its parent ends.

    It would not notice by itself that its parent was killed: a process that waits for
    work holds both ends of the queue.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
