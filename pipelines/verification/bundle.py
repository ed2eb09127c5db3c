"""The files of a bundle, as its manifest describes them."""

from collections.abc import Iterator

from precis.model import files
from precis.model.bundle.card import CARD_FILE
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
    load_tokenizer,
    tokenizer_files,
)
from precis.pipelines.verification.findings import Finding
from precis.pipelines.verification.folder import check_others


def check_bundle(folder: str) -> Iterator[Finding]:
    """Checks a bundle, and those that it consists of.

    The model card may be missing or edited: it is no part of the model.
    """
    try:
        manifest = read_manifest(folder)
    except (DataError, UsageError) as error:
        yield Finding(MANIFEST_FILE, _without_path(error, folder))
        return
    expected = {MANIFEST_FILE, CARD_FILE}
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
        try:
            if load_tokenizer(path).fingerprint != fingerprint:
                yield Finding(name, f"is not the tokenizer that {MANIFEST_FILE} names")
        except (DataError, OSError) as error:
            yield Finding(name, f"is damaged or missing: {error}")
    parts = SUMMARIZER_PARTS.values() if manifest.get("kind") == SUMMARIZER else ()
    for part in parts:
        for finding in check_bundle(files.join(folder, part)):
            yield finding._replace(file=files.join(part, finding.file))
    # Each of these folders has its own files.
    apart = tuple(f"{name}/" for name in (TRAINING_FOLDER, *parts))
    for finding in check_others(folder, expected):
        if not finding.file.startswith(apart):
            yield finding


def _without_path(error: Exception, folder: str) -> str:
    """The message of an error that begins with the path of a file of the folder."""
    text = str(error)
    return text.split(": ", 1)[1] if text.startswith(folder) else text
