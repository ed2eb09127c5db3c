"""The lock of an output folder as a file: written where none is, exchanged, and read.

`precis.pipelines.run.output_lock` says who may hold it.
"""

import contextlib
import fcntl
import json
import os
import time
import uuid
from typing import NamedTuple

from precis.model import files
from precis.model.storage.store import ObjectStore

# After this, another process has read what an object store had before.
_SETTLING_SECONDS = 1.0


class Owner(NamedTuple):
    """The content of a lock; the docstring of output_lock says what each field is."""

    host: str = "another machine"
    pid: int = 0
    machine: str = ""
    process_start: str = ""
    token: str = ""
    renewed_at: float = 0.0


def create_lock(path: str, owner: Owner) -> bool:
    """Writes a lock where there is none; whether it did."""
    fs, name = files.filesystem(path)
    if isinstance(fs, ObjectStore):
        if fs.create(name, _to_json(owner)):
            return True
        # The answer to a first attempt may have been lost.
        holder = read_lock(path)
        return holder is not None and holder.token == owner.token
    os.makedirs(os.path.dirname(name), exist_ok=True)
    return _create_locally(name, _to_json(owner))


def _create_locally(name: str, content: bytes) -> bool:
    """Writes a file where there is none, whole or not at all.

    A process that is stopped in the middle must not leave a lock without an owner.
    """
    aside = f"{name}.{uuid.uuid4().hex[:8]}{files.ASIDE}"
    try:
        with open(aside, "xb") as file:
            file.write(content)
        os.link(aside, name)
    except FileExistsError:
        return False
    except (NotImplementedError, PermissionError):  # The disk has no links.
        return _create_without_links(name, content)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)
    return True


def _create_without_links(name: str, content: bytes) -> bool:
    try:
        with open(name, "xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def exchange_lock(path: str, token: str, owner: Owner | None) -> bool:
    """Replaces a lock with a token, or removes it where `owner` is None.

    Returns:
      Whether the lock was there and had the token.
    """
    if files.is_local(path):
        return _exchange_locally(files.filesystem(path)[1], token, owner)
    holder = read_lock(path)
    if holder is None or holder.token != token:
        return False
    if owner is not None:
        # Only a lock that is taken over may meet another that is written just now.
        return _write_and_read(path, owner, settle=owner.token != token)
    files.remove(path)
    return True


def _exchange_locally(name: str, token: str, owner: Owner | None) -> bool:
    try:
        file = open(name, "r+b")
    except FileNotFoundError:
        return False
    with file:
        # Where a disk of the network has no such locks, this is done without them.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if not _is_still(file.fileno(), name):  # The owner has just renewed it.
            return _exchange_locally(name, token, owner)
        holder = _parse(file.read(), os.fstat(file.fileno()).st_mtime)
        if holder.token != token:
            return False
        if owner is None:
            os.remove(name)
        else:
            files.write_bytes(name, _to_json(owner))
    return True


def _is_still(descriptor: int, name: str) -> bool:
    """Whether an open file still has a name; another may have replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name))
    except FileNotFoundError:
        return False


def _write_and_read(path: str, owner: Owner, *, settle: bool = True) -> bool:
    """Writes a lock to an object store; whether it is still there afterwards."""
    files.write_bytes(path, _to_json(owner))
    if settle:
        time.sleep(_SETTLING_SECONDS)
    written = read_lock(path)
    return written is not None and written.token == owner.token


def read_lock(path: str) -> Owner | None:
    """The owner that a lock names; None where there is no lock."""
    _, name = files.filesystem(path)
    try:
        content = files.read_bytes(path)
        modified = os.stat(name).st_mtime if files.is_local(path) else time.time()
    except FileNotFoundError:
        return None
    return _parse(content, modified)


def _parse(content: bytes, modified: float) -> Owner:
    """The owner that a lock names.

    A lock is empty for an instant when it is created. If its owner died then, it is as
    old as the file.
    """
    try:
        return Owner(**json.loads(content))
    except (ValueError, TypeError):
        return Owner(renewed_at=modified)


def _to_json(owner: Owner) -> bytes:
    return f"{json.dumps(owner._asdict(), indent=2)}\n".encode()
