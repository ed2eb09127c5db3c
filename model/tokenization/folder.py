"""The tokenizers of a folder, whichever kind they are: our own or a checkpoint's, one
for source and target alike or one for each.

tokenizer/           cuts what is written, and what is read too where there is no other
source_tokenizer/    cuts what is read
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from precis.model import files
from precis.model.tokenization.imported import DEFINITION_FILE, ImportedTokenizer
from precis.model.tokenization.wordpiece import SETTINGS_FILE, Tokenizer

TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER = "tokenizer", "source_tokenizer"

AnyTokenizer = Tokenizer | ImportedTokenizer


@dataclasses.dataclass(frozen=True)
class Tokenizers:
    """What cuts the texts of records, or of a network.

    Attributes:
      source: of what is read; the same object as `target` where there is one tokenizer.
      target: of what is written.
    """

    source: AnyTokenizer
    target: AnyTokenizer


def holds_tokenizer(folder: str) -> bool:
    """Whether the files of a tokenizer, of either kind, lie in a folder."""
    return any(
        files.exists(files.join(folder, name))
        for name in (DEFINITION_FILE, SETTINGS_FILE)
    )


def load_tokenizer(folder: str) -> AnyTokenizer:
    """The tokenizer of a folder, whichever kind its files are.

    Raises:
      DataError: a file is missing or damaged.
    """
    if files.exists(files.join(folder, DEFINITION_FILE)):
        return ImportedTokenizer.load(folder)
    return Tokenizer.load(folder)


def load_tokenizers(folder: str) -> Tokenizers:
    """The tokenizers of a folder of records, or what `save_tokenizers` wrote into
    another.

    Raises:
      DataError: a file is missing or damaged.
    """
    target, source_folder = (
        load_tokenizer(files.join(folder, TOKENIZER_FOLDER)),
        files.join(folder, SOURCE_TOKENIZER_FOLDER),
    )
    return Tokenizers(
        load_tokenizer(source_folder) if holds_tokenizer(source_folder) else target,
        target,
    )


def save_tokenizers(folder: str, tokenizers: Tokenizers) -> None:
    """Writes the tokenizers into their folders below one; equal tokenizers write equal
    bytes.
    """
    tokenizers.target.save(files.join(folder, TOKENIZER_FOLDER))
    if tokenizers.source is not tokenizers.target:
        tokenizers.source.save(files.join(folder, SOURCE_TOKENIZER_FOLDER))


def encode_targets(tokenizer: AnyTokenizer, texts: Iterable[str]) -> list[np.ndarray]:
    """The token ids of texts to be written, int32 [T] each, without special tokens
    behind them: training puts the end there itself.

    BART    <s> Rain Ġfell . </s>  ->  <s> Rain Ġfell .        T5    ▁Rain ▁fell . </s>  ->  ▁Rain ▁fell .
    """
    behind = len(tokenizer.around[1])
    return [ids[: len(ids) - behind] for ids in tokenizer.encode(texts)]
