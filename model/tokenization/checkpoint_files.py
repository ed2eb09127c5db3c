"""The tokenizer of a checkpoint, read from the files in its folder.

The first of these sets of files that is complete defines the tokenizer:

    tokenizer.json            a definition of `tokenizers`
    vocab.json, merges.txt    a byte-level BPE
    vocab.txt                 WordPiece
    spiece.model              SentencePiece
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.definitions import (
    byte_level_bpe_definition,
    wordpiece_definition,
)
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.sentencepiece import sentencepiece_definition

TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "vocab.json"
MERGES_FILE = "merges.txt"
PIECES_FILE = "vocab.txt"
SENTENCEPIECE_FILE = "spiece.model"
SETTINGS_FILE = "tokenizer_config.json"
_WAY_OUT = "download the tokenizer again"


class _TokenizerLayout(NamedTuple):
    """How a tokenizer is stored in a checkpoint.

    Attributes:
      vocabulary: the files that must be there.
      settings: the file of settings that may be there.
      define: (contents of the vocabulary files, settings, config.json) -> definition.
    """

    vocabulary: tuple[str, ...]
    settings: str | None
    define: Callable[[Sequence[bytes], Mapping[str, Any], Mapping[str, Any]], str]


_LAYOUTS = (
    _TokenizerLayout(
        vocabulary=(TOKENIZER_FILE,),
        settings=None,
        define=lambda contents, settings, config: contents[0].decode(),
    ),
    _TokenizerLayout(
        vocabulary=(VOCABULARY_FILE, MERGES_FILE),
        settings=None,
        define=lambda contents, settings, config: byte_level_bpe_definition(
            contents[0], contents[1], config
        ),
    ),
    _TokenizerLayout(
        vocabulary=(PIECES_FILE,),
        settings=SETTINGS_FILE,
        define=lambda contents, settings, config: wordpiece_definition(
            contents[0], settings
        ),
    ),
    _TokenizerLayout(
        vocabulary=(SENTENCEPIECE_FILE,),
        settings=SETTINGS_FILE,
        define=lambda contents, settings, config: sentencepiece_definition(
            contents[0], config["model_type"], settings
        ),
    ),
)


def tokenizer_files(folder: str) -> list[str]:
    """The names of the files that define the tokenizer of a checkpoint.

    Raises:
      UsageError: there are none.
    """
    layout = _find_layout(folder)
    names = list(layout.vocabulary)
    if layout.settings and files.exists(files.join(folder, layout.settings)):
        names.append(layout.settings)
    return names


def read_tokenizer(folder: str, config: Mapping[str, Any]) -> ImportedTokenizer:
    """Reads the tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      config: its config.json.

    Raises:
      UsageError: there is no tokenizer.
      DataError: the tokenizer is damaged, or has more tokens than the network.
    """
    layout = _find_layout(folder)
    path = files.join(folder, layout.vocabulary[0])
    settings = _read_settings(folder, layout)
    contents = [
        files.read_bytes(files.join(folder, name)) for name in layout.vocabulary
    ]
    with files.naming_damage(path, way_out=_WAY_OUT):
        try:
            tokenizer = ImportedTokenizer(layout.define(contents, settings, config))
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    if tokenizer.vocabulary_size > config["vocab_size"]:
        raise DataError(
            f"{path}: {tokenizer.vocabulary_size} tokens, and the network knows "
            f"{config['vocab_size']}; take the network's own tokenizer"
        )
    return tokenizer


def _read_settings(folder: str, layout: _TokenizerLayout) -> dict[str, Any]:
    if layout.settings is None:
        return {}
    path = files.join(folder, layout.settings)
    return files.read_object(path, way_out=_WAY_OUT) if files.exists(path) else {}


def _find_layout(folder: str) -> _TokenizerLayout:
    for layout in _LAYOUTS:
        if all(files.exists(files.join(folder, name)) for name in layout.vocabulary):
            return layout
    raise UsageError(
        f"{folder}: there is no tokenizer, neither {TOKENIZER_FILE} nor "
        f"{VOCABULARY_FILE} and {MERGES_FILE} nor {PIECES_FILE} nor "
        f"{SENTENCEPIECE_FILE}; download it into the folder, beside the weights"
    )
