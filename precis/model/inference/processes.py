"""Processes that each do one element at a time, and may die.

A `ProcessPoolExecutor` with several processes fails all its calls when one process
dies, and does not tell which call it was. Here every process has a pipe of its own, so
only the call of the process that died fails.

They are forked from one that imports once what each of them needs. Python starts one
such process for a command (`multiprocessing.forkserver`). Nothing is computed in it:
TensorFlow may be forked as long as it has only been imported.
"""

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from precis.model.errors import JobError
from precis.model.own_process import prepare_own_process

Work = Callable[[Any], Any]


class Processes:
    """Processes that do the calls of as many threads."""

    def __init__(
        self,
        count: int,
        load: Callable[[], Work],
        *,
        environment: Mapping[str, str] = os.environ,
        context: BaseContext | None = None,
    ) -> None:
        """Starts no process yet.

        Args:
          count: the number of threads that call, and of processes at most.
          load: gives the function that does the elements, in each process once; what it
            raises is raised by the call.
          environment: of the processes, as it is now; the fork server has one of its
            own.
          context: how processes are started; by default they are spawned, because
            TensorFlow does not work in a process that was forked from one that has
            used it.
        """
        self._count = count
        self._arguments = (load, dict(environment))
        self._context: Any = context or multiprocessing.get_context("spawn")
        self._idle: list[tuple[BaseProcess, Connection]] = []
        self._started: list[BaseProcess] = []
        self._is_closed = False
        # Whoever holds the turn may take a place. A call that is to be alone holds it
        # until it ends, so that no other one begins.
        self._turn = threading.Lock()
        self._places = threading.Semaphore(count)

    def call(self, element: Any) -> Any:
        """What comes of an element in a process that is idle, or in a new one.

        Where the process dies, perhaps because of what runs beside it, the element is
        tried again while no other call is running.

        Raises:
          BrokenProcessPool: that process died too; the next call has another.
          Exception: the function raised it; a JobError in place of one that cannot be
            sent to another process.
        """
        with self._turn:
            self._places.acquire()
        try:
            return self._call(element)
        except BrokenProcessPool:
            pass
        finally:
            self._places.release()
        with self._turn:
            for _ in range(self._count):
                self._places.acquire()
            try:
                return self._call(element)
            finally:
                self._places.release(self._count)

    def close(self) -> None:
        """Ends the processes at once; calls that are running fail, and later ones too.

        Without work they have nothing to finish, and Python takes a second to leave one
        that has imported TensorFlow.
        """
        self._is_closed = True
        for process in list(self._started):
            process.kill()
            self._end(process)

    def _call(self, element: Any) -> Any:
        if self._is_closed:
            raise BrokenProcessPool("the processes were ended")
        try:
            process, connection = self._idle.pop()
        except IndexError:
            process, connection = self._start()
        try:
            connection.send(element)
            result, failed = connection.recv()
        except (EOFError, OSError) as error:
            connection.close()
            self._end(process)
            raise BrokenProcessPool("the process died") from error
        self._idle.append((process, connection))
        if failed:
            raise result from RuntimeError(failed)  # with the traceback of there
        return result

    def _start(self) -> tuple[BaseProcess, Connection]:
        """Starts a process.

        Raises:
          BrokenProcessPool: it died at once.
        """
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, *self._arguments), daemon=True
        )
        try:
            process.start()
        except (EOFError, OSError) as error:
            raise BrokenProcessPool("no process can be started") from error
        finally:
            theirs.close()
        self._started.append(process)
        if self._is_closed:  # In this moment; nobody would end this one.
            self.close()
        return process, ours

    def _end(self, process: BaseProcess) -> None:
        """Waits for a process that ends; only one thread may wait for it."""
        with contextlib.suppress(ValueError):
            self._started.remove(process)
            process.join()


def _serve(
    connection: Connection, load: Callable[[], Work], environment: Mapping[str, str]
) -> None:
    """Does the elements that come through a pipe, until it is closed.

    The process is prepared for much work, for Ctrl-C, and for the end of its parent.
    """
    prepare_own_process()
    os.environ.clear()
    os.environ.update(environment)
    # Ctrl-C reaches the parent too, and the parent reports it; that of a command has
    # seen to it before.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    load_once = functools.cache(load)
    answer: tuple[Any, str]
    with contextlib.suppress(EOFError, OSError):
        while True:
            element = connection.recv()
            try:
                answer = load_once()(element), ""
            except Exception as error:
                answer = _portable(error), traceback.format_exc()
            connection.send(answer)


def _portable(error: Exception) -> Exception:
    """The error, or one that can be sent to another process and says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return JobError(f"{type(error).__name__}: {error}")
    return error


def _die_with_parent() -> None:
    """Ends this process when its parent ends, also in the middle of its work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


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
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([imports])
    return context


def start_fork_server(imports: str) -> None:
    """Lets the fork server, where there is one, begin to import a module now."""
    if can_fork():
        fork_context(imports)
        multiprocessing.forkserver.ensure_running()
