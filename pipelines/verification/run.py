"""A run of `precis summarize`: its manifest, its parts and its dead letters."""

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from precis.model import files
from precis.model.errors import JobError
from precis.model.progress.stages import stage
from precis.pipelines.corpus.dead_letters import UNCOUNTED
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.accounts import check_sources, total_counts
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    listed_files,
)
from precis.pipelines.run.source_files import read_sources
from precis.pipelines.tables.schema import SCHEMA_VERSION
from precis.pipelines.verification.documents import check_documents
from precis.pipelines.verification.findings import Finding
from precis.pipelines.verification.folder import (
    check_listed,
    check_listing,
    check_others,
    check_success,
    listed_rows,
)
from precis.pipelines.verification.letters import check_letters
from precis.pipelines.verification.rows import (
    add_part,
    compare_rows,
    count_rows,
    open_rows,
)

MANIFEST = DESCRIPTION_FILES["summaries"]
_FIELDS = {
    "counts": dict,
    "dead_letters": list,
    "failures": dict,
    "fallbacks": dict,
    "files": list,
    "fingerprint": str,
    "provenance": dict,
    "quality_flags": dict,
    "run_id": str,
    "schema_version": int,
    "settings": dict,
    "settings_id": str,
    "sources": dict,
    "summary_methods": dict,
}
_COUNTERS = ("counts", "failures", "fallbacks", "quality_flags", "summary_methods")


def check_run(
    folder: str, manifest: Mapping[str, Any], corpus: CorpusOptions | None
) -> Iterator[Finding]:
    """Checks a run.

    Args:
      folder: of the run.
      manifest: the content of manifest.json.
      corpus: what it was made of; None leaves its rows uncompared.
    """
    yield from check_success(folder, "summaries", manifest)
    damage = [*_check_types(manifest), *check_listing(folder, "summaries", manifest)]
    if damage:
        yield from damage
        return
    listed = listed_files(manifest)
    names = {MANIFEST, SUCCESS_FILE, *(file["file"] for file in listed)}
    damaged = list(check_listed(folder, manifest))
    yield from damaged
    if {finding.file for finding in damaged} & _source_files(manifest):
        return  # Nothing can be compared without the counts of the source files.
    manifest = {**manifest, "sources": read_sources(folder, manifest)}
    yield from _check_manifest(manifest)
    yield from check_others(folder, names)
    whole = {file["file"] for file in listed} - {finding.file for finding in damaged}
    with open_rows() as connection:
        yield from _check_parts(connection, folder, manifest, whole)
        yield from _check_letters(folder, manifest, whole)
        if corpus is not None:
            yield from check_documents(connection, folder, manifest, corpus, whole)


def _source_files(manifest: Mapping[str, Any]) -> set[str]:
    return {file["file"] for file in manifest.get("source_files", ())}


