"""The counts of the source files of a run, where they are too many for its manifest.

    sources/sources-1f2e3d4c.jsonl.gz
        {"source": "news/0000001.txt", "read": 1, "written": 1}
        {"source": "news/0000002.txt", "read": 1, "duplicates": 1}

The manifest of a run over a million files would be read and kept whole by every command
that asks for its parts. Beyond MOST_LISTED it names this file with its checksum, under
`source_files`, and its `sources` are empty.
"""

import gzip
import json
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.pipelines.run.accounts import SourceCounts
from precis.pipelines.run.job import Job
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SOURCES_FOLDER,
    describe_file,
)

MOST_LISTED = 10_000
_WAY_OUT = "run the same `precis summarize` again, which repairs it"


def describe_sources(job: Job, sources: SourceCounts) -> dict[str, Any]:
    """The fields of a manifest for the counts of source files.

    Args:
      job: whose output gets a file where there are more than MOST_LISTED.
      sources: the counts, sorted by source file.
    """
    if len(sources) <= MOST_LISTED:
        return {"sources": sources}
    name = files.join(SOURCES_FOLDER, f"sources-{job.run_id[:8]}.jsonl.gz")
    with (
        files.write_aside(files.join(job.output, name)) as raw,
        # Equal counts give equal bytes, so there is neither time nor name in them.
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as file,
    ):
        for source, counts in sources.items():
            line = json.dumps({"source": source, **counts}, ensure_ascii=False)
            file.write(f"{line}\n".encode())
    described = describe_file(job.output, name, rows=len(sources))
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
