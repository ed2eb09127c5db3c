"""Lets only one process at a time own an output folder.

    with own_output("runs/today") as check:
        ...
        check()   # before the result is marked as complete

The owner holds `_tasks/lock.json`, which identifies it.

On a local disk it is a kernel lock (`flock`, by filelock), so it ends with the process.
On NFS the server keeps it, for all machines that mount the folder; if a machine dies,
the server frees the lock when the client's lease ends, after a minute or two. A file
system that does not share locks, such as FUSE over an object store, only excludes
processes of the same machine. Without any locks, the output is refused.

On an object store, the lock is created only if it does not exist, so one of several
processes gets it. After an owner was killed, the next process on the same machine or in
the same container removes the lock; on another machine the message asks the user to
remove it. An owner whose lock was removed notices at its next `check`.
"""

import contextlib
import datetime
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.model.storage.store import ObjectStore
from precis.pipelines.run.result_files import LOCK_FILE, TASKS_FOLDER, not_writable

# How long to wait for a lock that is just being released.
_PATIENCE_SECONDS = 0.2


@contextlib.contextmanager
def own_output(output: str) -> Iterator[Callable[[], None]]:
    """Owns an output folder during the block.

    If the block raises, unfinished files are removed.

    Yields a function that raises a JobError if another process has taken the folder.

    Raises:
      UsageError: another process owns the folder, or it cannot be written.
      JobError: another process took over the folder during the block, or the disk is
          full.
    """
    path = files.join(output, TASKS_FOLDER, LOCK_FILE)
    fs, name = files.filesystem(path)
    content = files.json_bytes(
        {
            "host": socket.gethostname(),
            "machine": _machine(),
            "pid": os.getpid(),
            "began": psutil.Process().create_time(),
            "since": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "token": uuid.uuid4().hex,
        }
    )

    def is_held() -> bool:
        try:
            return files.read_bytes(path) == content
        except FileNotFoundError:
            return False

    def check() -> None:
        if not is_held():
            raise JobError(
                f"{output} was taken over by another process, or its lock was "
                "removed; this job has stopped; let the other process finish, or run "
                "the same command again"
            )

    lock = None
    if not isinstance(fs, ObjectStore):
        lock = FileLock(
            name, _PATIENCE_SECONDS, thread_local=False, fallback_to_soft=False
        )
    try:
        try:
            if lock:
                os.makedirs(os.path.dirname(name), exist_ok=True)
                lock.acquire()
                with open(name, "wb") as file:
                    file.write(content)
            else:
                # The answer to an attempt may have been lost, so the lock may be held.
                while not (fs.create(name, content) or is_held()):
                    if not _is_left_here(path):
                        raise Timeout(path)
                    with contextlib.suppress(FileNotFoundError):
                        fs.rm(name)
        except Timeout as error:
            raise _in_use(output, path, is_store=not lock) from error
        except OSError as error:
            raise not_writable(output, error) from error
        try:
            yield check
        except BaseException:
            # A lost output is the likely cause of any other error, so it comes first.
            check()
            files.remove_leftovers(output)
            raise
        check()
    finally:
        with contextlib.suppress(OSError):
            if is_held():
                fs.rm(name)
            if lock and lock.is_locked:
                os.rmdir(os.path.dirname(name))  # Fails if it is not empty.
        if lock:
            lock.release()


def _is_left_here(path: str) -> bool:
    """Whether a killed process of this machine left the lock."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        holder = files.read_json(path)
        try:
            began = psutil.Process(holder["pid"]).create_time()
        except psutil.NoSuchProcess:
            began = None
        return holder["machine"] == _machine() and holder["began"] != began
    return False


def _machine() -> str:
    """Identifies this machine since its start, and its space of process numbers,
    because containers may share a host name.
    """
    with contextlib.suppress(OSError):
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return f"{start.strip()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _in_use(output: str, path: str, *, is_store: bool) -> UsageError:
    """The error for a folder that another process owns."""
    owner = "another process"
    # The other process may just have started, or just have ended.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        holder = files.read_json(path)
        since = f" since {holder['since']}" if is_store else ""
        owner = f"process {holder['pid']} on {holder['host']}{since}"
    if_killed = f" (if it was killed, remove {path})" if is_store else ""
    return UsageError(
        f"{output} is in use by {owner}{if_killed}; wait until it ends, or name "
        "another --output"
    )
