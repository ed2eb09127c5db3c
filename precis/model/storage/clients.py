"""The clients of object stores, from fsspec.

Listings are not cached, so objects of other processes are seen at once. For some
minutes the clients retry a request that fails or gets no answer for a minute.

`STORAGE_EMULATOR_HOST` and `AWS_ENDPOINT_URL` name services other than Google's and
Amazon's.
"""

import functools
import os
import socket
import urllib.parse
import urllib.request
from typing import Any

from precis.model.errors import UsageError

GOOGLE = ("gs", "gcs")
AMAZON = ("s3", "s3a")
# The extra of precis that installs the client of a store.
_EXTRAS = {**dict.fromkeys(GOOGLE, "gcs"), **dict.fromkeys(AMAZON, "s3"), "hf": "train"}
_AMAZON_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_ENDPOINT_VARIABLES = (
    "STORAGE_EMULATOR_HOST",
    "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
    "HF_ENDPOINT",
    *_AMAZON_VARIABLES,
)
_SILENCE_SECONDS = 60.0
_CONNECT_SECONDS = 10.0


def extra_of(path: str) -> str:
    """The extra of precis that a path needs; "" if it needs none."""
    scheme, separator, _ = path.partition("://")
    return _EXTRAS.get(scheme, "") if separator else ""


def open_client(protocol: str) -> Any:
    """The file system of fsspec for a protocol such as `gs`.

    Raises:
      ImportError: the package for the protocol is not installed.
      ValueError: there is no such protocol.
      UsageError: the store cannot be reached.
    """
    settings = tuple(os.environ.get(name, "") for name in _ENDPOINT_VARIABLES)
    return _open_client(protocol, settings, os.getpid())


@functools.lru_cache
def _open_client(protocol: str, settings: tuple[str, ...], pid: int) -> Any:
    """The client, cached by process and by the variables of the environment."""
    if protocol in GOOGLE:
        return _google()
    if protocol in AMAZON:
        return _amazon()
    import fsspec

    return fsspec.filesystem(protocol)


def _google() -> Any:
    import aiohttp

    # Not the class of `gs://` in fsspec: it asks by gRPC whether a bucket is zonal,
    # which takes half a minute if an emulator or a proxy speaks only HTTP.
    from gcsfs.core import GCSFileSystem

    # Checked first: without a network the search for credentials takes long.
    emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
    domain = os.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "googleapis.com")
    _check_reached(emulator or f"https://storage.{domain}")
    timeout = aiohttp.ClientTimeout(
        # Only the time of the whole request detects a stalled upload.
        total=10 * _SILENCE_SECONDS,
        sock_connect=_CONNECT_SECONDS,
        sock_read=_SILENCE_SECONDS,
    )
    return GCSFileSystem(
        skip_instance_cache=True,  # its key does not include the environment
        token="anon" if emulator else None,
        use_listings_cache=False,
        consistency="md5",
        requests_timeout=timeout,
    )


def _amazon() -> Any:
    import fsspec
    import s3fs  # noqa: F401  # If it is missing, this is the first error.

    # The first variable that is set counts.
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
    """Connects to a service once, unless there is a proxy.

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
