"""The files of a bundle, as SHA256SUMS and its manifest describe them."""

from collections.abc import Iterator

from precis.model import files
from precis.model.bundle.card import CARD_FILE
from precis.model.bundle.manifest import (
    CHECKSUMS_FILE,
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    TRAINING_FOLDER,
    open_tokenizer,
    read_checksums,
    read_manifest,
)
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import SOURCE_TOKENIZER_FOLDER, TOKENIZER_FOLDER
from precis.pipelines.run.result_files import differs_from
from precis.pipelines.verify.folder import Finding, check_others

_CARD_WAY_OUT = "; if you edited it, write its `sha256sum` there"


def check_bundle(folder: str) -> Iterator[Finding]:
    """Checks a bundle, and those that it consists of.

    Raises:
      DataError: a list of its files names one outside of it.
    """
    try:
        manifest = read_manifest(folder)
        checksums = read_checksums(folder)
    except (DataError, UsageError) as error:
        # Errors of the list begin with its path, those of the manifest need not.
        path, _, problem = str(error).removeprefix(f"{folder}/").partition(": ")
        name = CHECKSUMS_FILE if path == CHECKSUMS_FILE else MANIFEST_FILE
        yield Finding(name, problem)
        return
    if not checksums:
        yield Finding(CHECKSUMS_FILE, "is missing; copy the bundle again")
    named = {**checksums, **manifest["sha256"]}
    for name, checksum in named.items():
        listed_in = MANIFEST_FILE if name in manifest["sha256"] else CHECKSUMS_FILE
        path = files.path_within(folder, name, listed_in=listed_in)
        if not files.exists(path):
            yield Finding(name, "is missing")
        elif files.sha256_file(path) != checksum:
            way_out = _CARD_WAY_OUT if name == CARD_FILE else ""
            yield Finding(name, differs_from(listed_in) + way_out)
        if checksums and checksums.get(name) != checksum:
            problem = f"it and {MANIFEST_FILE} have different checksums of {name}"
            yield Finding(CHECKSUMS_FILE, problem)
    for name in (TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER):
        if f"{name}_fingerprint" in manifest:
            try:
                open_tokenizer(folder, name)
            except DataError as error:
                yield Finding(name, f"is damaged or missing: {error}")
    parts = SUMMARIZER_PARTS.values() if manifest.get("kind") == SUMMARIZER else ()
    for part in parts:
        for finding in check_bundle(files.join(folder, part)):
            yield finding._replace(file=files.join(part, finding.file))
    # Each of these folders has its own files.
    apart = tuple(f"{name}/" for name in (TRAINING_FOLDER, *parts))
    for finding in check_others(folder, {*named, MANIFEST_FILE, CHECKSUMS_FILE}):
        if checksums and not finding.file.startswith(apart):
            yield finding
