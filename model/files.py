"""Files on local disks and object stores alike: open, write aside and publish, hash.

Every path in precis is a string that fsspec understands: `/data/x`, `relative/x`,
`gs://bucket/x`. Nothing is written under its final name until it is complete.
"""

import contextlib
import hashlib
import json
import os
import posixpath
import uuid
from collections.abc import Iterator
from typing import IO, Any

import fsspec

# How the name of a file ends that is being written.
ASIDE = ".aside"


def filesystem(path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path and the path within it."""
    return fsspec.core.url_to_fs(path)


def is_local(path: str) -> bool:
    """Whether a path lies on this machine's disk."""
    return "://" not in path or path.startswith("file://")


def join(folder: str, *names: str) -> str:
    """Joins path parts with `/`, for URLs and local paths."""
    return posixpath.join(folder, *names)


def exists(path: str) -> bool:
    """Whether a file or folder of that name exists."""
    fs, name = filesystem(path)
    return bool(fs.exists(name))


def glob(pattern: str) -> list[str]:
    """All files that match a pattern, sorted, in the form the pattern was given in."""
    fs, name = filesystem(pattern)
    found = sorted(match for match in fs.glob(name) if fs.isfile(match))
    return (
        found if is_local(pattern) else [fs.unstrip_protocol(match) for match in found]
    )


def open_read(path: str) -> IO[bytes]:
    """Opens a file for reading bytes."""
    return fsspec.open(path, "rb").open()


def read_bytes(path: str) -> bytes:
    """The whole content of a file."""
    with open_read(path) as file:
        return file.read()


def read_json(path: str) -> Any:
    """The content of a JSON file."""
    return json.loads(read_bytes(path))


@contextlib.contextmanager
def write_aside(path: str) -> Iterator[IO[bytes]]:
    """A file for writing that appears under `path` only when the block ends without an
    error.

    On a local disk it is written beside its final name, synced and renamed. An object
    store shows an object only when its upload is complete, so there it is written in
    place and dropped on error.
    """
    if is_local(path):
        _, name = filesystem(path)
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        aside = f"{name}.{uuid.uuid4().hex[:8]}{ASIDE}"
        try:
            with open(aside, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, name)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(aside)
        return
    fs, name = filesystem(path)
    file = fs.open(name, "wb", autocommit=False)
    try:
        yield file
    except BaseException:
        file.discard()
        raise
    file.close()
    file.commit()


def write_bytes(path: str, content: bytes) -> None:
    """Publishes a whole file at once."""
    with write_aside(path) as file:
        file.write(content)


def write_json(path: str, content: Any) -> None:
    """Publishes a JSON file: sorted keys, two spaces, a last line break, so that equal
    content is equal bytes.
    """
    write_bytes(
        path,
        (
            json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        ).encode(),
    )


def remove(path: str) -> None:
    """Removes a file or a folder with all it holds; nothing happens where there is
    none.
    """
    fs, name = filesystem(path)
    if fs.exists(name):
        fs.rm(name, recursive=True)


def remove_leftovers(folder: str) -> None:
    """Removes what a killed process was writing aside, anywhere below a folder."""
    fs, name = filesystem(folder)
    for path in fs.find(name):
        if path.endswith(ASIDE):
            fs.rm(path)


def copy_tree(folder: str, to: str) -> None:
    """Copies a local folder to another place, over what is there."""
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                write_bytes(join(to, os.path.relpath(path, folder)), file.read())


def sha256_file(path: str) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with open_read(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sha256_json(content: Any) -> str:
    """The sha256 of a value's canonical JSON form: the fingerprint of a configuration."""
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
