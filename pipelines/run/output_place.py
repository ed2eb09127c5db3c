"""Refuses places that a command cannot write to, or must not, before it reads.

Object stores have no folders, so there only `check_apart` refuses something.
"""

import os

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.listing import absolute_path, is_within, resolve


def check_file_place(path: str, *, flag: str) -> None:
    """Refuses a folder, and a path that leads through a file.

    Args:
      path: of a file that is to be written.
      flag: that names it, for the message.

    Raises:
      UsageError: no file can be written there.
    """
    if not files.is_local(path):
        return
    if os.path.isdir(absolute_path(path)):
        raise UsageError(f"{flag} {path} is a folder; name a file, in it or elsewhere")
    _check_folders(os.path.dirname(absolute_path(path)), f"{flag} {path}")


def check_folder_place(path: str, *, flag: str) -> None:
    """Refuses a file, and a path that leads through one.

    The arguments are those of `check_file_place`.

    Raises:
      UsageError: there can be no folder.
    """
    if files.is_local(path):
        _check_folders(absolute_path(path), f"{flag} {path}")


def _check_folders(folder: str, given: str) -> None:
    """Refuses a folder of which a part is a file."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise UsageError(f"{given}: {folder} is a file; name another place")


def check_apart(path: str, *, flag: str, result: str) -> None:
    """Refuses a place in a finished result, whose files stay as they were written.

    Args:
      path: of a file or folder that is to be written.
      flag: that names it, for the message.
      result: the folder of the result.

    Raises:
      UsageError: it lies there. Links are followed before paths are compared.
    """
    if is_within(resolve(path), resolve(result)):
        raise UsageError(
            f"{flag} {path} lies in {result}, whose files stay as they were written; "
            "name a place outside it"
        )
