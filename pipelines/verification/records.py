"""Records of `precis prepare`: shards, record by record, and tokenizers."""

from collections.abc import Iterator, Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.stages import stage
from precis.model.records.dataset import FORMAT_VERSION, DatasetInfo
from precis.model.records.tfrecord import read_frames
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    tokenizer_files,
)
from precis.pipelines.options.targets import SENTENCE_PAIRS
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    listed_files,
)
from precis.pipelines.verification.findings import Finding
from precis.pipelines.verification.folder import (
    check_listed,
    check_listing,
    check_others,
    check_success,
    check_tokenizer,
)
from precis.pipelines.verification.letters import check_letters

DATASET = DESCRIPTION_FILES["records"]


def check_records(folder: str, content: Mapping[str, Any]) -> Iterator[Finding]:
    """Checks a folder of records.

    Args:
      folder: of the records.
      content: of dataset.json.
    """
    yield from check_success(folder, "records", content)
    if content.get("format_version") != FORMAT_VERSION:
        version = content.get("format_version")
        yield Finding(
            DATASET,
            f"its format_version is {version}, and this precis checks {FORMAT_VERSION}",
        )
        return
    damage = list(check_listing(folder, "records", content))
    if damage:
        yield from damage
        return
    try:
        info = DatasetInfo.from_json(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield Finding(DATASET, f"is damaged: {error!r}")
        return
    damaged = list(check_listed(folder, content))
    yield from damaged
    tokenizers = _tokenizers(info)
    expected = {DATASET, SUCCESS_FILE, *(f["file"] for f in listed_files(content))}
    for name in tokenizers if not info.files else ():
        names = tokenizer_files(files.join(folder, name))
        expected |= {files.join(name, file) for file in names}
    yield from check_others(folder, expected)
    for name, fingerprint in tokenizers.items():
        yield from check_tokenizer(folder, name, fingerprint, named_in=DATASET)
    whole = expected - {finding.file for finding in damaged}
    yield from _check_shards(folder, info, whole)
    yield from _check_counts(folder, info, whole)


def _tokenizers(info: DatasetInfo) -> dict[str, str]:
    """The fingerprints of the tokenizers by folder."""
    tokenizers = {TOKENIZER_FOLDER: info.tokenizer_fingerprint}
    if info.source_tokenizer_fingerprint:
        tokenizers[SOURCE_TOKENIZER_FOLDER] = info.source_tokenizer_fingerprint
    return tokenizers


def _check_shards(folder: str, info: DatasetInfo, whole: set[str]) -> Iterator[Finding]:
    """Reads every record of the shards, with its checksums."""
    listed = [shard for shards in info.splits.values() for shard in shards]
    total = sum(shard.records for shard in listed)
    with stage("read", total=total, unit="records") as reading:
        for shard in listed:
            reading.advance(shard.records)
            if shard.file not in whole:
                continue
            try:
                with files.open_read(files.join(folder, shard.file)) as opened:
                    records = sum(1 for _ in read_frames(opened, name=shard.file))
            except DataError as error:
                yield Finding(shard.file, str(error).removeprefix(f"{shard.file}: "))
                continue
            if records != shard.records:
                yield Finding(
                    shard.file,
                    f"has {records} records, and {DATASET} says {shard.records}",
                )


def _check_counts(folder: str, info: DatasetInfo, whole: set[str]) -> Iterator[Finding]:
    """Compares the counts of a description with its lists."""
    records = sum(info.records(split) for split in info.splits)
    written = info.counts.get("written", -1)
    # Of single sentences a document makes one record or several.
    is_too_few = records < written
    if is_too_few or (info.target != SENTENCE_PAIRS and records != written):
        yield Finding(
            DATASET,
            f"counts.written is {written}, and the shards have {records} records",
        )
    findings, lost = check_letters(
        folder, info.dead_letters, info.fingerprint[:16], whole
    )
    yield from findings
    if lost is None:
        return
    for outcome, letters in (("failed", lost.failed), ("empty", lost.empty)):
        expected, present = info.counts.get(outcome, 0), sum(letters.values())
        if expected != present:
            yield Finding(
                DATASET,
                f"counts.{outcome} is {expected}, and the dead letters have {present}",
            )