def _check_types(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Checks that the manifest has the fields that the other checks read."""
    try:
        files.check_fields(manifest, _FIELDS)
        counters = [manifest[name] for name in _COUNTERS]
        for counter in (*counters, *manifest["sources"].values()):
            files.check_fields(counter, dict.fromkeys(counter, int))
        files.check_fields(manifest["provenance"], {"flags": dict})
    except (ValueError, TypeError, AttributeError) as error:
        yield Finding(MANIFEST, f"is damaged: {error}")
        return
    version = manifest["schema_version"]
    if version != SCHEMA_VERSION:
        yield Finding(
            MANIFEST,
            f"its schema_version is {version}, and this precis checks {SCHEMA_VERSION}",
        )


def _check_manifest(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares the values of a manifest with each other."""
    if manifest["run_id"] != manifest["fingerprint"][:16]:
        yield Finding(MANIFEST, "its run_id is not that of its fingerprint")
    if manifest["settings_id"] != files.sha256_json(manifest["settings"])[:16]:
        yield Finding(MANIFEST, "its settings_id is not that of its settings")
    sources = manifest["sources"]
    for source, counts in sources.items():
        try:
            check_sources({source: counts}, what="the run")
        except JobError as error:
            yield Finding(MANIFEST, str(error).partition(";")[0])
    for name, total in total_counts(sources).items():
        if manifest["counts"].get(name) != total:
            yield Finding(
                MANIFEST,
                f"counts.{name} is {manifest['counts'].get(name)}, and the sum of the "
                f"source files {total}",
            )


def _check_parts(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    manifest: Mapping[str, Any],
    whole: set[str],
) -> Iterator[Finding]:
    """Checks the parts that are whole; with all of them, also their counts."""
    are_all_read = True
    rows = sum(map(listed_rows, manifest["files"]))
    with stage("read", total=rows, unit="rows") as reading:
        for file in manifest["files"]:
            is_right = file["file"] in whole
            for finding in (
                add_part(connection, folder, manifest, file) if is_right else ()
            ):
                is_right = False
                yield finding
            are_all_read = are_all_read and is_right
            reading.advance(listed_rows(file))
    if are_all_read:
        yield from compare_rows(connection, has_lost=_has_lost(manifest))
        yield from _check_counts(manifest, count_rows(connection))


def _has_lost(manifest: Mapping[str, Any]) -> bool:
    """Whether documents that could be read have no row; another may repeat them."""
    return any(
        not reason.startswith("read/") or reason in UNCOUNTED
        for reason in manifest["failures"]
    )


def _check_counts(
    manifest: Mapping[str, Any], present: Mapping[str, Mapping[str, int]]
) -> Iterator[Finding]:
    """Compares the counts of a manifest with those of the rows."""
    rows = {
        source: sum(counts.get(name, 0) for name in ("written", "reused", "duplicates"))
        for source, counts in manifest["sources"].items()
    }
    yield from _compare_sources("the parts have {} rows of {}", rows, present["rows"])
    yield from _compare_sources(
        "the parts have {} duplicates of {}",
        _counts_of(manifest, "duplicates"),
        present["duplicates"],
    )
    for name in ("summary_methods", "quality_flags"):
        yield from _compare(name, manifest[name], present[name])
    fallbacks = manifest["fallbacks"]
    held_back = {name: present["fallbacks"].get(name, 0) for name in fallbacks}
    yield from _compare("fallbacks", fallbacks, held_back)
    truncated = manifest["counts"].get("truncated", 0)
    of_rows = present["truncated"].get("truncated", 0)
    if truncated != of_rows:
        yield Finding(
            MANIFEST, f"counts.truncated is {truncated}, and {of_rows} rows are"
        )


def _check_letters(
    folder: str, manifest: Mapping[str, Any], whole: set[str]
) -> Iterator[Finding]:
    """Compares the dead letters on disk with the counts of the manifest."""
    findings, letters = check_letters(
        folder, manifest["dead_letters"], manifest["run_id"], whole
    )
    yield from findings
    if letters is None:
        return
    for outcome, present in (("failed", letters.failed), ("empty", letters.empty)):
        yield from _compare_sources(
            f"the dead letters have {{}} records of {{}} that are {outcome}",
            _counts_of(manifest, outcome),
            present,
        )
    yield from _compare("failures", manifest["failures"], letters.reasons)


def _counts_of(manifest: Mapping[str, Any], outcome: str) -> dict[str, int]:
    """The records with an outcome, by source file."""
    sources = manifest["sources"].items()
    return {source: counts.get(outcome, 0) for source, counts in sources}


def _compare_sources(
    claim: str, expected: Mapping[str, int], present: Mapping[str, int]
) -> Iterator[Finding]:
    """Compares counts by source file; the claim takes a count and a source file."""
    for source in sorted({*expected, *present}):
        count, of_manifest = present.get(source, 0), expected.get(source, 0)
        if count != of_manifest:
            text = f"{claim.format(count, source)}, and the manifest {of_manifest}"
            yield Finding(MANIFEST, text)


def _compare(
    name: str, expected: Mapping[str, int], present: Mapping[str, int]
) -> Iterator[Finding]:
    """Compares counts by name."""
    for key in sorted({*expected, *present}):
        if expected.get(key, 0) != present.get(key, 0):
            yield Finding(
                MANIFEST,
                f"{name}.{key} is {expected.get(key, 0)}, and the files have "
                f"{present.get(key, 0)}",
            )
