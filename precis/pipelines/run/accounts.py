"""Accounts for the outcome of every record, by corpus file.

    read = written + reused + duplicates + empty + failed + other_split + skipped
           + not_selected

    written       documents that got a result in this run
    reused        documents whose result an earlier run wrote
    duplicates    documents whose text comes earlier in the corpus
    empty         articles without text; each is a dead letter
    failed        records that could not be processed; each is in a dead letter
    other_split   documents of another split than --split
    skipped       documents that the job cannot use, for example without a reference
    not_selected  records of any kind that --sample did not draw

`read` is counted by the reader and the outcomes by the writers, so that the equation
can fail.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from precis.model.errors import JobError

OUTCOMES = (
    "written",
    "reused",
    "duplicates",
    "empty",
    "failed",
    "other_split",
    "skipped",
    "not_selected",
)
# Counts of records by outcome, and `read`, for each corpus file.
FileCounts = Mapping[str, Mapping[str, int]]


def count_by_file(**counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Joins counts by corpus file: `count_by_file(read={"a": 2}, written={"a": 2})`."""
    by_file: dict[str, dict[str, int]] = {}
    for name, numbers in counts.items():
        for file, number in numbers.items():
            if number:
                by_file.setdefault(file, {})[name] = number
    return by_file


def sum_file_counts(parts: Iterable[FileCounts]) -> dict[str, dict[str, int]]:
    """Adds up counts by corpus file, sorted by file."""
    total: dict[str, Counter[str]] = {}
    for part in parts:
        for file, counts in part.items():
            total.setdefault(file, Counter()).update(counts)
    return {file: dict(total[file]) for file in sorted(total)}


def total_counts(file_counts: FileCounts) -> dict[str, int]:
    """Adds up the counts of all corpus files: `read` and every outcome."""
    total: Counter[str] = Counter()
    for counts in file_counts.values():
        total.update(counts)
    return {name: total[name] for name in ("read", *OUTCOMES)}


def check_file_counts(file_counts: FileCounts, *, what: str) -> None:
    """Checks the equation for every corpus file.

    Args:
      file_counts: the counts.
      what: the task or job that the counts belong to, for the message.

    Raises:
      JobError: the outcomes of a file do not add up.
    """
    for file, counts in file_counts.items():
        ends = {name: counts[name] for name in OUTCOMES if counts.get(name)}
        if counts.get("read", 0) != sum(ends.values()):
            listed = ", ".join(f"{name} {count}" for name, count in ends.items())
            raise JobError(
                f"{what} read {counts.get('read', 0)} records of {file or 'a corpus'} "
                f"but accounts for {listed or 'none'}; this is a bug of precis, please "
                "report it"
            )


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Adds up counts by name, sorted by name."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))
