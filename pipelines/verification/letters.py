"""The dead letters of a result, counted."""

import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.pipelines.corpus.dead_letters import read_letters
from precis.pipelines.corpus.task import EMPTY_ARTICLE
from precis.pipelines.verification.findings import Finding


class LetterCounts(NamedTuple):
    """The lost records of a result.

    Attributes:
      failed, empty: by source file.
      reasons: those that failed, by `stage/reason`.
    """

    failed: Counter[str]
    empty: Counter[str]
    reasons: Counter[str]


def check_letters(
    folder: str,
    listed: Sequence[Mapping[str, Any]],
    run_id: str,
    whole: Collection[str],
) -> tuple[list[Finding], LetterCounts | None]:
    """Reads the dead letters of a result.

    Args:
      folder: of the result.
      listed: the files, as the description of the result lists them.
      run_id: that each letter must have.
      whole: the files that are not damaged, which are read.

    Returns:
      What is wrong with them; and the lost records, None where a file is damaged.
    """
    counts = LetterCounts(Counter(), Counter(), Counter())
    findings: list[Finding] = []
    for file in listed:
        if file["file"] in whole:
            findings += _check_file(folder, file, run_id, counts)
    is_damaged = findings or any(file["file"] not in whole for file in listed)
    return findings, None if is_damaged else counts


def _check_file(
    folder: str, file: Mapping[str, Any], run_id: str, counts: LetterCounts
) -> Iterator[Finding]:
    rows = 0
    name = file["file"]
    try:
        for row, letter in enumerate(read_letters(files.join(folder, name))):
            rows += 1
            source, records = letter["source_file"], int(letter["records"])
            if letter["reason"] == EMPTY_ARTICLE:
                counts.empty[source] += records
            else:
                counts.failed[source] += records
                counts.reasons[f"{letter['stage']}/{letter['reason']}"] += records
            if letter["run_id"] != run_id:
                yield Finding(name, "run_id is of another run", f"row {row}")
    # Bytes that are no gzip, lines that are no letters.
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        yield Finding(name, f"cannot be read as dead letters: {error!r}")
        return
    if rows != file.get("rows"):
        yield Finding(name, f"has {rows} rows; {file.get('rows')} are listed")
