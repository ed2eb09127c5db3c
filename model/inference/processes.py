"""Processes that each do one call at a time, and may die.

A `ProcessPoolExecutor` with several processes fails all its calls when one process
dies, and does not tell which call it was. Here every process has an executor of its
own, so only the call of the process that died fails.
"""

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

ResultT = TypeVar("ResultT")


class Processes:
    """Processes that do the calls of as many threads."""

    def __init__(self, count: int, *, initializer: Callable[[], None]) -> None:
        """Starts no process yet.

        Args:
          count: the number of threads that call, and of processes at most.
          initializer: is called first in each process.
        """
        self._count = count
        self._initializer = initializer
        self._idle: list[ProcessPoolExecutor] = []
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
        """Ends the processes; no call may be running."""
        while self._idle:
            self._idle.pop().shutdown()

    def _call(self, function: Callable[..., ResultT], *arguments: object) -> ResultT:
        try:
            process = self._idle.pop()
        except IndexError:
            # TensorFlow does not work in a forked process.
            spawn = multiprocessing.get_context("spawn")
            process = ProcessPoolExecutor(1, spawn, self._initializer)
        try:
            result = process.submit(function, *arguments).result()
        except BrokenProcessPool:
            process.shutdown()
            raise
        except BaseException:
            self._idle.append(process)
            raise
        self._idle.append(process)
        return result
