"""Opens, publishes and hashes files on local disks and object stores.

A path is a string that fsspec understands: `/data/x`, `relative/x`, `gs://bucket/x`. A
file gets its final name only when it is complete.
"""

import contextlib
import functools
import hashlib
import json
import os
import posixpath
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import IO, Any

from precis.model.config import install_command
from precis.model.credentials import refuse_credentials
from precis.model.errors import DataError, UsageError
from precis.model.storage.clients import extra_of
from precis.model.storage.hub import HUB, HubStore
from precis.model.storage.store import ObjectStore

# The suffix of a file that is being written.
ASIDE = ".aside"
_COMMIT = re.compile(r"(?<=[\w.-])@[0-9a-f]{40}(?=/)")


def filesystem(path: str) -> tuple[Any, str]:
    """The file system of a path, with fsspec's interface, and the path within it.

    Raises:
      UsageError: the package for such paths is not installed, the path holds
        credentials, or the store cannot be reached.
    """
    if is_local(path):
        local = _local_filesystem()
        return local, local._strip_protocol(path)
    refuse_credentials(path)
    protocol = path.partition("://")[0]
    try:
        store = (HubStore if path.startswith(HUB) else ObjectStore)(protocol)
    except ImportError as error:
        extra = extra_of(path)
        way_out = install_command(extra) if extra else "install that package"
        raise UsageError(f"{path}: {error}; {way_out}") from error
    except ValueError as error:
        raise UsageError(
            f"{path}: {error}; name a local path, or one on gs:// or s3://"
        ) from error
    return store, store.strip_protocol(path)


@functools.cache
def _local_filesystem() -> Any:
    from fsspec.implementations.local import LocalFileSystem  # slow

    return LocalFileSystem()


def without_commits(text: str) -> str:
    """A text with paths on the hub, without the commits in them."""
    return _COMMIT.sub("", text) if HUB in text else text


def is_local(path: str) -> bool:
    """Whether a path lies on this machine's disk."""
    path = os.fspath(path)
    return "://" not in path or path.startswith("file://")


def at_commit(path: str) -> str:
    """A path on the hub with the present commit of its revision; other paths unchanged.

    Raises:
      UsageError: as for `filesystem` and `HubStore.at_commit`.
    """
    if not path.startswith(HUB):
        return path
    store, name = filesystem(path)
    return f"{HUB}{store.at_commit(name)}"


def join(folder: str, *names: str) -> str:
    """Joins path parts with `/`, for URLs and local paths."""
    return posixpath.join(folder, *names)


def exists(path: str) -> bool:
    """Whether a file or folder exists."""
    fs, name = filesystem(path)
    return bool(fs.exists(name))


def stamp(path: str) -> str:
    """A text that changes when the file is changed or replaced; "" without a file."""
    fs, name = filesystem(path)
    try:
        return str(fs.info(name))
    except (FileNotFoundError, NotADirectoryError):
        return ""


def glob(pattern: str) -> list[str]:
    """The files that match a pattern, sorted; URLs if the pattern is a URL."""
    fs, name = filesystem(pattern)
    found = fs.glob(name, detail=True)
    paths = sorted(path for path, info in found.items() if info["type"] == "file")
    if is_local(pattern):
        return paths
    return [fs.unstrip_protocol(path) for path in paths]


def open_read(path: str) -> IO[bytes]:
    """Opens a file for reading bytes."""
    fs, name = filesystem(path)
    return fs.open(name, "rb")


def read_bytes(path: str) -> bytes:
    """The whole content of a file."""
    with open_read(path) as file:
        return file.read()


def read_json(path: str) -> Any:
    """The content of a JSON file."""
    return json.loads(read_bytes(path))


