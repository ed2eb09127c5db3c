"""The errors that end a job, each with its exit code."""


class PrecisError(Exception):
    """A failure that is reported to the user in one line, without a traceback."""

    exit_code = 1


class UsageError(PrecisError):
    """The command was wrong: a flag, a path, a field. Raised before any work starts."""

    exit_code = 2


class DataError(PrecisError):
    """The data failed the job.

    There are too many dead letters, a file is damaged, or a loss is not finite.
    """

    exit_code = 1


class JobError(PrecisError):
    """A pipeline failed through neither the command nor the data.

    The disk is full, a worker is lost, or the program has a defect.
    """

    exit_code = 1


class Interrupted(Exception):
    """A signal arrived, and the state of the training is saved."""
