"""Checks the files of a bundle against its manifest."""

from collections.abc import Iterator

from precis.model import files
from precis.model.bundle.card import CARD_FILE
from precis.model.bundle.manifest import (
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    TRAINING_FOLDER,
    open_stored,
)
from precis.model.errors import DataError, UsageError
from precis.model.finished import differs_from
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    open_tokenizers,
    tokenizer_files,
)
from precis.pipelines.verify.folder import Finding, check_others


def check_bundle(folder: str) -> Iterator[Finding]:
    """Checks a bundle, and the bundles in it. The model card may be edited.

    Raises:
      DataError: the manifest names a file outside the bundle.
    """
    try:
        stored = open_stored(folder)
    except (DataError, UsageError) as error:
        # Some messages begin with the path.
        problem = str(error).removeprefix(f"{folder}/{MANIFEST_FILE}: ")
        yield Finding(MANIFEST_FILE, problem.removeprefix(f"{folder}: "))
        return
    manifest = stored.manifest
    names = {*manifest["sha256"], MANIFEST_FILE, CARD_FILE}
    for name, checksum in manifest["sha256"].items():
        path = files.path_within(folder, name, listed_in=MANIFEST_FILE)
        if not files.exists(path):
            yield Finding(name, "is missing")
        elif files.sha256_file(path) != checksum:
            yield Finding(name, differs_from(MANIFEST_FILE))
    for name in (TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER):
        if f"{name}_fingerprint" in manifest:
            of_tokenizer = tokenizer_files(files.join(folder, name))
            names.update(files.join(name, file) for file in of_tokenizer)
    if f"{TOKENIZER_FOLDER}_fingerprint" in manifest:
        try:  # Again, even if this process has read them before.
            open_tokenizers(folder, manifest, way_out="copy the bundle again")
        except DataError as error:
            yield Finding(TOKENIZER_FOLDER, f"is damaged or missing: {error}")
    parts = SUMMARIZER_PARTS.values() if stored.kind == SUMMARIZER else ()
    for part in parts:
        for finding in check_bundle(files.join(folder, part)):
            yield finding._replace(file=files.join(part, finding.file))
    # Each of these folders has its own list of files.
    apart = tuple(f"{name}/" for name in (TRAINING_FOLDER, *parts))
    for finding in check_others(folder, names):
        if not finding.file.startswith(apart):
            yield finding
