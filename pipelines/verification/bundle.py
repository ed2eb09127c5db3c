"""The files of a bundle, as its manifest describes them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.card import CARD_FILE
from precis.model.bundle.checksums import CHECKSUMS_FILE, read_checksums
from precis.model.bundle.manifest import (
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    TRAINING_FOLDER,
    check_file,
    read_manifest,
)
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    tokenizer_files,
)
from precis.pipelines.verification.findings import Finding
from precis.pipelines.verification.folder import check_others, check_tokenizer

_CARD_WAY_OUT = "; `precis card BUNDLE --output BUNDLE/README.md` writes both anew"
_WITHOUT_CHECKSUMS = (
    f"{CHECKSUMS_FILE}: is missing, as in bundles of earlier versions; without it "
    f"{CARD_FILE}, the provenance in {MANIFEST_FILE}, and the exact bytes of "
    f"{MANIFEST_FILE} and of the tokenizers are not checked"
)


def check_bundle(folder: str) -> Iterator[Finding]:
    """Checks a bundle, and those that it consists of."""
    try:
        manifest = read_manifest(folder)
    except (DataError, UsageError) as error:
        yield Finding(MANIFEST_FILE, _without_path(error, folder))
        return
    expected = {MANIFEST_FILE, CARD_FILE, CHECKSUMS_FILE}
    for name in manifest["sha256"]:
        expected.add(name)
        try:
            files.path_within(folder, name, listed_in=MANIFEST_FILE)
            check_file(folder, name, manifest)
        except DataError as error:
            yield Finding(name, _without_path(error, folder))
    for name in (TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER):
        fingerprint = manifest.get(f"{name}_fingerprint")
        if fingerprint is None:
            continue
        path = files.join(folder, name)
        expected |= {files.join(name, file) for file in tokenizer_files(path)}
        yield from check_tokenizer(folder, name, fingerprint, named_in=MANIFEST_FILE)
    yield from _check_bytes(folder, manifest, expected - {CHECKSUMS_FILE})
    parts = SUMMARIZER_PARTS.values() if manifest.get("kind") == SUMMARIZER else ()
    for part in parts:
        for finding in check_bundle(files.join(folder, part)):
            yield finding._replace(file=files.join(part, finding.file))
    # Each of these folders has its own files.
    apart = tuple(f"{name}/" for name in (TRAINING_FOLDER, *parts))
    for finding in check_others(folder, expected):
        if not finding.file.startswith(apart):
            yield finding


def _check_bytes(
    folder: str, manifest: Mapping[str, Any], expected: Collection[str]
) -> Iterator[Finding]:
    """Compares all files with SHA256SUMS, where the bundle has it."""
    try:
        checksums = read_checksums(folder)
    except DataError as error:
        yield Finding(CHECKSUMS_FILE, _without_path(error, folder))
        return
    if checksums and set(checksums) != set(expected):
        different = ", ".join(sorted(set(checksums) ^ set(expected)))
        yield Finding(CHECKSUMS_FILE, f"lists other files than the bundle: {different}")
    for name in sorted(set(checksums) & set(expected)):
        path = files.join(folder, name)
        if name in manifest["sha256"]:  # It was read and compared with that.
            checksum = manifest["sha256"][name]
        elif files.exists(path):
            checksum = files.sha256_file(path)
        else:
            yield Finding(name, "is missing")
            continue
        if checksum != checksums[name]:
            yield Finding(
                name,
                f"its checksum is not that in {CHECKSUMS_FILE}; one of them was changed"
                + _CARD_WAY_OUT * (name == CARD_FILE),
            )


def not_checked(folder: str) -> list[str]:
    """What `check_bundle` does not read: names of files and folders, and why."""
    lines = []
    if not files.exists(files.join(folder, CHECKSUMS_FILE)):
        lines.append(_WITHOUT_CHECKSUMS)
    if files.exists(files.join(folder, TRAINING_FOLDER)):
        lines.append(f"{TRAINING_FOLDER}/: the state of the training, no part of it")
    for part in SUMMARIZER_PARTS.values():
        path = files.join(folder, part)
        if files.exists(path):
            lines += [files.join(part, line) for line in not_checked(path)]
    return lines


def _without_path(error: Exception, folder: str) -> str:
    """The message of an error that begins with the path of a file of the folder."""
    text = str(error)
    return text.split(": ", 1)[1] if text.startswith(folder) else text
