"""The processes of this machine that share tasks or searches, and how many there are.

A `ProcessPoolExecutor` with several processes fails all its calls when one process
dies, and does not tell which call it was. In a `ProcessPool` every process has a pipe
of its own, so only the call of the process that died fails.

Processes are forked from a fork server (`multiprocessing.forkserver`), of which a
command has one. It imports once what each of them needs, and computes nothing.
TensorFlow is imported where a network computes, in search processes, in a worker that
loads a selector or a checker and in this process if it is the only one, and by the fork
server of search processes, which uses nothing of it, as it does not work in a process
that was forked from one that has used it.
"""

import contextlib
import functools
import glob
import logging
import math
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
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from precis.model.errors import JobError, UsageError
from precis.model.own_process import prepare_own_process
from precis.model.tensorflow_import import import_tensorflow

Work = Callable[[Any], Any]

# One thread in each process, whichever library computes.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}
# The loggers whose levels the processes take over; "" is the root.
_LOGGERS = ("", "gcsfs")
# Bytes of the longest address of a socket, and what Python adds to the folder of
# temporary files for the address of the fork server.
_LONGEST_ADDRESS = 107
_SOCKET_NAME = "/pymp-00000000/listener-00000000"
# The device files of GPUs and TPUs.
_DEVICES = ("/dev/nvidia[0-9]*", "/dev/accel[0-9]*")
# Files that are there with some accelerators, and without one too: those of WSL and of
# virtual machines.
_HINTS = ("/dev/dxg", "/dev/vfio/[0-9]*")
# Where a container finds its own limits (version 2 of Linux's control groups).
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"


class ProcessPool:
    """Processes that each do one element at a time, on one thread, and may die.

    Attributes:
      threads: as many as there are processes, to wait for the results of `call`.
    """

    def __init__(self, count: int, load: Callable[[], Work], *, imports: str) -> None:
        """Starts the fork server, but no process yet.

        Args:
          count: the number of processes at most.
          load: gives the function that does the elements, in each process once; what it
            raises is raised by the call.
          imports: as in `start_fork_server`.
        """
        self.threads = ThreadPoolExecutor(count)
        self._count = count
        levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        environment = {**os.environ, **_ONE_THREAD}
        # Pickled here, as unpickling imports modules, which may log.
        self._arguments = (pickle.dumps(load), environment, levels)
        self._context: Any = start_fork_server(imports)
        self._idle: list[tuple[BaseProcess, Connection]] = []
        self._started: list[BaseProcess] = []
        self._is_closed = False
        # Whoever holds the turn takes places, so that a call that takes all of them
        # begins before those that come after it.
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
        try:
            return self._call(element, places=1)
        except BrokenProcessPool:
            return self._call(element, places=self._count)

    def close(self) -> None:
        """Ends the processes at once; calls that are running fail, and later ones too.

        Without work they have nothing to finish, and Python takes a second to leave one
        that has imported TensorFlow.
        """
        self._is_closed = True
        for process in [*self._started]:
            with contextlib.suppress(ValueError):  # Its call has seen to it just now.
                process.kill()
        self.threads.shutdown(cancel_futures=True)
        for process in self._started:
            process.join()

    def _call(self, element: Any, *, places: int) -> Any:
        """As `call`, once; a call with all places runs alone."""
        with self._turn:
            for _ in range(places):
                self._places.acquire()
        try:
            return self._do(element)
        finally:
            self._places.release(places)

    def _do(self, element: Any) -> Any:
        if self._is_closed:
            raise BrokenProcessPool("the processes were ended")
        try:
            process, connection = self._idle.pop()
        except IndexError:
            process, connection = self._start()
        try:
            connection.send(element)
            result, failed = connection.recv()
        except BaseException as error:  # Perhaps the element cannot be sent.
            self._end(process, connection)
            if isinstance(error, EOFError | OSError):
                raise BrokenProcessPool("the process died") from error
            raise
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
            process.kill()
        return process, ours

    def _end(self, process: BaseProcess, connection: Connection) -> None:
        """Gives back what a process has, which is killed if it has not died."""
        process.kill()
        connection.close()
        process.join()
        self._started.remove(process)
        process.close()


def start_fork_server(imports: str) -> BaseContext:
    """Lets the fork server, where it does not run yet, begin to import a module.

    There is none but on Linux, as forking is unsafe with the libraries of macOS, and
    none where the path of the folder of temporary files (`TMPDIR`) leaves no room for
    the name of a socket.

    Args:
      imports: the module. If the fork server runs already, or there is none, each
        process imports what it needs.

    Returns:
      What starts processes, by forking them or anew.
    """
    address = os.fsencode(tempfile.gettempdir() + _SOCKET_NAME)
    if sys.platform != "linux" or len(address) > _LONGEST_ADDRESS:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([imports])
    multiprocessing.forkserver.ensure_running()
    return context


def _serve(
    connection: Connection,
    pickled_load: bytes,
    environment: Mapping[str, str],
    log_levels: Mapping[str, int],
) -> None:
    """Does the elements that come through a pipe, until it is closed.

    The process is prepared for much work, for Ctrl-C, and for the end of its parent.
    """
    prepare_own_process()
    os.environ.clear()
    os.environ.update(environment)
    for name, level in log_levels.items():
        logging.getLogger(name).setLevel(level)
    # Ctrl-C reaches the parent too, and the parent reports it; that of a command has
    # seen to it before.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    load_once = functools.cache(pickle.loads(pickled_load))
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


def refuse_within_import() -> None:
    """Stops a script that runs the job again in each of its search processes.

    A new process of Python's `spawn` imports the script that started it. Without the
    guard `if __name__ == "__main__":` the import would run the whole job once more.

    Raises:
      UsageError: this process is importing such a script.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "a search process reads the script that started it: put what it does under "
            '`if __name__ == "__main__":`, or search in one process with '
            "search_processes=1"
        )


def count_processes(asked: int) -> int:
    """The number of search processes.

    The rule is what `benchmarks/decode.py` measured to be fastest.

    Args:
      asked: the number that the user asks for; 0 is one for each core that this process
        may use, or a single one if there is an accelerator.
    """
    if multiprocessing.current_process().daemon:
        return 1  # Python does not let a daemon process start others.
    if asked:
        return asked
    if has_accelerator() or any(map(glob.glob, _HINTS)):
        import_tensorflow()
        import tensorflow as tf

        if any(map(tf.config.list_physical_devices, ("GPU", "TPU"))):
            return 1
    return usable_cores()


def usable_cores() -> int:
    """The number of cores that this process may use.

    A container may use fewer than the machine has, by a quota of time.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    # Without a quota there is no file, or it says `max`.
    with contextlib.suppress(OSError, ValueError):
        quota, period = map(float, Path(_CPU_QUOTA).read_text().split())
        cores = min(cores, math.ceil(quota / period))
    return max(1, cores)


def has_accelerator() -> bool:
    """Whether this machine has a GPU or a TPU; asked without importing TensorFlow."""
    return any(map(glob.glob, _DEVICES))
