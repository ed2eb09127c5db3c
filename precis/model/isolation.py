"""Does work on several documents so that if one fails, only its result is lost.

    isolate([a, b, c, d], work)

    work([a, b, c, d])   fails, so it is repeated in halves
    work([a, b])         A, B
    work([c, d])         fails
    work([c]), work([d]) fails; D
    result               A, B, Failure, D

This file imports neither TensorFlow nor Beam.
"""

import re
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from precis.model.errors import PrecisError

# The reasons of failures.
NAN = "nan"
OUT_OF_MEMORY = "out_of_memory"
PROCESS_DIED = "process_died"
TOO_LONG = "too_long"  # The document is too long for a server.
PENDING = "pending"  # Its request waits for a batch.
NO_ANSWER = "no_answer"  # No batch has an answer to its request.
ERROR = "error"

# Exceptions that no document causes: wrong bundles or flags, a lost worker, a file that
# cannot be read or written.
NOT_OF_A_DOCUMENT: tuple[type[Exception], ...] = (PrecisError, OSError)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Failure(NamedTuple):
    """Why there is no result for a document.

    Attributes:
      stage: what was done with the document, such as `search`.
      reason: nan, out_of_memory, process_died or error; stages may add others.
      detail: one line that says what happened, without the document's text.
      error_class: the class of the exception; None if there was none.
    """

    stage: str
    reason: str
    detail: str
    error_class: str | None = None

    @property
    def retryable(self) -> bool:
        """Whether a retry may succeed, on a machine with more memory or less load."""
        return self.is_of_server or self.reason in (OUT_OF_MEMORY, PROCESS_DIED)

    @property
    def is_of_server(self) -> bool:
        """Whether a server has failed, so that a retry may succeed."""
        of_server = f"http_(5|408|409|42[59])|timeout|cut_answer|{NO_ANSWER}"
        return bool(re.match(of_server, self.reason))


def isolate(
    items: Sequence[ItemT],
    work: Callable[[Sequence[ItemT]], Sequence[ResultT] | Failure],
    *,
    stage: str,
    stops: tuple[type[Exception], ...] = NOT_OF_A_DOCUMENT,
) -> list[ResultT | Failure]:
    """Does work on several items together; if that fails, in halves.

    Args:
      items: the items.
      work: takes some of the items, in order, and returns a result for each, or one
        failure for all.
      stage: the name of the work, for the failures.
      stops: the exceptions that are raised, because no item causes them.

    Returns:
      The result or the failure of each item.
    """
    if not items:
        return []
    try:
        results = work(items)
    except stops:
        raise
    except Exception as error:
        results = failure_of(error, stage)
    if not isinstance(results, Failure):
        return list(results)
    if len(items) == 1:
        return [results]
    # Outside of the `except`, as in it the exception would keep the memory of the
    # failed work.
    middle = len(items) // 2
    return [
        *isolate(items[:middle], work, stage=stage, stops=stops),
        *isolate(items[middle:], work, stage=stage, stops=stops),
    ]


def attempt(
    item: ItemT, work: Callable[[ItemT], ResultT], *, stage: str
) -> ResultT | Failure:
    """The result of work on one item, or its failure, as in `isolate`."""
    return isolate([item], lambda items: [work(items[0])], stage=stage)[0]


def failure_of(error: Exception, stage: str) -> Failure:
    """Makes a failure from an exception.

    The message of an exception may quote the document. So it is used only if precis
    wrote all of it: a PrecisError without a cause, or a FloatingPointError, which
    reports a number that is NaN or infinite.
    """
    name = type(error).__name__
    reason = ERROR
    if isinstance(error, FloatingPointError):
        reason = NAN
    elif isinstance(error, MemoryError) or name == "ResourceExhaustedError":
        reason = OUT_OF_MEMORY  # The second is TensorFlow's.
    detail = f"{name} at {_place(error)}"
    if isinstance(error, PrecisError | FloatingPointError) and error.__cause__ is None:
        detail = " ".join(str(error).split())
    return Failure(stage, reason, detail, name)


def _place(error: Exception) -> str:
    """The innermost line of precis in the traceback, as `file:line`."""
    place = "an unknown place"
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("precis."):
            place = f"{module.replace('.', '/')}.py:{line}"
    return place
