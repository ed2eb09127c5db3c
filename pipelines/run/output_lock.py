"""One process at a time owns an output folder.

    with own_output("runs/today") as ownership:
        ...
        ownership.check()   # before the result is marked as complete

The owner writes `_tasks/lock.json` and renews it while it works:

    host, pid      who it is, for the message
    machine        host, start of the machine and process namespace
    process_start  tells the process from a later one with the same pid
    token          random; whose lock it is
    renewed_at     seconds since 1970, at most 15 old while the owner lives

A lock of a dead process is taken over: at once if it ran on this machine, and else, or
where a living process has stopped, when it was not renewed for 60 seconds. The clocks
of machines that share an output may differ by less than that.

On a local disk no two processes get the lock, nor on an object store, which is asked to
write it only where there is none. A lock that is taken over on an object store is
written, and read again after a second. If two processes take it over within the same
instant, the one that was first may see the lock of the other only when it renews its
own; then it stops.
"""

import contextlib
import datetime
import functools
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.pipelines.run import interruption
from precis.pipelines.run.job import (
    LOCK_FILE,
    SUCCESS_FILE,
    TASKS_FOLDER,
    not_writable,
)
from precis.pipelines.run.lock_file import (
    Owner,
    create_lock,
    exchange_lock,
    read_lock,
)
from precis.pipelines.run.process_identity import machine_name, process_start

LEASE_SECONDS = 60.0
_RENEWAL_SECONDS = 15.0
_RETRY_SECONDS = 0.05
# How long a job that lost its output has to end by itself.
_GRACE_SECONDS = 30.0


@contextlib.contextmanager
def own_output(output: str) -> Iterator["Ownership"]:
    """Owns an output folder for the length of the block.

    Raises:
      UsageError: another process owns the folder, or it cannot be written.
      JobError: the folder was lost to another process during the block, or the disk
        is full.
    """
    path = files.join(output, TASKS_FOLDER, LOCK_FILE)
    owner = _this_process()
    release = functools.partial(_release, output, path, owner)
    with interruption.at_end(release):
        # A signal may come as soon as the lock is written.
        try:
            with _owned(output, path, owner) as ownership:
                yield ownership
        finally:
            with contextlib.suppress(OSError):
                release()
    ownership.check()


@contextlib.contextmanager
def _owned(output: str, path: str, owner: Owner) -> Iterator["Ownership"]:
    try:
        _acquire(output, path, owner)
    except OSError as error:
        # There is nothing to write in a finished result, which may be read-only.
        if not _is_finished(output):
            raise not_writable(output, error) from error
        yield Ownership(output, path, owner)
        return
    ownership = Ownership(output, path, owner)
    ownership.start()
    try:
        yield ownership
    except BaseException:
        # Whatever it was, the loss of the output is behind it.
        ownership.check()
        raise
    finally:
        ownership.stop()


class Ownership:
    """A lock that this process holds, and the thread that renews it."""

    def __init__(self, output: str, path: str, owner: Owner) -> None:
        self._output = output
        self._path = path
        self._owner = owner
        self._is_lost = False
        self._is_in_main_thread = threading.current_thread() is threading.main_thread()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_done, daemon=True)

    def check(self) -> None:
        """Does nothing while this process owns the output.

        Raises:
          JobError: another process has taken it.
        """
        if self._is_lost:
            raise JobError(self._describe_loss())

    def start(self) -> None:
        """Begins to renew the lock."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the renewing."""
        self._done.set()
        self._thread.join()

    def _renew_until_done(self) -> None:
        renewed = time.monotonic()
        while not self._done.wait(_RENEWAL_SECONDS):
            try:
                is_owned = exchange_lock(
                    self._path, self._owner.token, _renewed(self._owner)
                )
                renewed = time.monotonic()
            except OSError:
                # The disk is full or the network is down, for the moment perhaps.
                is_owned = time.monotonic() - renewed < LEASE_SECONDS
            if not is_owned:
                self._is_lost = True
                self._end_job()
                return

    def _end_job(self) -> None:
        """Interrupts the job, and ends the process if it does not come to an end.

        A command ends at once. A job in another thread than the first cannot be
        interrupted. It fails at its next `check`.
        """
        ending = interruption.installed()
        if ending is not None:
            ending.fail(self._describe_loss(), JobError.exit_code)
        if not self._is_in_main_thread:
            return
        # A signal also wakes a thread that waits.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if not self._done.wait(_GRACE_SECONDS):
            print(f"precis: {self._describe_loss()}", file=sys.stderr, flush=True)
            os._exit(JobError.exit_code)

    def _describe_loss(self) -> str:
        return (
            f"{self._output} was taken over by another process, or its lock was "
            "removed or could not be renewed; this job has stopped, so leave the "
            "output to the other one, or run the same command again"
        )


def _acquire(output: str, path: str, owner: Owner) -> None:
    """Writes the lock where there is none, or where its owner is dead.

    Raises:
      UsageError: another process holds it.
    """
    while not create_lock(path, owner):
        holder = read_lock(path)
        if holder is not None:
            _check_abandoned(output, holder)
            if exchange_lock(path, holder.token, owner):
                return
        # It was released or taken in this moment; a store may see that late.
        time.sleep(_RETRY_SECONDS)


def find_dead_owner(output: str) -> Owner | None:
    """The dead owner of an output, whose lock the next job takes over; None where
    nobody owns it.

    Raises:
      UsageError: another process owns it.
    """
    holder = read_lock(files.join(output, TASKS_FOLDER, LOCK_FILE))
    if holder is not None:
        _check_abandoned(output, holder)
    return holder


def _check_abandoned(output: str, holder: Owner) -> None:
    if not _is_abandoned(holder):
        raise UsageError(
            f"{output} is in use by process {holder.pid} on {holder.host}; it is "
            "free when that process ends, or, if it is dead, from "
            f"{_lease_end(holder)} on; wait, or name another --output"
        )


def _release(output: str, path: str, owner: Owner) -> None:
    exchange_lock(path, owner.token, None)
    if files.is_local(output):
        # Only where nothing else is in it.
        with contextlib.suppress(OSError):
            os.rmdir(files.filesystem(files.join(output, TASKS_FOLDER))[1])


def _is_finished(output: str) -> bool:
    try:
        return files.exists(files.join(output, SUCCESS_FILE))
    except OSError:  # An object store may refuse to read there, too.
        return False


def _is_abandoned(holder: Owner) -> bool:
    """Whether the lock of a process may be taken over."""
    if time.time() >= holder.renewed_at + LEASE_SECONDS:
        return True
    return holder.machine == machine_name() and not _is_running(holder)


def _lease_end(holder: Owner) -> str:
    end = datetime.datetime.fromtimestamp(
        holder.renewed_at + LEASE_SECONDS, datetime.UTC
    )
    return f"{end:%H:%M:%S} UTC"


def _this_process() -> Owner:
    pid = os.getpid()
    return Owner(
        socket.gethostname(),
        pid,
        machine_name(),
        process_start(pid) or "",
        uuid.uuid4().hex,
        time.time(),
    )


def _renewed(owner: Owner) -> Owner:
    return owner._replace(renewed_at=time.time())


def _is_running(owner: Owner) -> bool:
    start = process_start(owner.pid)
    if start is None:
        return False
    return not start or not owner.process_start or start == owner.process_start
