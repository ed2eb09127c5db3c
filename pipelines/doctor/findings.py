"""What the doctor found: a level, a subject, what it is, and what to do about it."""

import json
import textwrap
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from precis.model.errors import PrecisError
from precis.pipelines.corpus.task import FileFailure

OK = "ok"
NOTE = "note"
WARNING = "warning"
PROBLEM = "problem"
# The advice where there is no better one.
RUN_AGAIN = "correct that, and run `precis doctor` again"
# What an error of a library may have as its first line.
_LONGEST_MESSAGE = 300

ResultT = TypeVar("ResultT")


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


# A check yields its findings and may return what later checks need.
Check = Generator[Diagnosis, None, ResultT]


def checked(subject: str, check: Check[ResultT]) -> Check[ResultT | None]:
    """The findings of a check; what it raises becomes a finding too.

    Returns:
      What the check returned, or None where it raised an exception.
    """
    try:
        return (yield from check)
    except PrecisError as error:
        yield problem_of(subject, str(error))
    except FileFailure as failure:
        yield Diagnosis(PROBLEM, subject, str(failure), "replace or restore that file")
    except ModuleNotFoundError as error:
        name = (error.name or str(error)).partition(".")[0]
        yield Diagnosis(
            PROBLEM,
            subject,
            f"{name} cannot be imported",
            "install the packages that the lines above name",
        )
    # Whatever a library raises, the other checks go on, and this one has failed.
    except Exception as error:
        lines = str(error).split("\n")
        message = f"{type(error).__name__}: {lines[0]}"[:_LONGEST_MESSAGE]
        yield Diagnosis(PROBLEM, subject, message, RUN_AGAIN)
    return None


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
    content: Mapping[str, Any] = {
        "precis_version": version,
        "command": command,
        "problems": count(findings, PROBLEM),
        "warnings": count(findings, WARNING),
        "findings": [finding._asdict() for finding in findings],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def readable_bytes(size: float) -> str:
    """A number of bytes with a unit: 1.5 GB."""
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if size >= 100 else f"{size:.3g} {unit}"
        size /= 1000
    raise AssertionError
