"""What became of every record, by source file, and how a description has it.

    read = written + reused + duplicates + empty + failed + other_split + skipped
           + not_selected

    written       documents with a result of their own
    reused        documents whose result an earlier run has written
    duplicates    documents whose text stands earlier in the corpus
    empty         articles without a text; each is a dead letter
    failed        records that could not be processed; each is in a dead letter
    other_split   documents of another split than --split
    skipped       documents that the job does not need, such as those without highlights
    not_selected  records that --sample did not draw, whatever they are

`read` is counted where records are read, and the others where their results are
written, so that the equation can fail.

    sources/sources-1f2e3d4c.jsonl.gz
        {"source": "news/0000001.txt", "read": 1, "written": 1}
        {"source": "news/0000002.txt", "read": 1, "duplicates": 1}

The manifest of a run over a million files would be read and kept whole by every command
that asks for its parts. Beyond MOST_LISTED it names this file with its checksum, under
`source_files`, and its `sources` are empty.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from precis.model import files
from precis.model.errors import JobError
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SOURCES_FOLDER,
    describe_file,
)

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
# Counts of records by outcome, and `read`, for each source file.
SourceCounts = Mapping[str, Mapping[str, int]]


def source_counts(**counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Joins counts by source file: `source_counts(read={"a": 2}, written={"a": 2})`."""
    sources: dict[str, dict[str, int]] = {}
    for name, by_source in counts.items():
        for source, number in by_source.items():
            if number:
                sources.setdefault(source, {})[name] = number
    return sources


def sum_sources(parts: Iterable[SourceCounts]) -> dict[str, dict[str, int]]:
    """The sums by source file, sorted by file."""
    total: dict[str, Counter[str]] = {}
    for part in parts:
        for source, counts in part.items():
            total.setdefault(source, Counter()).update(counts)
    return {source: dict(total[source]) for source in sorted(total)}


def total_counts(sources: SourceCounts) -> dict[str, int]:
    """The sums over all source files: `read` and every outcome."""
    total: Counter[str] = Counter()
    for counts in sources.values():
        total.update(counts)
    return {name: total[name] for name in ("read", *OUTCOMES)}


def check_sources(sources: SourceCounts, *, what: str) -> None:
    """Checks the equation for every source file.

    Args:
      sources: the counts.
      what: whose they are, for the message.

    Raises:
      JobError: a record is not accounted for.
    """
    for source, counts in sources.items():
        ends = {name: counts[name] for name in OUTCOMES if counts.get(name)}
        if counts.get("read", 0) != sum(ends.values()):
            listed = ", ".join(f"{name} {count}" for name, count in ends.items())
            raise JobError(
                f"{what} read {counts.get('read', 0)} records of {source or 'a corpus'}"
                f", which are not those it accounts for: {listed or 'none'}; this is a "
                "defect of precis, please report it"
            )


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of counts of the same names, sorted by name."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))


MOST_LISTED = 10_000
_WAY_OUT = "run the same `precis summarize` again, which repairs it"


def describe_sources(output: str, run_id: str, sources: SourceCounts) -> dict[str, Any]:
    """The fields of a manifest for the counts of source files.

    Args:
      output: the folder that gets a file where there are more than MOST_LISTED.
      run_id: of the run.
      sources: the counts, sorted by source file.
    """
    if len(sources) <= MOST_LISTED:
        return {"sources": sources}
    name = files.join(SOURCES_FOLDER, f"sources-{run_id[:8]}.jsonl.gz")
    with (
        files.write_aside(files.join(output, name)) as raw,
        # Equal counts give equal bytes, so there is neither time nor name in them.
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as file,
    ):
        for source, counts in sources.items():
            line = json.dumps({"source": source, **counts}, ensure_ascii=False)
            file.write(f"{line}\n".encode())
    described = describe_file(output, name, rows=len(sources))
    return {"sources": {}, "source_files": [described]}


def read_sources(output: str, manifest: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The counts of the source files of a run.

    Args:
      output: its folder.
      manifest: the content of manifest.json.

    Raises:
      DataError: a file of them is damaged.
    """
    sources = dict(manifest["sources"])
    listed_in = files.join(output, DESCRIPTION_FILES["summaries"])
    for described in manifest.get("source_files", ()):
        path = files.path_within(output, described["file"], listed_in=listed_in)
        with (
            files.naming_damage(path, way_out=_WAY_OUT),
            files.open_read(path) as raw,
            gzip.GzipFile(fileobj=raw) as file,
        ):
            for line in file:
                counts = json.loads(line)
                sources[counts.pop("source")] = counts
    return sources
