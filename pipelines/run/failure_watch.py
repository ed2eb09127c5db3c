"""The end of a job in which every document fails."""

from collections import Counter
from collections.abc import Sequence

from precis.model.errors import JobError
from precis.model.isolation import Failure

# A defect that concerns every document ends the job after so many of them.
MOST_FIRST_FAILURES = 32


class FailureWatch:
    """Finds out that a stage fails for every document.

    A worker has one. It ends the job when MOST_FIRST_FAILURES documents failed in a
    stage with exceptions of one class, and no document passed that stage before. It
    looks after each window of documents, so a window is the least that is tried. A
    corpus of fewer documents ends with its dead letters.
    """

    def __init__(self) -> None:
        self._passed: set[str] = set()
        self._failures: Counter[tuple[str, str]] = Counter()

    def check(self, stage: str, results: Sequence[object]) -> None:
        """Takes the results of a stage; None is a document that it did not concern.

        Failures of earlier stages may be among them.

        Raises:
          JobError: all documents so far failed, and with the same class of exception.
        """
        if stage in self._passed:
            return
        if any(not isinstance(result, Failure | None) for result in results):
            self._passed.add(stage)
            return
        for failure in results:
            if not isinstance(failure, Failure) or failure.stage != stage:
                continue
            kind = failure.error_class or failure.reason
            self._failures[stage, kind] += 1
            if self._failures[stage, kind] == MOST_FIRST_FAILURES:
                raise JobError(
                    f"the first {MOST_FIRST_FAILURES} documents all failed in the "
                    f"stage {stage} with {kind} ({failure.detail}), so the cause is "
                    "no single document; see to it and run the command again"
                )
