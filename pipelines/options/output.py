"""The flag --output, which every job that writes a folder has."""

from precis.model.errors import UsageError


def check_output(output: str) -> None:
    """Refuses an empty --output.

    Raises:
      UsageError: it is empty.
    """
    if not output:
        raise UsageError("--output is empty; name the folder to write to")
