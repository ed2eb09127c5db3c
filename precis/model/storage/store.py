"""An object store: `gs://`, `s3://` and the other file systems of fsspec.

A store shows an object only when its upload is complete.
"""

import concurrent.futures
import contextlib
import errno
import io
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

from precis.model.credentials import redact
from precis.model.storage.clients import open_client

# Larger files are uploaded from the disk, in several requests.
_WHOLE_UPLOAD_BYTES = 32 << 20
_READ_BYTES = 8 << 20  # minimum in a request
_REMOVALS = 16  # at once
# The packages whose errors are errors of requests.
_CLIENTS = frozenset(
    "aiobotocore aiohttp asyncio botocore fsspec gcsfs google requests s3fs "
    "urllib3".split()
)

T = TypeVar("T")


class ObjectStore:
    """An object store, with the methods of a file system of fsspec.

    A name is a path within the store: `bucket/folder/file`. A request that fails raises
    an `OSError` that names the object, the reason and the way out.
    """

    def __init__(self, protocol: str) -> None:
        """Opens the client of a protocol such as `gs`.

        Raises:
          ImportError: the package for the protocol is not installed.
          ValueError: there is no such protocol.
          UsageError: the store cannot be reached.
        """
        self._fs = open_client(protocol)
        self._protocol = protocol

    def strip_protocol(self, path: str) -> str:
        """The name of a path."""
        return str(self._fs._strip_protocol(path))

    def unstrip_protocol(self, name: str) -> str:
        """The path of a name."""
        return str(self._fs.unstrip_protocol(name))

    def info(self, name: str) -> dict[str, Any]:
        """The properties of an object or a folder.

        Raises:
          FileNotFoundError: there is no object or folder of that name.
        """
        return dict(self._ask(name, lambda: self._fs.info(name)))

    def exists(self, name: str) -> bool:
        """Whether there is an object or a folder of that name."""
        return self._type(name) != ""

    def isfile(self, name: str) -> bool:
        """Whether there is an object of that name."""
        return self._type(name) == "file"

    def isdir(self, name: str) -> bool:
        """Whether there are objects in a folder of that name."""
        return self._type(name) == "directory"

    def _type(self, name: str) -> str:
        # `exists` and `isfile` of fsspec treat any error as an absent object.
        try:
            return str(self.info(name)["type"])
        except FileNotFoundError:
            return ""

    def ls(self, name: str, detail: bool = False) -> list[Any]:
        """The objects and folders directly in a folder."""
        return list(self._ask(name, lambda: self._fs.ls(name, detail=detail)))

    def find(self, name: str, *, detail: bool = False) -> Any:
        """The objects below a folder; with `detail`, their properties by name."""
        return self._ask(name, lambda: self._fs.find(name, detail=detail))

    def glob(self, pattern: str, *, detail: bool = False) -> Any:
        """The objects and folders that match a pattern, in the form of `find`."""
        return self._ask(pattern, lambda: self._fs.glob(pattern, detail=detail))

    def rm(self, name: str, *, recursive: bool = False) -> None:
        """Removes an object, or everything below a folder; an absent object is not an
        error.
        """

        # Not `rm` of fsspec, which reads `*` and `[` in a name as a pattern.
        names = {name, *(self.find(name) if recursive else ())}
        with concurrent.futures.ThreadPoolExecutor(_REMOVALS) as pool:
            list(pool.map(self._remove, names))

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._ask(name, lambda: self._fs.rm_file(name))

    def copy(self, source: str, target: str) -> None:
        """Copies an object within the store."""
        self._ask(source, lambda: self._fs.cp_file(source, target))

    def read(self, name: str, start: int, stop: int) -> bytes:
        """Reads the bytes [start, stop) of an object."""
        return bytes(
            self._ask(name, lambda: self._fs.cat_file(name, start=start, end=stop))
        )

    def open(self, name: str, mode: str = "rb") -> IO[bytes]:
        """Opens an object for reading bytes.

        Raises:
          OSError: the store would decode the object while it sends it.
        """
        info = self.info(name)
        if info["type"] != "file":
            raise IsADirectoryError(errno.EISDIR, "it is a folder", self._path(name))
        if info.get("contentEncoding") == "gzip":
            raise OSError(
                errno.EINVAL,
                "it is stored with Content-Encoding: gzip, so its length is unknown; "
                "store it as a .gz file without that setting",
                self._path(name),
            )
        return io.BufferedReader(_ObjectReader(self, name, info["size"]), _READ_BYTES)

    def write(self, name: str, content: bytes) -> None:
        """Writes an object, or replaces it."""
        self._ask(name, lambda: self._fs.pipe_file(name, content))

    def create(self, name: str, content: bytes) -> bool:
        """Writes an object if there is none, and returns whether it did.

        If several callers try at once, one of them succeeds. If the answer to its
        request is lost, it may get False although it wrote the object.
        """
        try:
            self._ask(name, lambda: self._fs.pipe_file(name, content, mode="create"))
        except FileExistsError:
            return False
        return True

    @contextlib.contextmanager
    def write_aside(self, name: str) -> Iterator[IO[bytes]]:
        """Yields a local file, which is uploaded when the block ends without error."""
        with tempfile.NamedTemporaryFile(prefix="precis-upload-") as file:
            yield file
            file.flush()
            if file.tell() <= _WHOLE_UPLOAD_BYTES:
                file.seek(0)
                self.write(name, file.read())
                return
            self._ask(name, lambda: self._fs.put_file(file.name, name))

    def _ask(self, name: str, request: Callable[[], T]) -> T:
        """Makes a request, which the client retries if that may help.

        Raises:
          OSError: the request failed.
        """
        try:
            return request()
        except Exception as error:
            # Other errors are bugs in this program.
            package = type(error).__module__.partition(".")[0]
            if not isinstance(error, OSError) and package not in _CLIENTS:
                raise
            raise describe_failure(error, self._path(name)) from error

    def _path(self, name: str) -> str:
        return f"{self._protocol}://{name}"


