"""`precis verify`: checks a run, records or a bundle.

It writes nothing to the folder and needs neither Beam nor TensorFlow.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.manifest import CONFIG_FILE, WEIGHTS_FILE
from precis.model.config import SENTENCE_PAIRS
from precis.model.errors import DataError, JobError, UsageError
from precis.model.finished import SUCCESS_FILE
from precis.model.records.dataset import FORMAT_VERSION, DatasetInfo
from precis.model.tokenization.folder import TOKENIZER_FOLDER
from precis.pipelines.run.accounts import check_file_counts, total_counts
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.run.options import read_flags
from precis.pipelines.run.result_files import (
    DATA_FOLDER,
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    TASKS_FOLDER,
)
from precis.pipelines.tables.finished_run import corpus_of_run
from precis.pipelines.tables.schema import SCHEMA_VERSION
from precis.pipelines.verify import rows
from precis.pipelines.verify.bundle import check_bundle
from precis.pipelines.verify.folder import Finding, as_lines, check_files
from precis.pipelines.verify.groups import check_groups
from precis.pipelines.verify.options import VERIFY

MANIFEST = DESCRIPTION_FILES["summaries"]
DATASET = DESCRIPTION_FILES["records"]
RUN = "run"
RECORDS = "records"
BUNDLE = "bundle"
# Files and folders by which the kind of a folder is recognized.
_TELLING = {
    BUNDLE: (CONFIG_FILE, WEIGHTS_FILE),
    RECORDS: (DATASET, TOKENIZER_FOLDER),
    RUN: (SUCCESS_FILE, DATA_FOLDER, DEAD_LETTERS_FOLDER, TASKS_FOLDER),
}
_WAY_OUT = "run the same command again, which repairs it"


class Verification(NamedTuple):
    """The result of a verification.

    Attributes:
      kind: `run`, `records` or `bundle`.
      findings: a line for each problem; empty if there are none.
      notes: a line for each thing that is good to know but not damage.
      files, bytes: the number of files of the folder, and their size.
      is_damaged: whether a finding concerns the folder itself, not the corpus that its
          rows are compared with.
    """

    kind: str
    findings: list[str]
    notes: list[str]
    files: int
    bytes: int
    is_damaged: bool


def verify(**flags: Any) -> Verification:
    """Checks that a run, records or a bundle is complete and undamaged.

    Args:
      **flags: the fields of `VerifyOptions` and `CorpusOptions`.

    Returns:
      The findings, and how much was checked.

    Raises:
      UsageError: an invalid flag, or a folder that is none of the three.
    """
    options, _ = read_flags(VERIFY, flags)
    folder = options.folder.rstrip("/") or "/"
    marks = ((kind, name) for kind, names in _TELLING.items() for name in names)
    kind = next((k for k, name in marks if files.exists(files.join(folder, name))), "")
    if not kind:
        raise UsageError(
            f"{folder} is not a run, records or a bundle; name the --output of "
            "`precis summarize`, `precis prepare`, `precis import` or a training "
            "command; make exports and evaluations again instead of verifying them"
        )
    if kind != RUN and flags.get("corpus"):
        raise UsageError(
            f"--corpus is only for a run, but {folder} holds "
            f"{'a ' * (kind == BUNDLE)}{kind}; leave it out"
        )
    if kind == RUN:
        checks = _check_run(folder, flags)
    else:
        checks = {RECORDS: _check_records, BUNDLE: check_bundle}[kind](folder)
    findings = []
    description = files.join(folder, DATASET if kind == RECORDS else MANIFEST)
    try:
        # An edited description may have values of any type.
        with files.naming_damage(description, way_out=_WAY_OUT):
            for finding in checks:
                findings.append(finding)
    except DataError as error:  # Nothing can be compared with such a description.
        text = str(error).removeprefix(f"{folder}/")
        name, _, problem = text.partition(": ")
        findings.append(Finding(name, problem))
    fs, path = files.filesystem(folder)
    sizes = [entry["size"] or 0 for entry in fs.find(path, detail=True).values()]
    return Verification(
        kind,
        as_lines(finding for finding in findings if not finding.is_note),
        as_lines(finding for finding in findings if finding.is_note),
        len(sizes),
        sum(sizes),
        any(not (finding.is_note or finding.is_of_corpus) for finding in findings),
    )


def _read_description(
    folder: str, name: str, version_field: str, version: int
) -> dict[str, Any]:
    """Reads manifest.json or dataset.json.

    Raises:
      DataError: it is missing, damaged, or of an unknown version.
    """
    path = files.join(folder, name)
    content = files.read_object(path, way_out=_WAY_OUT)
    if (other := content.get(version_field)) != version:
        raise DataError(
            f"{name}: {version_field} is {other}, but this precis checks {version}"
        )
    return content


def _check_run(folder: str, flags: Mapping[str, Any]) -> Iterator[Finding]:
    """Checks a run; with the flag `corpus`, compares it with its documents."""
    manifest = _read_description(folder, MANIFEST, "schema_version", SCHEMA_VERSION)
    damaged = set()
    for finding in check_files(folder, "summaries", manifest):
        damaged.add(finding.file)
        yield finding
    yield from _check_manifest(manifest)
    groups = manifest.get("groups")
    has_rows = not groups or groups["rows"] != "groups"
    corpus = corpus_of_run(manifest, flags) if flags.get("corpus") else None
    if corpus is not None and not has_rows:
        raise UsageError(
            f"--corpus compares rows of documents, but {folder} has only rows of "
            "groups; leave it out"
        )
    with open_database() as connection:
        unread = rows.read_files(
            connection, folder, manifest, damaged, is_compared=corpus is not None
        )
        yield from unread
        damaged |= {finding.file for finding in unread}
        listed = manifest["files"] + manifest["dead_letters"]
        is_complete = damaged.isdisjoint(file["file"] for file in listed)
        yield from rows.wrong_rows(connection, str(manifest["run_id"]))
        if is_complete:
            sources = manifest["sources"]
            yield from rows.compare_accounts(connection, sources, has_rows=has_rows)
        if groups:
            yield from check_groups(
                connection, folder, manifest, damaged, are_rows_complete=is_complete
            )
        if corpus is not None:
            for finding in rows.compare_documents(
                connection, manifest, corpus, are_all_expected=is_complete
            ):
                yield finding._replace(is_of_corpus=True)


def _check_manifest(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Checks that the values of a manifest agree with each other."""
    if manifest["run_id"] != manifest["fingerprint"][:16]:
        yield Finding(MANIFEST, "run_id does not match the fingerprint")
    if manifest["settings_id"] != files.sha256_json(manifest["settings"])[:16]:
        yield Finding(MANIFEST, "settings_id does not match the settings")
    try:
        check_file_counts(manifest["sources"], what="the run")
    except JobError as error:
        yield Finding(MANIFEST, str(error).partition(";")[0])
    for name, total in total_counts(manifest["sources"]).items():
        count = manifest["counts"].get(name)
        if count != total:
            problem = f"counts.{name} is {count}, but the sum over the corpus files is"
            yield Finding(MANIFEST, f"{problem} {total}")


def _check_records(folder: str) -> Iterator[Finding]:
    """Checks a folder of records."""
    content = _read_description(folder, DATASET, "format_version", FORMAT_VERSION)
    info = DatasetInfo.from_json(content)
    yield from check_files(folder, "records", content)
    records = sum(info.records(split) for split in info.splits)
    written = info.counts.get("written", -1)
    # With pairs of sentences, a document gives one record or several.
    is_too_few = records < written
    if is_too_few or (info.target not in SENTENCE_PAIRS and records != written):
        problem = f"counts.written is {written}, but the shards have {records} records"
        yield Finding(DATASET, problem)
