"""The tokenizer of a checkpoint, read from the files in its folder.

The first of these sets of files that is complete defines the tokenizer:

    tokenizer.json            a definition of `tokenizers`
    vocab.json, merges.txt    a byte-level BPE
    vocab.txt                 WordPiece
    spiece.model              SentencePiece
"""

from collections.abc import Mapping, Sequence
from typing import Any

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
_SETS = (
    (TOKENIZER_FILE,),
    (VOCABULARY_FILE, MERGES_FILE),
    (PIECES_FILE,),
    (SENTENCEPIECE_FILE,),
)
_WAY_OUT = "download the tokenizer again"


def tokenizer_files(folder: str) -> list[str]:
    """The names of the files that define the tokenizer of a checkpoint: those of the
    vocabulary, then that of the settings, if it is read and there.

    Raises:
      UsageError: there are none.
    """
    for names in _SETS:
        if all(files.exists(files.join(folder, name)) for name in names):
            has_settings = files.exists(files.join(folder, SETTINGS_FILE))
            reads_settings = names[0] in (PIECES_FILE, SENTENCEPIECE_FILE)
            return [*names, *[SETTINGS_FILE] * (has_settings and reads_settings)]
    raise UsageError(
        f"{folder}: there is no tokenizer, neither {TOKENIZER_FILE} nor "
        f"{VOCABULARY_FILE} and {MERGES_FILE} nor {PIECES_FILE} nor "
        f"{SENTENCEPIECE_FILE}; download it into the folder, beside the weights"
    )


def read_tokenizer(folder: str, config: Mapping[str, Any]) -> ImportedTokenizer:
    """Reads the tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      config: its config.json.

    Raises:
      UsageError: there is no tokenizer.
      DataError: the tokenizer is damaged, or has more tokens than the network.
    """
    names = tokenizer_files(folder)
    path = files.join(folder, names[0])
    settings = {}
    if names[-1] == SETTINGS_FILE:
        settings = files.read_object(files.join(folder, names.pop()), way_out=_WAY_OUT)
    contents = [files.read_bytes(files.join(folder, name)) for name in names]
    with files.naming_damage(path, way_out=_WAY_OUT):
        try:
            definition = _definition(names[0], contents, settings, config)
            tokenizer = ImportedTokenizer(definition)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    if tokenizer.vocabulary_size > config["vocab_size"]:
        raise DataError(
            f"{path}: {tokenizer.vocabulary_size} tokens, and the network knows "
            f"{config['vocab_size']}; take the network's own tokenizer"
        )
    return tokenizer


def _definition(
    name: str,
    contents: Sequence[bytes],
    settings: Mapping[str, Any],
    config: Mapping[str, Any],
) -> str:
    """The definition of a tokenizer from the contents of a set that begins with a file
    of that name.
    """
    if name == VOCABULARY_FILE:
        return byte_level_bpe_definition(contents[0], contents[1], config)
    if name == PIECES_FILE:
        return wordpiece_definition(contents[0], settings)
    if name == SENTENCEPIECE_FILE:
        return sentencepiece_definition(contents[0], config["model_type"], settings)
    return contents[0].decode()
