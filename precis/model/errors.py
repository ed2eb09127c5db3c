"""The errors that end a job, each with its exit code."""

import errno
import signal
import tempfile

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS)


class PrecisError(Exception):
    """A failure that is reported to the user in one line, without a traceback."""

    exit_code = 1


class UsageError(PrecisError):
    """The command is wrong: a flag, a path, a field. Raised before any work starts."""

    exit_code = 2


class DataError(PrecisError):
    """The data is the cause: there are too many dead letters, a file is damaged, or a
    loss is not finite.
    """


class JobError(PrecisError):
    """Neither the command nor the data is the cause: the disk is full, a worker is
    lost, or the program has a defect.
    """


class Unfinished(PrecisError):
    """Requests to a server are submitted or written, and the result does not exist yet.
    The message says how to continue.
    """

    exit_code = 0


class Interrupted(KeyboardInterrupt):
    """A signal ends a command; the message says what is saved.

    Attributes:
      number: the number of the signal.
    """

    _tagged_with_step = True  # So that Beam raises it again unchanged.

    def __init__(self, saved: str = "", number: int = signal.SIGTERM) -> None:
        """Stores its arguments."""
        super().__init__(saved)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code as in shells: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


def describe_system_error(error: OSError) -> PrecisError:
    """Makes an error that names the file or disk, the reason and the way out."""
    place, reason = error.filename, error.strerror or str(error)
    if error.errno in NO_ROOM:
        # Libraries often do not say which file they were writing.
        place = place or f"the output, or {tempfile.gettempdir()}"
        return JobError(
            f"{place}: {reason}; free some space, and run the same command again"
        )
    said = f"{place}: {reason}" if place else reason
    if error.errno in NO_ACCESS:
        return UsageError(f"{said}; give this user access, or name another place")
    return JobError(f"{said}; correct that, and run the same command again")
