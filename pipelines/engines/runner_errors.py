"""What a runner raises, as an error of precis in one line.

A runner of another process gives the traceback of the worker as text, perhaps within a
message of gRPC or of Java, with its line breaks as backslash and n:

    RuntimeError: Traceback (most recent call last): ...
    precis.model.errors.DataError: a.jsonl: damaged [while running 'EncodeTasks']
"""

import re

from precis.model.errors import (
    DataError,
    JobError,
    PrecisError,
    UsageError,
    describe_system_error,
)

_OWN_ERRORS = {kind.__name__: kind for kind in (UsageError, DataError, JobError)}
# The end of a traceback; its message goes on until the next traceback, an empty line or
# a Java stack. Beam wraps an exception that it cannot raise again in a RuntimeError.
_EXCEPTION = re.compile(
    r"^(?:RuntimeError: )?(?:[A-Za-z_][\w.]*\.)?"
    r"(?P<kind>[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning))"
    r"(?:: (?P<message>(?!.*Traceback \(most recent call last\)).*(?:\n\S.*)*))?$",
    re.MULTILINE,
)
# As Python writes it: `PermissionError: [Errno 13] Permission denied: '/data/x'`.
_SYSTEM_ERROR = re.compile(r"\[Errno (\d+)\] ([^:]+)(?:: '(.*)')?$")
# The longest reason in an error of one line.
_REASON_CHARACTERS = 400


def as_precis_error(error: Exception) -> PrecisError:
    """The error of precis behind an exception of a runner."""
    if isinstance(error, PrecisError):
        return type(error)(_without_stage(str(error)))
    text = str(error).replace("\\n", "\n")
    exceptions = list(_EXCEPTION.finditer(text))
    if exceptions:
        kind, message = exceptions[-1]["kind"], exceptions[-1]["message"] or ""
    else:
        details = getattr(error, "details", None)  # of an error of gRPC
        words = (details() if callable(details) else text) or text
        kind, message = type(error).__name__, words
    message = _without_stage(" ".join(message.split()))
    if kind in _OWN_ERRORS:
        return _OWN_ERRORS[kind](message)
    reason = f"{kind}: {message}"
    if system := _SYSTEM_ERROR.match(message):
        code, words, path = system.groups()
        reason = str(describe_system_error(OSError(int(code), words, path)))
    if len(reason) > _REASON_CHARACTERS:
        reason = f"{reason[:_REASON_CHARACTERS]} ..."
    return JobError(f"the pipeline failed: {reason}")


def _without_stage(message: str) -> str:
    """The message without what Beam adds at its end."""
    return message.split(" [while running", 1)[0]
