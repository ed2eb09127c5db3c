"""The log of a training: the reports of its steps or epochs, kept in `losses.jsonl`.

    {"step": 1, "loss": 6.41, ...}
    {"step": 2, "loss": 6.38, ..., "validation": {"loss": 6.2, ...}}

One report is one line. A save appends the lines of the new reports, so that its cost
does not grow with the length of the training.
"""

import dataclasses
import json
import os
from typing import Any

from precis.model import files

LOSSES_FILE = "losses.jsonl"
_WAY_OUT = "take another --output, or remove that folder to start anew"

Report = dict[str, Any]


@dataclasses.dataclass(kw_only=True)
class LossLog:
    """All reports of a training, and how many of them the file already holds.

    Attributes:
      path: where `losses.jsonl` is written.
      reports: in the order of their steps.
      saved_reports: the number of reports, from the first, whose lines are in the file.
      saved_bytes: the length of those lines.
    """

    path: str
    reports: list[Report] = dataclasses.field(default_factory=list)
    saved_reports: int = 0
    saved_bytes: int = 0


def read_log(path: str, *, last_step: int) -> LossLog:
    """Reads the reports up to the step of the checkpoint that a training goes on from.

    Lines beyond that step belong to steps that are made again. They are not parsed, as
    a process that was killed may have left half a line; the next save cuts them away.
    """
    log = LossLog(path=path)
    if last_step == 0:
        return log
    for line in files.read_bytes(path).splitlines(keepends=True):
        if log.reports and log.reports[-1]["step"] >= last_step:
            break
        with files.naming_damage(path, way_out=_WAY_OUT):
            report = json.loads(line)
            files.check_fields(report, {"step": int})
        log.reports.append(report)
        log.saved_reports += 1
        log.saved_bytes += len(line)
    return log


def add_validation(log: LossLog, figures: dict[str, float]) -> None:
    """Adds the figures of a validation to the last report.

    Where the line of that report is in the file already, the next save publishes the
    whole file: cutting the line away first could lose it.
    """
    log.reports[-1]["validation"] = figures
    if log.saved_reports == len(log.reports):
        log.saved_reports = 0
        log.saved_bytes = 0


def save_log(log: LossLog) -> None:
    """Writes the reports that are not in the file yet.

    A local file is appended to. An object store cannot append, so there the file is
    written whole.
    """
    if _can_append(log):
        lines = _to_lines(log.reports[log.saved_reports :])
        _append(log.path, lines, at=log.saved_bytes)
        log.saved_bytes += len(lines)
    else:
        lines = _to_lines(log.reports)
        files.write_bytes(log.path, lines)
        log.saved_bytes = len(lines)
    log.saved_reports = len(log.reports)


def _can_append(log: LossLog) -> bool:
    """Whether the file is local and still holds all lines that were saved."""
    if log.saved_reports == 0 or not files.is_local(log.path):
        return False
    fs, name = files.filesystem(log.path)
    return fs.exists(name) and fs.size(name) >= log.saved_bytes


def _append(path: str, lines: bytes, *, at: int) -> None:
    """Writes lines to a local file from the byte `at`, cutting away what is beyond it.

    The lines are on the disk when this returns, as the checkpoint that is saved next
    relies on them.
    """
    _, name = files.filesystem(path)
    with open(name, "r+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def _to_lines(reports: list[Report]) -> bytes:
    return "".join(json.dumps(report) + "\n" for report in reports).encode()
