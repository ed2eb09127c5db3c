"""The commands that read a finished result: what they print.

Beam and TensorFlow are not needed here.
"""

import sys
from typing import Any

from precis.model.progress.stages import say
from precis.pipelines.run.last_lines import end_with, say_next, suggest_next


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


def run_loaders(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis loaders` and returns its exit code.

    SQL that is printed can go to a client as it is, so nothing else is printed then.
    """
    from precis.pipelines.loaders.clients import client_command
    from precis.pipelines.loaders.loaders import loaders

    result = loaders(**values)
    if result.replaced_nuls:
        say(
            f"precis loaders: warning: {result.replaced_nuls:,} values held the "
            "character NUL, which PostgreSQL does not have; it became U+FFFD"
        )
    output = values.get("output", "")
    if output:
        print(f"wrote {output}")
        command = client_command(values["for_"], output, result.files)
        if command:
            suggest_next(*command)
        return 0
    for name, text in result.files.items():
        if name.endswith(".sql"):
            print(f"-- {name}\n{text}")
    return 0


def run_report(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis report` and returns its exit code."""
    from precis.pipelines.report.report import report

    result = report(**values)
    shown = f"{result.documents:,} of {result.rows:,} documents"
    print(f"report: {shown}, {result.bytes / 1e6:.1f} MB")
    without_source = result.documents - result.with_source
    if without_source:
        print(
            f"left out for the size of the page: {without_source:,} sources, "
            f"{result.documents - result.with_details:,} details; --max_page_mb makes "
            "room"
        )
    if result.missing_articles:
        print(
            f"without their article: {result.missing_articles:,} documents, as "
            f"{result.missing_reason}"
        )
    print(f"wrote {result.path}")
    say_next(f"open {result.path} in a browser")
    return 0


def run_verify(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis verify` and returns its exit code."""
    from precis.pipelines.verification.verify import verify

    result = verify(**values)
    for line in result.findings:
        print(line)
    for line in result.notes:
        print(f"note: {line}")
    for line in result.not_checked:
        print(f"not checked: {line}")
    checked = f"{result.files:,} files, {result.rows:,} rows, {result.bytes:,} bytes"
    compared = f", compared with {result.compared_with}" * bool(result.compared_with)
    count = len(result.findings)
    but = " where it was checked" if result.not_checked else ""
    outcome = f"is as it was written{but}"
    if count:
        outcome = f"is damaged: {count} finding{'s' * (count > 1)} above"
    print(f"{result.kind} {values['folder']} {outcome} ({checked}{compared})")
    return 1 if count else 0


def run_digest(values: dict[str, Any], _: list[str]) -> int:
    """Runs `precis digest` and returns its exit code."""
    from precis.pipelines.verification.digest import digest

    print(digest(**values))
    return 0
