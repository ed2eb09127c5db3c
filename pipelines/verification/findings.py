"""What is wrong with a result: one line each."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

# So many lines say the same of one file; a last one counts the others.
MOST_ALIKE = 20


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
    alike: Counter[tuple[str, str]] = Counter()
    lines = []
    for finding in findings:
        alike[finding.file, finding.problem] += 1
        if alike[finding.file, finding.problem] <= MOST_ALIKE:
            place = f", {finding.place}" if finding.place else ""
            lines.append(_one_line(f"{finding.file}{place}: {finding.problem}"))
    lines += [
        _one_line(f"{file}: {problem}, in {count - MOST_ALIKE} more places")
        for (file, problem), count in alike.items()
        if count > MOST_ALIKE
    ]
    return lines


def _one_line(text: str) -> str:
    """A text whose line breaks and other control characters are escaped."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text
    )
