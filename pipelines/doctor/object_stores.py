"""The object stores that a command names: credentials, and whether buckets answer."""

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from precis.model import files
from precis.model.errors import PrecisError
from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    PROBLEM,
    Check,
    Diagnosis,
)
from precis.pipelines.doctor.request import Request

_GCS = ("gs://", "gcs://")
_S3 = ("s3://", "s3a://")
# The libraries themselves try again for minutes.
_SECONDS = 60.0

ResultT = TypeVar("ResultT")


def check_object_stores(request: Request) -> Check[bool]:
    """Looks for credentials, and asks each bucket for one name.

    Returns:
      Whether all that the command names may be reached.
    """
    paths = [path for path in request.paths if path.startswith((*_GCS, *_S3))]
    all_reached = True
    for schemes, find in ((_GCS, _gcs_credentials), (_S3, _s3_credentials)):
        if not any(path.startswith(schemes) for path in paths):
            continue
        finding = find()
        yield finding
        if finding.level == PROBLEM:
            all_reached = False
            paths = [path for path in paths if not path.startswith(schemes)]
    for bucket, path in _by_bucket(paths).items():
        finding = _ask(bucket, path)
        yield finding
        all_reached = all_reached and finding.level != PROBLEM
    return all_reached


def _by_bucket(paths: list[str]) -> Mapping[str, str]:
    """A path for each bucket."""
    named: dict[str, str] = {}
    for path in paths:
        scheme, _, rest = path.partition("://")
        named.setdefault(f"{scheme}://{rest.partition('/')[0]}", path)
    return named


def _gcs_credentials() -> Diagnosis:
    """Whose account Google's libraries would use."""
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if emulator:
        return Diagnosis(
            NOTE,
            "credentials",
            f"STORAGE_EMULATOR_HOST is set, so gs:// is {emulator} and needs none",
            "unset it to reach Google Cloud",
        )
    import google.auth
    import google.auth.exceptions

    try:
        credentials, project = google.auth.default()
    except google.auth.exceptions.GoogleAuthError as error:
        return Diagnosis(
            PROBLEM,
            "credentials",
            f"there are none for gs://: {_first_line(error)}",
            "run `gcloud auth application-default login`, or set "
            "GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account",
        )
    kind = type(credentials).__module__.rpartition(".")[2]
    whose = getattr(credentials, "service_account_email", "") or f"kind {kind}"
    of_project = f", project {project}" if project else ""
    return Diagnosis(OK, "credentials", f"gs://: {whose}{of_project}")


def _s3_credentials() -> Diagnosis:
    """Where the libraries of S3 would take credentials from."""
    import botocore.session

    credentials = botocore.session.get_session().get_credentials()
    if credentials is None:
        return Diagnosis(
            PROBLEM,
            "credentials",
            "there are none for s3://",
            "run `aws configure`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    return Diagnosis(OK, "credentials", f"s3://: from {credentials.method}")


def _ask(bucket: str, path: str) -> Diagnosis:
    """Asks for the first folder of a path; that nothing is there is an answer too."""
    fs, name = files.filesystem(path)
    # A pattern is no name; what stands before its first wildcard is.
    folder = _without_wildcards(name)

    def look() -> None:
        with contextlib.suppress(FileNotFoundError):
            fs.info(folder)

    try:
        within_limit(look, seconds=_SECONDS)
    except PrecisError:
        raise
    # Each store has exceptions of its own, and all of them mean that it gave no answer.
    except Exception as error:
        return Diagnosis(
            PROBLEM,
            "bucket",
            f"{bucket} does not answer: {type(error).__name__}: {_first_line(error)}",
            "check the name of the bucket, the account's rights to it, and the network",
        )
    return Diagnosis(OK, "bucket", f"{bucket} answers")


def _without_wildcards(name: str) -> str:
    parts = name.split("/")
    for index, part in enumerate(parts):
        if any(character in part for character in "*?["):
            return "/".join(parts[:index])
    return name


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""


def within_limit(call: Callable[[], ResultT], *, seconds: float) -> ResultT:
    """The result of a call in a thread that nobody waits for longer.

    Raises:
      TimeoutError: the time is over.
      Exception: what the call raised.
    """
    results: queue.Queue[Any] = queue.Queue()

    def run() -> None:
        try:
            results.put((call(), None))
        except Exception as error:
            results.put((None, error))

    # A thread that hangs in a library does not keep the process from its end.
    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = results.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} seconds") from None
    if error is not None:
        raise error
    return result
