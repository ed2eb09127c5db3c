"""Checks the files of a result: its description, _SUCCESS and all listed files; and
formats findings as lines.

File names in a description are not trusted, because it may have been edited.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.finished import (
    SUCCESS_FILE,
    find_damage,
    listed_files,
)
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    JOB_FILE,
    LOCK_FILE,
    TASKS_FOLDER,
    other_files,
)

# Up to this many similar lines for one file; a last line counts the others.
MOST_ALIKE = 20


class Finding(NamedTuple):
    """A finding of a check.

    Attributes:
      file: the name of a file of the result, or of a corpus file.
      problem: the description of the problem.
      place: the place in the file, such as `row 17`; "" for the whole file.
      is_note: whether it is only a note, not damage.
      is_of_corpus: whether the run differs from its corpus; its files may be undamaged.
    """

    file: str
    problem: str
    place: str = ""
    is_note: bool = False
    is_of_corpus: bool = False


def as_lines(findings: Iterable[Finding]) -> list[str]:
    """Formats findings as lines. After twenty similar findings, one line counts the
    others. Line breaks and other control characters are escaped.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        places = alike.setdefault((finding.file, finding.problem), [])
        places.append(f", {finding.place}" if finding.place else "")
    lines = []
    for (file, problem), places in alike.items():
        lines += [f"{file}{place}: {problem}" for place in places[:MOST_ALIKE]]
        if len(places) > MOST_ALIKE:
            more = len(places) - MOST_ALIKE
            lines.append(f"{file}: {problem}; {more} more places")
    return [
        "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
        for line in lines
    ]


def check_files(
    folder: str, kind: str, description: Mapping[str, Any]
) -> Iterator[Finding]:
    """Checks _SUCCESS, byte for byte, and the files that a description lists.

    Args:
      folder: the folder of the result.
      kind: `records` or `summaries`.
      description: the content of its description file.

    Raises:
      DataError: the description names a file outside the folder.
      ValueError, KeyError, TypeError, AttributeError: its list of files is damaged.
    """
    name = DESCRIPTION_FILES[kind]
    path = files.join(folder, name)
    for file, problem in find_damage(path, description):
        yield Finding(file, problem)
    names = {file["file"] for file in listed_files(path, description)}
    yield from check_others(folder, {name, SUCCESS_FILE, *names})


def check_others(folder: str, expected: Collection[str]) -> Iterator[Finding]:
    """Reports files in the folder that do not belong to the result.

    Args:
      folder: the folder of the result.
      expected: the names of the result's files.
    """
    # Without these files, the content of `_tasks` belongs to no job: it was not
    # removed, because an object store's list lagged.
    marks = (files.join(folder, TASKS_FOLDER, name) for name in (JOB_FILE, LOCK_FILE))
    if any(map(files.exists, marks)):
        problem = (
            "a job is running here or was stopped; run the same command to finish it"
        )
        yield Finding(TASKS_FOLDER, problem)
    for name in other_files(folder, expected):
        if not name.startswith(f"{TASKS_FOLDER}/"):
            yield Finding(name, "is not part of the result")
