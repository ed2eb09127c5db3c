"""The files of a result: its description, _SUCCESS, and all that the description lists.

A name in a description is not trusted: the file may have been edited.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.stages import stage
from precis.model.tokenization.folder import load_tokenizer
from precis.pipelines.run.job import JOB_FILE, LOCK_FILE, TASKS_FOLDER
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    damage_of,
    listed_files,
    other_files,
)
from precis.pipelines.verification.findings import Finding

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_LISTED_FIELDS = {"file": str, "bytes": int, "sha256": str}


def check_success(
    folder: str, kind: str, description: Mapping[str, Any]
) -> Iterator[Finding]:
    """Compares _SUCCESS with the description of a result.

    Args:
      folder: of the result.
      kind: `records` or `summaries`.
      description: the content of its description file.
    """
    path = files.join(folder, SUCCESS_FILE)
    name = DESCRIPTION_FILES[kind]
    if not files.exists(path):
        yield Finding(SUCCESS_FILE, "is missing: the result is not finished")
        return
    content = files.read_bytes(path).decode(errors="replace")
    words = content.split()
    if len(words) != 2 or not all(map(_SHA256.match, words)):
        yield Finding(SUCCESS_FILE, "does not hold a fingerprint and a checksum")
        return
    fingerprint, checksum = words
    if content != f"{fingerprint}\n{checksum}\n":
        yield Finding(SUCCESS_FILE, "has other white space than precis writes")
    if fingerprint != description.get("fingerprint"):
        yield Finding(SUCCESS_FILE, f"its fingerprint is not that of {name}")
    if checksum != files.sha256_file(files.join(folder, name)):
        yield Finding(
            name, f"its checksum is not that in {SUCCESS_FILE}; one of them was changed"
        )


def check_listing(folder: str, kind: str, description: Any) -> Iterator[Finding]:
    """Checks that the files of a description can be looked for at all."""
    name = DESCRIPTION_FILES[kind]
    seen = set()
    try:
        listed = listed_files(description)
        for file in listed:
            files.check_fields(file, _LISTED_FIELDS)
            files.path_within(folder, file["file"], listed_in=name)
            if file["file"] in seen:
                yield Finding(name, f"it lists {file['file']} more than once")
            seen.add(file["file"])
    except DataError as error:
        yield Finding(name, str(error).removeprefix(f"{name}: "))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield Finding(name, f"its list of files is damaged: {error}")


def listed_rows(file: Mapping[str, Any]) -> int:
    """The rows of a file as far as a description says so, for the display."""
    rows = file.get("rows")
    return rows if isinstance(rows, int) else 0


def check_listed(folder: str, description: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares the files that a description lists with those that are there."""
    listed = listed_files(description)
    with stage("check", total=len(listed), unit="files") as checking:
        for file in listed:
            damage = damage_of(folder, file)
            checking.advance()
            if damage:
                yield Finding(file["file"], damage)


def check_others(folder: str, expected: Collection[str]) -> Iterator[Finding]:
    """Names the files below a folder that are no part of the result.

    Args:
      folder: of the result.
      expected: the names of its files.
    """
    # Without these two, what lies there belongs to no job: a late list of an object
    # store has kept it from being removed.
    marks = (files.join(folder, TASKS_FOLDER, name) for name in (JOB_FILE, LOCK_FILE))
    if any(map(files.exists, marks)):
        yield Finding(
            TASKS_FOLDER,
            "a job runs here or was stopped; the same command finishes it",
        )
    for name in other_files(folder, expected):
        if posixpath.dirname(name).split("/")[0] != TASKS_FOLDER:
            yield Finding(name, "is no part of the result")


def check_tokenizer(
    folder: str, name: str, fingerprint: str, *, named_in: str
) -> Iterator[Finding]:
    """Compares a tokenizer of a result with the fingerprint in its description."""
    try:
        if load_tokenizer(files.join(folder, name)).fingerprint != fingerprint:
            yield Finding(name, f"is not the tokenizer that {named_in} names")
    except (DataError, OSError) as error:
        yield Finding(name, f"is damaged or missing: {error}")
