"""The clients of object stores, as fsspec has them.

Nothing is kept of what a store has listed, so another process's objects are seen at
once. The clients repeat a request that fails, or to which nothing is answered for a
minute, for some minutes.

`STORAGE_EMULATOR_HOST` and `AWS_ENDPOINT_URL` name another service than Google's and
Amazon's.
"""

import functools
import os
import socket
import urllib.parse
import urllib.request
from typing import Any

import fsspec

from precis.model.errors import UsageError

GOOGLE = ("gs", "gcs")
AMAZON = ("s3", "s3a")
# The extras that bring what reads the stores.
_EXTRAS = {**dict.fromkeys(GOOGLE, "gcs"), **dict.fromkeys(AMAZON, "s3")}
_AMAZON_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_ENDPOINT_VARIABLES = (
    "STORAGE_EMULATOR_HOST",
    "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
    *_AMAZON_VARIABLES,
)
_SILENCE_SECONDS = 60.0
_CONNECT_SECONDS = 10.0


def extra_of(path: str) -> str:
    """The extra of precis that reads a path; "" where none is needed."""
    scheme, separator, _ = path.partition("://")
    return _EXTRAS.get(scheme, "") if separator else ""


def open_client(protocol: str) -> Any:
    """The file system of fsspec for a protocol such as `gs`.

    Raises:
      ImportError: the package that reads it is not installed.
      ValueError: there is no such protocol.
      UsageError: the store cannot be reached.
    """
    settings = tuple(os.environ.get(name, "") for name in _ENDPOINT_VARIABLES)
    return _open_client(protocol, settings, os.getpid())


@functools.lru_cache
def _open_client(protocol: str, settings: tuple[str, ...], pid: int) -> Any:
    """The client of a process, for one setting of the environment."""
    if protocol in GOOGLE:
        return _google()
    if protocol in AMAZON:
        return _amazon()
    return fsspec.filesystem(protocol)


def _google() -> Any:
    import aiohttp

    # Not the class behind `gs://` in fsspec, which asks by gRPC whether a bucket is a
    # zonal one: half a minute where an emulator or a proxy speaks HTTP alone.
    from gcsfs.core import GCSFileSystem

    # The search for credentials takes long where there is no network.
    emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
    domain = os.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "googleapis.com")
    _check_reached(emulator or f"https://storage.{domain}")
    timeout = aiohttp.ClientTimeout(
        # A stalled upload is noticed by the time of the whole request alone.
        total=10 * _SILENCE_SECONDS,
        sock_connect=_CONNECT_SECONDS,
        sock_read=_SILENCE_SECONDS,
    )
    return GCSFileSystem(
        skip_instance_cache=True,  # It knows nothing of the environment.
        token="anon" if emulator else None,
        use_listings_cache=False,
        consistency="md5",
        requests_timeout=timeout,
    )


def _amazon() -> Any:
    import s3fs  # noqa: F401  # Where it is missing, that is said first.

    # The first of them counts.
    if endpoint := next(filter(None, map(os.environ.get, _AMAZON_VARIABLES)), ""):
        _check_reached(endpoint)
    return fsspec.filesystem(
        "s3",
        skip_instance_cache=True,
        use_listings_cache=False,
        config_kwargs={
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _SILENCE_SECONDS,
            "retries": {"mode": "standard", "max_attempts": 6},
        },
    )


def _check_reached(endpoint: str) -> None:
    """Connects to a service once, if no proxy stands in between.

    Raises:
      UsageError: there is no connection.
    """
    url = urllib.parse.urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    host = url.hostname or ""
    proxies = urllib.request.getproxies()
    if proxies.keys() & {url.scheme or "http", "all"}:
        return
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise UsageError(
            f"{host}:{port} cannot be reached ({error.strerror or error}); check the "
            "network, or the variables STORAGE_EMULATOR_HOST and AWS_ENDPOINT_URL"
        ) from error
