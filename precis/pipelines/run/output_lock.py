"""One process at a time owns an output folder.

    with own_output("runs/today") as check:
        ...
        check()   # before the result is marked as complete

The owner holds `_tasks/lock.json`, which says who it is.

On a local disk the lock is one of the kernel (`flock`, by filelock), so it ends with
the process, however that ends. On NFS the server keeps it, for all machines that mount
the folder; where a machine dies, the server frees it when the lease of that client is
over, after a minute or two. On a file system that lies about locks, such as FUSE over
an object store, it holds among the processes of one machine; one that has none at all
refuses the output.

An object store is asked to write the lock only where there is none. The owner renews it
every 15 seconds, and it is free for others when it was not renewed for 60: the clocks
of the machines that share an output may differ by less than that. A lock that is taken
over is written, and read again after a second. If two processes take it over within the
same instant, the one that was first may see the lock of the other only at its next
`check`.
"""

import contextlib
import datetime
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from filelock import FileLock, Timeout

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.model.storage.store import ObjectStore
from precis.pipelines.run import interruption
from precis.pipelines.run.result_files import LOCK_FILE, TASKS_FOLDER, not_writable

# How long a lock that is just being given back is waited for.
_PATIENCE_SECONDS = 0.2
_LEASE_SECONDS = 60.0
_RENEWAL_SECONDS = 15.0
# After this, another process has read what an object store had before.
_SETTLING_SECONDS = 1.0


@contextlib.contextmanager
def own_output(output: str) -> Iterator[Callable[[], None]]:
    """Owns an output folder for the length of the block.

    Yields a function that raises a JobError where another process has taken the folder.

    Raises:
      UsageError: another process owns the folder, or it cannot be written.
      JobError: the folder was lost to another process during the block, or the disk
        is full.
    """
    fs, name = files.filesystem(files.join(output, TASKS_FOLDER, LOCK_FILE))
    is_store = isinstance(fs, ObjectStore)
    lock = _StoreLock(output, fs, name) if is_store else _FileLock(output, name)

    def check() -> None:
        if not lock.is_held():
            raise JobError(
                f"{output} was taken over by another process, or its lock was "
                "removed; this job has stopped, so leave the output to the other one, "
                "or run the same command again"
            )

    def leave() -> None:
        interruption.kill_processes_below()
        if lock.is_held():
            files.remove_leftovers(output)
        lock.release()

    # A signal may come as soon as the lock is held.
    with interruption.at_end(leave):
        try:
            try:
                lock.acquire()
            except OSError as error:
                raise not_writable(output, error) from error
            try:
                yield check
            finally:
                # Whatever failed, the loss of the output is behind it.
                check()
        finally:
            with contextlib.suppress(OSError):
                lock.release()


class _FileLock:
    """The lock of a local folder."""

    def __init__(self, output: str, name: str) -> None:
        self._output = output
        self._name = name
        self._file: os.stat_result | None = None
        self._lock = FileLock(
            name, _PATIENCE_SECONDS, thread_local=False, fallback_to_soft=False
        )

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
          UsageError: another process holds it.
          OSError: the folder cannot be written.
        """
        os.makedirs(os.path.dirname(self._name), exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise UsageError(
                f"{self._output} is in use by {self._describe_holder()}; it is free "
                "when that process ends; wait, or name another --output"
            ) from error
        self._file = os.stat(self._name)
        with open(self._name, "w", encoding="utf-8") as file:
            json.dump(_this_process(), file)

    def is_held(self) -> bool:
        """Whether this process holds the lock, and its file is still that."""
        try:
            file = os.stat(self._name)
        except FileNotFoundError:
            return False
        return self._file is not None and os.path.samestat(self._file, file)

    def release(self) -> None:
        """Gives the lock back; `_tasks` goes where nothing else is in it."""
        if self._lock.is_locked:
            if self.is_held():
                os.remove(self._name)
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(self._name))
            self._lock.release()

    def _describe_holder(self) -> str:
        try:
            holder = files.read_json(self._name)
            return f"process {holder['pid']} on {holder['host']}"
        except (OSError, ValueError, KeyError, TypeError):  # It has just begun.
            return "another process"


class _StoreLock:
    """The lock of a folder on an object store, and the thread that renews it."""

    def __init__(self, output: str, store: ObjectStore, name: str) -> None:
        self._output = output
        self._store = store
        self._name = name
        self._token = uuid.uuid4().hex
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> None:
        """Writes the lock where there is none, or where its owner is dead.

        Raises:
          UsageError: another process holds it.
          OSError: the store cannot be written.
        """
        # The answer to an attempt may be lost, so that the lock is there and held.
        while not (self._store.create(self._name, self._content()) or self.is_held()):
            holder = self._read()
            end = holder["renewed_at"] + _LEASE_SECONDS if holder else 0.0
            if holder and time.time() < end:
                free_at = datetime.datetime.fromtimestamp(end, datetime.UTC)
                raise UsageError(
                    f"{self._output} is in use by process {holder['pid']} on "
                    f"{holder['host']}; it is free when that process ends, or, if it "
                    f"is dead, from {free_at:%H:%M:%S} UTC on; wait, or name another "
                    "--output"
                )
            self._store.write(self._name, self._content())
            time.sleep(_SETTLING_SECONDS)
        self._thread.start()

    def is_held(self) -> bool:
        """Whether the lock is that of this process."""
        holder = self._read()
        return holder is not None and holder["token"] == self._token

    def release(self) -> None:
        """Gives the lock back."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.is_held():
            self._store.rm(self._name)

    def _renew(self) -> None:
        while not self._is_over.wait(_RENEWAL_SECONDS):
            # The network may be down for the moment.
            with contextlib.suppress(OSError):
                if not self.is_held():
                    return
                self._store.write(self._name, self._content())

    def _read(self) -> dict[str, Any] | None:
        try:
            with self._store.open(self._name) as file:
                content: dict[str, Any] = json.load(file)
                return content
        except FileNotFoundError:
            return None

    def _content(self) -> bytes:
        return files.json_bytes(
            {**_this_process(), "token": self._token, "renewed_at": time.time()}
        )


def _this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid()}
