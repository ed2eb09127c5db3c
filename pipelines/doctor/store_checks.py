"""Whether an object store can be used: its credentials, and its buckets."""

import contextlib
import logging
import os
from collections.abc import Iterator

import fsspec

from precis.model import files
from precis.model.errors import UsageError
from precis.model.storage.clients import AMAZON, GOOGLE, extra_of

_GOOGLE_WAY_OUT = (
    "run `gcloud auth application-default login` or set "
    "GOOGLE_APPLICATION_CREDENTIALS (FSSPEC_GCS_TOKEN=anon reads public buckets)"
)
_AMAZON_WAY_OUT = (
    "run `aws configure` or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
    "(FSSPEC_S3_ANON=true reads public buckets)"
)
# Settings of fsspec that stand for credentials.
_SETTINGS = frozenset({"token", "anon", "key", "endpoint_url"})


def find_credentials(path: str) -> str:
    """What the store of a path on `gs://` or `s3://` is asked with.

    Returns:
      Such as `news@p-1.iam.gserviceaccount.com, project p-1`.

    Raises:
      UsageError: there are no credentials.
    """
    is_google = extra_of(path) == "gcs"
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if is_google and emulator:
        return f"none, as STORAGE_EMULATOR_HOST is {emulator}"
    settings: set[str] = set()
    for scheme in GOOGLE if is_google else AMAZON:
        settings |= _SETTINGS & fsspec.config.conf.get(scheme, {}).keys()
    if settings:
        return f"fsspec's setting {', '.join(sorted(settings))}"
    return _google_credentials() if is_google else _amazon_credentials()


def _google_credentials() -> str:
    import google.auth
    import google.auth.exceptions

    try:
        with _silenced("google.auth"):
            credentials, project = google.auth.default()
    except google.auth.exceptions.GoogleAuthError as error:
        named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
        reason = "there are no credentials for gs://"
        if named:
            reason = f"GOOGLE_APPLICATION_CREDENTIALS {named}: {_one_line(error)}"
        raise UsageError(f"{reason}; {_GOOGLE_WAY_OUT}") from error
    kind = type(credentials).__module__.rpartition(".")[2]
    whose = getattr(credentials, "service_account_email", "") or f"kind {kind}"
    return f"{whose}, project {project}" if project else whose


def _amazon_credentials() -> str:
    import botocore.session

    credentials = botocore.session.Session().get_credentials()
    if credentials is None:
        raise UsageError(f"there are no credentials for s3://; {_AMAZON_WAY_OUT}")
    return f"from {credentials.method}"


def bucket_of(path: str) -> str:
    """The bucket of a URL: `gs://news` of `gs://news/2026/*.jsonl`."""
    scheme, _, name = path.partition("://")
    return f"{scheme}://{name.partition('/')[0]}"


def check_bucket(bucket: str) -> None:
    """Asks a store for a bucket.

    Args:
      bucket: such as `gs://news`.

    Raises:
      UsageError: there is none, or it does not answer.
    """
    fs, name = files.filesystem(bucket)
    try:
        with _silenced("gcsfs"):
            fs.info(name)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no bucket {bucket}; make it, or check the name"
        ) from error
    # The packages of the stores raise exceptions of many kinds, their networks' too.
    except Exception as error:
        raise UsageError(
            f"{bucket} cannot be read: {_one_line(error)}; check the network and what "
            "these credentials may do"
        ) from error


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return " ".join(line.strip() for line in lines) or type(error).__name__


@contextlib.contextmanager
def _silenced(name: str) -> Iterator[None]:
    """Keeps a library from logging the traceback of an error that is reported."""
    logger = logging.getLogger(name)
    was_disabled = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = was_disabled
