"""Whether a folder holds a finished result, and which of its files are damaged.

    manifest.json or dataset.json   describes the result and lists its files
    _SUCCESS                        the job's fingerprint, and the checksum of the
                                    description; written last

Every command that reads or resumes a result uses these checks. A description may have
been edited, so the names in it are not trusted.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from precis.model import files
from precis.model.progress.stages import stage

SUCCESS_FILE = "_SUCCESS"


def read_success(folder: str) -> bytes | None:
    """The content of _SUCCESS; None if the result is not finished."""
    path = files.join(folder, SUCCESS_FILE)
    return files.read_bytes(path) if files.exists(path) else None


def success_content(path: str, fingerprint: Any) -> bytes:
    """The content of _SUCCESS for a finished result.

    Args:
      path: the path of the description.
      fingerprint: the fingerprint of the job, in hexadecimal.
    """
    return f"{fingerprint}\n{files.sha256_file(path)}\n".encode()


def success_damage(path: str, description: Mapping[str, Any]) -> tuple[str, str]:
    """Whether _SUCCESS or the description is damaged, and what is wrong; ("", "") if
    _SUCCESS has exactly the expected content.

    Args:
      path: the path of the description.
      description: its content.
    """
    success = read_success(posixpath.dirname(path))
    if success is None:
        return SUCCESS_FILE, "is missing: the result is not finished"
    expected = success_content(path, description.get("fingerprint"))
    if len(success) != len(expected):
        return SUCCESS_FILE, f"has {len(success)} bytes instead of {len(expected)}"
    if success != expected:
        return posixpath.basename(path), differs_from(SUCCESS_FILE)
    return "", ""


def differs_from(other: str) -> str:
    """The message about a file whose checksum is not the one in another file."""
    return f"its checksum differs from the checksum in {other}; one of them was changed"


def listed_files(path: str, description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The files that the description of a result lists.

    Args:
      path: the path of the description.
      description: its content.

    Raises:
      DataError: a name leads out of the folder.
      KeyError, TypeError, AttributeError: the list is damaged.
    """
    splits = description.get("splits", {}).values()
    listed = [
        *description.get("files", ()),
        *description.get("groups", {}).get("files", ()),
        *(shard for split in splits for shard in split["shards"]),
        *description.get("dead_letters", ()),
    ]
    for file in listed:
        files.path_within(posixpath.dirname(path), file["file"], listed_in=path)
    return listed


def find_damage(path: str, description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Finds the damaged files of a result, and what is wrong with each: first _SUCCESS
    or the description, then the listed files.

    Args:
      path: the path of the description.
      description: its content.

    Raises:
      DataError, KeyError, TypeError, AttributeError: as `listed_files`.
    """
    damaged, problem = success_damage(path, description)
    if damaged:
        yield damaged, problem
    listed = listed_files(path, description)
    with stage("check", total=len(listed), unit="files") as checking:
        for file in listed:
            problem = checking.counted(damage_of(posixpath.dirname(path), file))
            if problem:
                yield file["file"], problem


def damage_of(folder: str, file: Mapping[str, Any]) -> str:
    """What is wrong with a file of a result, such as "is missing"; "" if it is intact.

    Args:
      folder: the folder of the result.
      file: its name in the folder (`file`), `bytes` and `sha256`.
    """
    path = files.path_within(folder, file["file"], listed_in=folder)
    fs, name = files.filesystem(path)
    if not fs.isfile(name):
        return "is missing"
    size = fs.info(name)["size"]
    if size != file["bytes"]:
        return f"has {size:,} bytes instead of the {file['bytes']:,} that were written"
    if files.sha256_file(path) != file["sha256"]:
        return "was changed after it was written: its checksum differs"
    return ""
