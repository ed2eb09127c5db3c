"""Processes on this machine that share tasks or searches, and how many to start.

If one process of a `ProcessPoolExecutor` dies, all calls fail, and it is unknown which
call was the cause. In a `ProcessPool` each process has its own pipe, so only the call
of the process that died fails.

Processes are forked from the command's fork server (`multiprocessing.forkserver`). The
server imports what the processes need, once, and computes nothing: TensorFlow does not
work in a process forked from one that has used it. TensorFlow is imported only by
processes in which a network computes, and by the fork server of search processes. A
network computes in search processes, in a worker that loads a selector or a checker,
and in this process if it is the only one.
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

# One thread in each process, for any library that computes.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}
# The loggers whose levels are copied to the processes; "" is the root logger.
_LOGGERS = ("", "gcsfs")
# The maximum length of a socket address in bytes, and the path that Python appends to
# the folder of temporary files for the address of the fork server.
_LONGEST_ADDRESS = 107
_SOCKET_NAME = "/pymp-00000000/listener-00000000"
# The device files of GPUs and TPUs.
_DEVICES = ("/dev/nvidia[0-9]*", "/dev/accel[0-9]*")
# Device files of WSL and of virtual machines, which may exist with or without an
# accelerator.
_HINTS = ("/dev/dxg", "/dev/vfio/[0-9]*")
# The CPU limit of a container (Linux control groups, version 2).
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"


class ProcessPool:
    """Processes that each handle one element at a time, on one thread, and may die.

    Attributes:
      threads: a pool with a thread for each process, to wait for results of `call`.
    """

    def __init__(self, count: int, load: Callable[[], Work], *, imports: str) -> None:
        """Starts the fork server, but no process yet.

        Args:
          count: the maximum number of processes.
          load: returns the function that handles elements; runs once in each process.
            An exception in it is raised by `call`.
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
        # Only the holder of the turn acquires places, so a call that needs all places
        # is not overtaken by later calls.
        self._turn = threading.Lock()
        self._places = threading.Semaphore(count)

    def call(self, element: Any) -> Any:
        """Returns the result of an element, from an idle process or a new one.

        If the process dies, other calls may be the cause, so the element is tried again
        while no other call is running.

        Raises:
          BrokenProcessPool: the second process died too; later calls get a new one.
          Exception: the function raised it; a JobError if the exception is not
            picklable.
        """
        try:
            return self._call(element, places=1)
        except BrokenProcessPool:
            return self._call(element, places=self._count)

    def close(self) -> None:
        """Kills the processes; running and later calls fail.

        Idle processes have nothing to finish, and Python needs a second to exit after
        TensorFlow was imported.
        """
        self._is_closed = True
        for process in [*self._started]:
            with contextlib.suppress(ValueError):  # `_end` has just closed it.
                process.kill()
        self.threads.shutdown(cancel_futures=True)
        for process in self._started:
            process.join()

    def _call(self, element: Any, *, places: int) -> Any:
        """Handles an element once; with all places, no other call runs meanwhile."""
        with self._turn:
            for _ in range(places):
                self._places.acquire()
        try:
            return self._do(element)
        finally:
            self._places.release(places)

    def _do(self, element: Any) -> Any:
        if self._is_closed:
            raise BrokenProcessPool("the processes were stopped")
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
            raise result from RuntimeError(failed)  # the traceback in the process
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
            raise BrokenProcessPool("could not start a process") from error
        finally:
            theirs.close()
        self._started.append(process)
        if self._is_closed:  # `close` ran meanwhile and did not see this process.
            process.kill()
        return process, ours

    def _end(self, process: BaseProcess, connection: Connection) -> None:
        """Kills a process, if it has not died, and frees its resources."""
        process.kill()
        connection.close()
        process.join()
        self._started.remove(process)
        process.close()


def start_fork_server(imports: str) -> BaseContext:
    """Starts the fork server, if it does not run yet; it imports a module.

    There is a fork server only on Linux, as forking is unsafe with the libraries of
    macOS, and only if the path of the folder of temporary files (`TMPDIR`) is short
    enough for a socket address.

    Args:
      imports: the module. If the fork server runs already, or there is none, each
        process imports what it needs.

    Returns:
      The context that starts processes: with the fork server, or with `spawn`.
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
    """Handles the elements that come through a pipe, until the pipe is closed.

    The process ignores Ctrl-C and ends when its parent ends.
    """
    prepare_own_process()
    os.environ.clear()
    os.environ.update(environment)
    for name, level in log_levels.items():
        logging.getLogger(name).setLevel(level)
    # Ctrl-C reaches the parent too, which reports it.
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
    """The error, or a JobError with the same message if the error is not picklable."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return JobError(f"{type(error).__name__}: {error}")
    return error


def _die_with_parent() -> None:
    """Ends this process when its parent ends, even in the middle of its work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def refuse_within_import() -> None:
    """Stops a script that would run the job again in each of its search processes.

    A process started by Python's `spawn` imports the script that started it. Without
    the guard `if __name__ == "__main__":` the import would run the whole job again.

    Raises:
      UsageError: this process is importing such a script.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "each search process imports the script that started it; put the work of "
            'the script under `if __name__ == "__main__":`, or set search_processes=1'
        )


def count_processes(asked: int) -> int:
    """The number of search processes.

    Args:
      asked: the number that the user asks for; 0 means one for each core that this
        process may use, or a single one if there is an accelerator.
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

    The CPU quota of a container may allow fewer cores than the machine has.
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