def read_object(
    path: str, *, way_out: str, fields: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """Reads a JSON object from a file that somebody else may have written or edited.

    Args:
      path: the file.
      way_out: what to do about a damaged file, for the message.
      fields: the required fields, with their types.

    Raises:
      DataError: the file is not JSON in UTF-8, does not hold an object, or lacks a
          field.
    """
    with naming_damage(path, way_out=way_out):
        try:
            content = read_json(path)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not JSON: {error}") from error
        check_fields(content, fields or {})
    return dict(content)


def check_fields(content: Any, fields: Mapping[str, type]) -> None:
    """Checks that a JSON value is an object that has fields of the given types.

    Raises:
      ValueError: it is not an object, or a field is missing or has another type.
    """
    _check_type(content, dict, "the value")
    for name, kind in fields.items():
        if name not in content:
            raise ValueError(f"{name} is missing")
        _check_type(content[name], kind, name)


def _check_type(value: Any, kind: type, name: str) -> None:
    is_number_expected = isinstance(value, bool) and kind is not bool
    if is_number_expected or not isinstance(value, kind):
        present = type(value).__name__
        raise ValueError(f"{name} must be of type {kind.__name__}, not {present}")


# A text that takes the place of a file that was not downloaded.
LFS_POINTER = "a Git LFS pointer; `git lfs pull` gets the file"
_LFS_BEGINNING = b"version https://git-lfs."


def _is_lfs_pointer(path: str) -> bool:
    try:
        with open_read(path) as file:
            return file.read(len(_LFS_BEGINNING)) == _LFS_BEGINNING
    except OSError:  # The path may only name a file in a folder.
        return False


@contextlib.contextmanager
def naming_damage(path: str, *, way_out: str) -> Iterator[None]:
    """Turns errors of a block that interprets a file's content into a DataError.

    Args:
      path: the file.
      way_out: what to do about a damaged file, for the message.

    Raises:
      DataError: the file or a value in it is missing or not what the block expects.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing; {way_out}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        if _is_lfs_pointer(path):
            raise DataError(f"{path}: {LFS_POINTER}") from error
        is_missing = isinstance(error, KeyError)
        reason = f"{error.args[0]} is missing" if is_missing else str(error)
        raise DataError(f"{path}: damaged ({reason}); {way_out}") from error


def path_within(folder: str, name: Any, *, listed_in: str) -> str:
    """The path of a file whose name was read from another file, such as a manifest.

    Args:
      folder: the folder that must contain the file.
      name: the name of the file, relative to the folder.
      listed_in: the path of the file that holds the name, for the message.

    Raises:
      DataError: the name leads out of the folder, directly or through a linked folder,
        or is not a plain name such as `a` or `a/b`.
    """
    plain = name.replace("\\", "/") if isinstance(name, str) else "."
    parts = plain.split("/")
    # `::` and `://` have a special meaning in fsspec.
    is_plain = not any(mark in plain for mark in ("::", ":/", "\0"))
    if not is_plain or {"", ".", ".."} & {*parts} or _is_linked_out(folder, name):
        raise DataError(
            f"{listed_in}: it lists the file {name!r}, which is not a plain name of a "
            f"file within {folder}; copy that folder again from its origin, or create "
            "it again elsewhere"
        )
    return join(folder, name)


def _is_linked_out(folder: str, name: str) -> bool:
    """Whether a folder in a name is a link that leads out; the file itself may be."""
    if not is_local(folder):
        return False
    root = os.path.realpath(filesystem(folder)[1])
    try:
        place = os.path.realpath(os.path.dirname(os.path.join(root, name)))
    except ValueError:  # The name is not valid for a file.
        return True
    return os.path.commonpath([root, place]) != root


@contextlib.contextmanager
def write_aside(path: str) -> Iterator[IO[bytes]]:
    """Opens a file for writing that is published as `path` when the block ends.

    If the block raises, nothing is published. On a local disk, the file is written
    under another name, synced and renamed. On an object store, it is uploaded when the
    block ends; an object is visible only after its upload is complete.
    """
    fs, name = filesystem(path)
    if isinstance(fs, ObjectStore):
        with fs.write_aside(name) as upload:
            yield upload
        return
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    aside = f"{name}.{uuid.uuid4().hex[:8]}{ASIDE}"
    try:
        with open(aside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, name)
    except OSError as error:
        if error.errno is not None:
            error.filename = name
        raise
    finally:
        with contextlib.suppress(OSError):  # It was renamed, or its disk is gone.
            os.remove(aside)


def write_bytes(path: str, content: bytes) -> None:
    """Publishes a whole file at once."""
    with write_aside(path) as file:
        file.write(content)


def write_json(path: str, content: Any) -> None:
    """Publishes a JSON file; equal content gives equal bytes."""
    write_bytes(path, json_bytes(content))


def json_bytes(content: Any) -> bytes:
    """The bytes of a JSON file, with sorted keys, an indent of two spaces and a line
    break at the end.
    """
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def remove(path: str) -> None:
    """Removes a file, or a folder with its content, if it exists."""
    fs, name = filesystem(path)
    if isinstance(fs, ObjectStore) or fs.exists(name):
        fs.rm(name, recursive=True)


def move(path: str, to: str) -> None:
    """Moves a file to another name on the same disk or in the same store.

    A store copies it and then removes it; after an interruption, both may exist.
    """
    fs, source = filesystem(path)
    _, target = filesystem(to)
    if isinstance(fs, ObjectStore):
        fs.copy(source, target)
        fs.rm(source)
        return
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    os.replace(source, target)


def list_folder(folder: str) -> list[str]:
    """The sorted names of the files and folders in a folder; empty without a folder.

    On an object store the list may be outdated, and callers must tolerate that.
    """
    fs, name = filesystem(folder)
    if not fs.isdir(name):
        return []
    paths = fs.ls(name, detail=False)
    return sorted({posixpath.basename(path.rstrip("/")) for path in paths})


def remove_leftovers(folder: str) -> None:
    """Removes the unfinished files of a killed process in a folder and its subfolders.

    An object store has no such files.
    """
    fs, name = filesystem(folder)
    if isinstance(fs, ObjectStore):
        return
    for path in fs.find(name):
        if path.endswith(ASIDE):
            fs.rm(path)


def sha256_file(path: str) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with open_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]  # Any file does.


def sha256_json(content: Any) -> str:
    """The sha256 of a value's canonical JSON: the fingerprint of a configuration."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
