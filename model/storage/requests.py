"""Requests to an object store: repeated where that may help, or else explained.

The client libraries repeat a request that fails. What they give up is repeated here,
unless the store's answer is final: no such object, no permission.
"""

import contextlib
import errno
import time
from collections.abc import Callable
from typing import TypeVar

from precis.model.credentials import redact

# Beyond the repetitions of the client libraries.
_WAITS_SECONDS = (1.0, 4.0)
_PATIENCE_SECONDS = 120.0
_FINAL = (
    *(FileNotFoundError, FileExistsError, PermissionError),
    *(IsADirectoryError, NotADirectoryError, NotImplementedError),
)
# The packages whose errors are those of requests.
_CLIENTS = (
    *("aiobotocore", "aiohttp", "asyncio", "botocore", "fsspec", "gcsfs"),
    *("google", "requests", "s3fs", "urllib3"),
)

T = TypeVar("T")


def ask(path: str, request: Callable[[], T], *, is_upload: bool = False) -> T:
    """Makes a request, again where it may then succeed.

    Args:
      path: of the object, for messages.
      request: may be made several times.
      is_upload: whether an unknown name may be that of an upload in parts.

    Raises:
      OSError: the request failed; it names the object, the reason and the way out.
    """
    begun = time.monotonic()
    waits = iter(_WAITS_SECONDS)
    while True:
        try:
            return request()
        except Exception as error:
            if not _is_of_store(error):
                raise
            is_unknown_upload = is_upload and isinstance(error, FileNotFoundError)
            is_late = time.monotonic() - begun > _PATIENCE_SECONDS
            wait = next(waits, None)
            is_final = _is_final(error) and not is_unknown_upload
            if is_final or is_late or wait is None:
                raise _describe(error, path) from error
            time.sleep(wait)


def _describe(error: Exception, path: str) -> OSError:
    """The error of a request as one line."""
    reason = " ".join(redact(str(error)).split()) or type(error).__name__
    if isinstance(error, FileExistsError):
        return FileExistsError(errno.EEXIST, "it exists already", path)
    if isinstance(error, FileNotFoundError):
        bucket = path.partition("://")[2].partition("/")[0]
        return FileNotFoundError(
            errno.ENOENT,
            f"there is no such object, or no bucket {bucket}; check the name, or "
            "create the bucket",
            path,
        )
    if _is_refused(error):
        return PermissionError(
            errno.EACCES,
            f"no permission ({reason}); name credentials that may read and write "
            "there, as docs/ENGINES.md says",
            path,
        )
    return OSError(
        errno.EIO,
        f"the request failed ({reason}); try again, or check the network",
        path,
    )


def _status(error: Exception) -> int:
    """The HTTP status behind an error; 0 where there is none."""
    code = getattr(error, "code", None) or getattr(error, "status", None)
    with contextlib.suppress(ValueError):
        return int(code or 0)
    return 0


def _is_of_store(error: Exception) -> bool:
    """Whether an error comes from a request and not from a defect of the program."""
    return isinstance(error, OSError) or (
        type(error).__module__.partition(".")[0] in _CLIENTS
    )


def _is_refused(error: Exception) -> bool:
    # gcsfs has no type of its own for the status 403.
    is_forbidden = isinstance(error, OSError) and str(error).startswith("Forbidden")
    is_anonymous = type(error).__name__ == "NoCredentialsError"
    is_refused = isinstance(error, PermissionError) or _status(error) in (401, 403)
    return is_forbidden or is_anonymous or is_refused


def _is_final(error: Exception) -> bool:
    is_answered = 400 <= _status(error) < 500 and _status(error) not in (408, 429)
    return isinstance(error, _FINAL) or _is_refused(error) or is_answered
