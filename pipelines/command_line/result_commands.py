"""The commands that read a finished result: what they print.

Beam and TensorFlow are not needed here.
"""

import sys
from typing import Any

from precis.pipelines.terminal.last_lines import end_with


def run_load(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis load` and returns its exit code."""
    from precis.pipelines.options.table_address import reading_command
    from precis.pipelines.warehouse.load import load

    result = load(**values)
    if not result.rows:
        print(f"run {result.run_id}: no rows; nothing was written")
    elif result.was_noop:
        print(
            f"run {result.run_id}: in the table already, version {result.version}; "
            "nothing was written"
        )
    else:
        print(
            f"run {result.run_id}: rows {result.rows:,}, in place of "
            f"{result.replaced:,} earlier ones, as version {result.version}"
        )
    end_with(values["table"], sys.executable, "-c", reading_command(values["table"]))
    return 0


def run_verify(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis verify` and returns its exit code."""
    from precis.pipelines.verification.verify import verify

    result = verify(**values)
    for line in result.findings:
        print(line)
    checked = f"{result.files:,} files, {result.rows:,} rows, {result.bytes:,} bytes"
    compared = f", compared with {result.compared_with}" * bool(result.compared_with)
    count = len(result.findings)
    outcome = "is as it was written"
    if count:
        outcome = f"is damaged: {count} finding{'s' * (count > 1)} above"
    print(f"{result.kind} {values['folder']} {outcome} ({checked}{compared})")
    return 1 if count else 0


def run_digest(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis digest` and returns its exit code."""
    from precis.pipelines.verification.digest import digest

    print(digest(**values))
    return 0
