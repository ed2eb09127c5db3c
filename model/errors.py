"""The two ways a job ends badly, each with its exit code."""


class PrecisError(Exception):
    """A failure that is told to the user in one line, without a traceback."""

    exit_code = 1


class UsageError(PrecisError):
    """The command was wrong: a flag, a path, a field. Raised before any work starts."""

    exit_code = 2


class DataError(PrecisError):
    """The data failed the job: too many dead letters, a damaged file, a loss that is
    not finite.
    """

    exit_code = 1


class JobError(PrecisError):
    """A pipeline failed for a reason that is neither the command's nor the data's: a
    full disk, a lost worker, a defect.
    """

    exit_code = 1
