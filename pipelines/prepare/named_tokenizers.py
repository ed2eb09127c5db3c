"""The tokenizers that the flags of `precis prepare` name."""

import dataclasses
from collections.abc import Mapping

from precis.model import files
from precis.model.errors import UsageError
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    holds_tokenizer,
    load_tokenizer,
)
from precis.model.tokenization.wordpiece import SETTINGS_FILE
from precis.pipelines.options.prepare import PrepareOptions

# The flags that name a tokenizer, and the folders of records and bundles that it may
# lie in; the first that is there counts.
_TOKENIZER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "tokenizer": (TOKENIZER_FOLDER,),
    "source_tokenizer": (SOURCE_TOKENIZER_FOLDER, TOKENIZER_FOLDER),
}


def find_tokenizers(options: PrepareOptions) -> tuple[PrepareOptions, dict[str, str]]:
    """Finds the folders of the tokenizers that are named.

    One tokenizer that is named for both texts becomes the tokenizer of both.

    Returns:
      The options with the folders that hold the tokenizers, and the fingerprints.
    """
    folders = {
        name: _tokenizer_folder(name, path)
        for name in _TOKENIZER_FLAGS
        if (path := getattr(options, name))
    }
    fingerprints = {
        name: load_tokenizer(folder).fingerprint for name, folder in folders.items()
    }
    if len(set(fingerprints.values())) < len(fingerprints):
        folders["source_tokenizer"] = ""
        fingerprints["source_tokenizer"] = ""
    options = dataclasses.replace(
        options,
        tokenizer=folders.get("tokenizer", ""),
        source_tokenizer=folders.get("source_tokenizer", ""),
    )
    return options, fingerprints


def _tokenizer_folder(name: str, path: str) -> str:
    below = [files.join(path, folder) for folder in _TOKENIZER_FLAGS[name]]
    for folder in (path, *below):
        if holds_tokenizer(folder):
            return folder
    raise UsageError(
        f"--{name} {path} is no tokenizer folder (no {SETTINGS_FILE}) and holds none; "
        "name one, records, or a bundle, as which `precis import` takes in a "
        "checkpoint of another project"
    )