class _ObjectReader(io.RawIOBase):
    """Reads an object in ranges of bytes."""

    def __init__(self, store: ObjectStore, name: str, size: int) -> None:
        self._store = store
        self._object = name
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = max(0, base[whence] + offset)
        return self._position

    def readall(self) -> bytes:
        # The method of the base class reads 8 kB at a time.
        blocks = []
        while block := self.read(min(_READ_BYTES, self._size - self._position)):
            blocks.append(block)
        return b"".join(blocks)

    def readinto(self, buffer: Any) -> int:
        stop = min(self._position + len(buffer), self._size)
        if stop <= self._position:
            return 0
        content = self._store.read(self._object, self._position, stop)
        if len(content) != stop - self._position:
            raise OSError(
                errno.EIO,
                f"{len(content):,} bytes arrived of {stop - self._position:,}; it was "
                "replaced during reading",
                self._store._path(self._object),
            )
        buffer[: len(content)] = content
        self._position = stop
        return len(content)


def describe_failure(error: Exception, path: str) -> OSError:
    """Turns the error of a request into one line: object, reason and way out."""
    if isinstance(error, FileExistsError):
        return FileExistsError(errno.EEXIST, "it already exists", path)
    if isinstance(error, FileNotFoundError):
        bucket = path.partition("://")[2].partition("/")[0]
        return FileNotFoundError(
            errno.ENOENT,
            f"there is no such object, or no bucket {bucket}; check the name or "
            "create the bucket",
            path,
        )
    reason = " ".join(redact(str(error)).split()) or type(error).__name__
    status = getattr(error, "code", None) or getattr(error, "status", None)
    if (
        isinstance(error, PermissionError)
        or str(status) in ("401", "403")
        # gcsfs has no error type for the status 403.
        or (isinstance(error, OSError) and str(error).startswith("Forbidden"))
        or type(error).__name__ == "NoCredentialsError"
    ):
        return PermissionError(
            errno.EACCES,
            f"no permission ({reason}); use credentials that may read and write "
            "there, see docs/ENGINES.md",
            path,
        )
    return OSError(
        errno.EIO,
        f"the request failed ({reason}); try again, or check the network",
        path,
    )
