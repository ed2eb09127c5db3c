"""The files of a result: its description, _SUCCESS, all that the description lists; and
what is wrong with them, a line each.

A name in a description is not trusted: the file may have been edited.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.stages import stage
from precis.pipelines.run.job import JOB_FILE, LOCK_FILE, TASKS_FOLDER
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    damage_of,
    listed_files,
    other_files,
)

# So many lines say the same of one file; a last one counts the others.
MOST_ALIKE = 20
_LISTED_FIELDS = {"file": str, "bytes": int, "sha256": str}


class Finding(NamedTuple):
    """Something that is wrong.

    Attributes:
      file: its name in the folder of the result, or a file of the corpus.
      problem: what is wrong with it.
      place: where in the file, as in `row 17`; "" for the whole file.
      is_note: whether it is no damage, but good to know.
    """

    file: str
    problem: str
    place: str = ""
    is_note: bool = False


def as_lines(findings: Iterable[Finding]) -> list[str]:
    """A line for each finding, and one for those that are like twenty others."""
    alike: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        places = alike.setdefault((finding.file, finding.problem), [])
        places.append(f", {finding.place}" if finding.place else "")
    lines = []
    for (file, problem), places in alike.items():
        lines += [f"{file}{place}: {problem}" for place in places[:MOST_ALIKE]]
        if len(places) > MOST_ALIKE:
            more = len(places) - MOST_ALIKE
            lines.append(f"{file}: {problem}, in {more} more places")
    return list(map(_one_line, lines))


def _one_line(text: str) -> str:
    """A text whose line breaks and other control characters are escaped."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text
    )


def check_success(
    folder: str, kind: str, description: Mapping[str, Any]
) -> Iterator[Finding]:
    """Compares _SUCCESS with the description of a result, byte for byte.

    Args:
      folder: of the result.
      kind: `records` or `summaries`.
      description: the content of its description file.
    """
    path, name = files.join(folder, SUCCESS_FILE), DESCRIPTION_FILES[kind]
    if not files.exists(path):
        yield Finding(SUCCESS_FILE, "is missing: the result is not finished")
        return
    content = files.read_bytes(path).decode(errors="replace")
    checksum = files.sha256_file(files.join(folder, name))
    if checksum not in content.split():
        problem = f"its checksum is not that in {SUCCESS_FILE}; one of them was changed"
        yield Finding(name, problem)
    elif content != f"{description.get('fingerprint')}\n{checksum}\n":
        problem = f"is not the fingerprint and the checksum of {name}"
        yield Finding(SUCCESS_FILE, problem)


def check_listed(
    folder: str, kind: str, description: Mapping[str, Any]
) -> Iterator[Finding]:
    """Compares the files that a description lists with those that are there.

    Raises:
      DataError: the list is damaged, or names a file outside of the folder.
    """
    name = DESCRIPTION_FILES[kind]
    try:
        listed = listed_files(description)
        for file in listed:
            files.check_fields(file, _LISTED_FIELDS)
            files.path_within(folder, file["file"], listed_in=name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{name}: its list of files is damaged: {error}") from error
    with stage("check", total=len(listed), unit="files") as checking:
        for file in listed:
            damage = checking.counted(damage_of(folder, file))
            if damage:
                yield Finding(file["file"], damage)
    expected = {name, SUCCESS_FILE, *(file["file"] for file in listed)}
    yield from check_others(folder, expected)


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
        problem = "a job runs here or was stopped; the same command finishes it"
        yield Finding(TASKS_FOLDER, problem)
    for name in other_files(folder, expected):
        if not name.startswith(f"{TASKS_FOLDER}/"):
            yield Finding(name, "is no part of the result")
