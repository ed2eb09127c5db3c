"""The command `precis doctor`: what it prints, and its exit code.

Exit codes: 0 no problem; 1 problems; 2 the command line is wrong.
"""

import importlib.metadata
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from precis.model.progress.stages import stage


def run_doctor(values: dict[str, Any], commands: Mapping[str, Any]) -> int:
    """Examines a command line and prints the findings.

    Args:
      values: the flags of `DoctorOptions`, with the words of the command line.
      commands: all commands by name, as `command_line.commands.COMMANDS` has them.
    """
    from precis.pipelines.doctor.doctor import examine
    from precis.pipelines.doctor.findings import (
        PROBLEM,
        as_json,
        as_lines,
        count,
        last_line,
    )
    from precis.pipelines.doctor.request import read_request, read_words

    line = read_words(values.get("command_line") or [], commands)
    request = read_request(line)
    with stage(f"examining {line.command or 'the installation'}", is_brief=True):
        findings = list(examine(request))
    if values.get("json"):
        version = importlib.metadata.version("precis")
        print(as_json(findings, command=line.command, version=version))
    else:
        # In a file or a pipe, a finding is one line.
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal else sys.maxsize
        for text in as_lines(findings, width=width):
            print(text)
        print(last_line(findings, line.command))
    return 1 if count(findings, PROBLEM) else 0
