"""The tokenizers in a folder of records or in a bundle.

    tokenizer/           the tokenizer of targets, and usually of sources
    source_tokenizer/    the tokenizer of sources, if it is a different one

Each of them is a WordPiece `Tokenizer` of precis or an `ImportedTokenizer`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError
from precis.model.tokenization.imported import DEFINITION_FILE, ImportedTokenizer
from precis.model.tokenization.wordpiece import (
    SETTINGS_FILE,
    VOCABULARY_FILE,
    Tokenizer,
)

TOKENIZER_FOLDER = "tokenizer"
SOURCE_TOKENIZER_FOLDER = "source_tokenizer"

AnyTokenizer = Tokenizer | ImportedTokenizer


@dataclasses.dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of a set of records, or of a network.

    Attributes:
      source: the tokenizer of sources; the same object as `target` if there is one
          tokenizer for both.
      target: the tokenizer of targets.
    """

    source: AnyTokenizer
    target: AnyTokenizer


def holds_tokenizer(folder: str) -> bool:
    """Whether a folder holds a tokenizer of either kind."""
    return any(
        files.exists(files.join(folder, name))
        for name in (DEFINITION_FILE, SETTINGS_FILE)
    )


def tokenizer_files(folder: str) -> tuple[str, ...]:
    """The names of the files of the tokenizer in a folder."""
    if files.exists(files.join(folder, DEFINITION_FILE)):
        return (DEFINITION_FILE,)
    return VOCABULARY_FILE, SETTINGS_FILE


def load_tokenizer(folder: str) -> AnyTokenizer:
    """Reads the tokenizer in a folder, of either kind.

    Raises:
      DataError: a file is missing or damaged.
    """
    if files.exists(files.join(folder, DEFINITION_FILE)):
        return ImportedTokenizer.load(folder)
    return Tokenizer.load(folder)


def load_tokenizers(folder: str) -> TokenizerPair:
    """Reads the tokenizers that `save_tokenizers` wrote.

    Raises:
      DataError: a file is missing or damaged.
    """
    target = load_tokenizer(files.join(folder, TOKENIZER_FOLDER))
    source_folder = files.join(folder, SOURCE_TOKENIZER_FOLDER)
    source = load_tokenizer(source_folder) if holds_tokenizer(source_folder) else target
    return TokenizerPair(source=source, target=target)


def open_tokenizers(
    folder: str, description: Mapping[str, Any], *, way_out: str
) -> TokenizerPair:
    """Reads the tokenizers of a finished folder.

    Args:
      folder: the folder of records or of a bundle.
      description: the content of its dataset.json or manifest.json.
      way_out: what to do if a tokenizer differs, for the message.

    Raises:
      DataError: a file is missing or damaged, or the fingerprint of a tokenizer differs
        from the description.
    """
    tokenizers = load_tokenizers(folder)
    target = description.get(f"{TOKENIZER_FOLDER}_fingerprint")
    source = description.get(f"{SOURCE_TOKENIZER_FOLDER}_fingerprint") or target
    for name, tokenizer, expected in (
        (TOKENIZER_FOLDER, tokenizers.target, target),
        (SOURCE_TOKENIZER_FOLDER, tokenizers.source, source),
    ):
        if tokenizer.fingerprint != expected:
            raise DataError(
                f"{files.join(folder, name)}: not the tokenizer that {folder} was "
                f"made with; {way_out}"
            )
    return tokenizers


def save_tokenizers(folder: str, tokenizers: TokenizerPair) -> None:
    """Writes the tokenizers into their folders below `folder`.

    Equal tokenizers write equal bytes.
    """
    tokenizers.target.save(files.join(folder, TOKENIZER_FOLDER))
    if tokenizers.source is not tokenizers.target:
        tokenizers.source.save(files.join(folder, SOURCE_TOKENIZER_FOLDER))
