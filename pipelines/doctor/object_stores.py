"""The object stores that a command names: credentials, and whether buckets answer."""

import os
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from precis.model.errors import UsageError
from precis.model.storage.clients import extra_of
from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    PROBLEM,
    Check,
    Diagnosis,
    problem_of,
)
from precis.pipelines.doctor.request import Request
from precis.pipelines.doctor.store_checks import (
    bucket_of,
    check_bucket,
    find_credentials,
)

# The libraries themselves try again for minutes.
_SECONDS = 60.0

ResultT = TypeVar("ResultT")


def check_object_stores(request: Request) -> Check[bool]:
    """Looks for credentials, and asks for each bucket, as the job does.

    Returns:
      Whether all that the command names may be reached.
    """
    paths = [path for path in request.paths if extra_of(path)]
    closed = set()
    for extra in dict.fromkeys(map(extra_of, paths)):
        finding = _look_for_credentials(
            next(path for path in paths if extra_of(path) == extra)
        )
        yield finding
        if finding.level == PROBLEM:
            closed.add(extra)
    all_reached = not closed
    open_paths = (path for path in paths if extra_of(path) not in closed)
    for bucket in dict.fromkeys(map(bucket_of, open_paths)):
        finding = _ask(bucket)
        yield finding
        all_reached = all_reached and finding.level != PROBLEM
    return all_reached


def _look_for_credentials(path: str) -> Diagnosis:
    """Whose account is used for the store of a path."""
    scheme = path.partition("://")[0]
    try:
        found = f"{scheme}://: {find_credentials(path)}"
    except UsageError as error:
        return problem_of("credentials", str(error))
    if extra_of(path) == "gcs" and os.environ.get("STORAGE_EMULATOR_HOST"):
        return Diagnosis(NOTE, "credentials", found, "unset it to reach Google Cloud")
    return Diagnosis(OK, "credentials", found)


def _ask(bucket: str) -> Diagnosis:
    try:
        within_limit(lambda: check_bucket(bucket), seconds=_SECONDS)
    except UsageError as error:
        return problem_of("bucket", str(error))
    except TimeoutError as error:
        return Diagnosis(
            PROBLEM,
            "bucket",
            f"{bucket} does not answer: {error}",
            "check the name of the bucket, the account's rights to it, and the network",
        )
    return Diagnosis(OK, "bucket", f"{bucket} answers")


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
