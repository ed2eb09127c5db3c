"""What the doctor found: a level, a subject, what it is, and what to do about it."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from precis.model.errors import PrecisError, describe_system_error

OK = "ok"
NOTE = "note"
WARNING = "warning"
PROBLEM = "problem"
# The advice where there is no better one.
RUN_AGAIN = "correct that, and run `precis doctor` again"
# What an error of a library may have as its first line.
_LONGEST_MESSAGE = 300


class Diagnosis(NamedTuple):
    """One line of the doctor.

    Attributes:
      level: `ok`; `note` where there is something to know; `warning` where the job may
          run and not as it was meant; `problem` where it would fail.
      subject: what was looked at, one word.
      found: what it is like.
      advice: what to do about it; "" where there is nothing to do.
    """

    level: str
    subject: str
    found: str
    advice: str = ""


def checked(subject: str, check: Iterator[Diagnosis]) -> Iterator[Diagnosis]:
    """The findings of a check; what it raises becomes a finding too."""
    try:
        yield from check
    except PrecisError as error:
        yield problem_of(subject, str(error))
    except OSError as error:
        yield problem_of(subject, str(describe_system_error(error)))
    # Whatever a library raises, the other checks go on, and this one has failed.
    except Exception as error:
        line = str(error).split("\n")[0]
        message = f"{type(error).__name__}: {line}"[:_LONGEST_MESSAGE]
        yield Diagnosis(PROBLEM, subject, message, RUN_AGAIN)


def problem_of(subject: str, message: str) -> Diagnosis:
    """The finding of an error of precis.

    Its message names the thing and the reason, and behind the last semicolon the way
    out.
    """
    found, _, advice = " ".join(message.split()).rpartition("; ")
    if not found:
        return Diagnosis(PROBLEM, subject, advice, RUN_AGAIN)
    return Diagnosis(PROBLEM, subject, found, advice)


def as_lines(findings: Sequence[Diagnosis], *, width: int) -> Iterator[str]:
    """A line for each finding, cut into several where it is longer than `width`.

    problem  output   /data is read-only -> name another --output
    """
    indent = max((len(finding.subject) for finding in findings), default=0) + 2
    for finding in findings:
        text = finding.found
        if finding.advice:
            text += f" -> {finding.advice}"
        head = f"{finding.level:9}{finding.subject:{indent}}"
        yield "\n".join(
            textwrap.wrap(
                text,
                max(width, len(head) + 20),
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )


def last_line(findings: Sequence[Diagnosis], command: str) -> str:
    """How many problems and warnings there are."""
    problems, warnings = (count(findings, level) for level in (PROBLEM, WARNING))
    what = f"`precis {command}`" if command else "this installation"
    return (
        f"{problems} problem{'s' * (problems != 1)}, "
        f"{warnings} warning{'s' * (warnings != 1)} for {what}"
    )


def count(findings: Sequence[Diagnosis], level: str) -> int:
    """How many findings have a level."""
    return sum(finding.level == level for finding in findings)


def as_json(findings: Sequence[Diagnosis], *, command: str, version: str) -> str:
    """The findings as a JSON document."""
    content = {
        "precis_version": version,
        "command": command,
        "problems": count(findings, PROBLEM),
        "warnings": count(findings, WARNING),
        "findings": [finding._asdict() for finding in findings],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)
