"""The files of a result: its description, _SUCCESS, all that the description lists; and
what is wrong with them, a line each.

A name in a description is not trusted: the file may have been edited.
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

# So many lines say the same of one file; a last one counts the others.
MOST_ALIKE = 20


class Finding(NamedTuple):
    """Something that is wrong.

    Attributes:
      file: its name in the folder of the result, or a file of the corpus.
      problem: what is wrong with it.
      place: where in the file, as in `row 17`; "" for the whole file.
      is_note: whether it is no damage, but good to know.
      is_of_corpus: whether the run is not what its corpus says; its files may be whole.
    """

    file: str
    problem: str
    place: str = ""
    is_note: bool = False
    is_of_corpus: bool = False


def as_lines(findings: Iterable[Finding]) -> list[str]:
    """A line for each finding, and one for those that are like twenty others. Line
    breaks and other control characters are escaped.
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
            lines.append(f"{file}: {problem}, in {more} more places")
    return [
        "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
        for line in lines
    ]


def check_files(
    folder: str, kind: str, description: Mapping[str, Any]
) -> Iterator[Finding]:
    """Compares _SUCCESS, byte for byte, and the files that a description lists with
    those that are there.

    Args:
      folder: of the result.
      kind: `records` or `summaries`.
      description: the content of its description file.

    Raises:
      DataError: the description names a file outside of the folder.
      ValueError, KeyError, TypeError, AttributeError: its list of files is damaged.
    """
    name = DESCRIPTION_FILES[kind]
    path = files.join(folder, name)
    for file, problem in find_damage(path, description):
        yield Finding(file, problem)
    names = {file["file"] for file in listed_files(path, description)}
    yield from check_others(folder, {name, SUCCESS_FILE, *names})


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
