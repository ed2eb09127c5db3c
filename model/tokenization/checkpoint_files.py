"""The tokenizer of a checkpoint, read from its tokenizer.json: a definition in the JSON
format of the `tokenizers` library.

Older checkpoints have their vocabulary alone, as vocab.txt, vocab.json with merges.txt
or a SentencePiece model. transformers turns each of them into a tokenizer.json.
"""

from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.imported import ImportedTokenizer

TOKENIZER_FILE = "tokenizer.json"


def read_tokenizer(folder: str, config: Mapping[str, Any]) -> ImportedTokenizer:
    """Reads the tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      config: its config.json.

    Raises:
      UsageError: there is no tokenizer.
      DataError: the tokenizer is damaged, or has more tokens than the network.
    """
    path = files.join(folder, TOKENIZER_FILE)
    if not files.exists(path):
        raise UsageError(
            f"{folder}: there is no tokenizer, no {TOKENIZER_FILE}; download it into "
            "the folder, or make it once of an older tokenizer there: transformers' "
            "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    with files.naming_damage(path, way_out="download the tokenizer again"):
        tokenizer = ImportedTokenizer(files.read_bytes(path).decode())
        size = tokenizer.vocabulary_size
    if size > config["vocab_size"]:
        raise DataError(
            f"{path}: {size} tokens, and the network knows {config['vocab_size']}; "
            "take the network's own tokenizer"
        )
    return tokenizer
