"""Encodes sources and targets as token ids; the only place that cuts a text at a
network's source length.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from precis.model.text.normalization import normalise
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.wordpiece import Tokenizer


class EncodedSource(NamedTuple):
    """The token ids of one source.

    Attributes:
      ids: int32 [S], cut at the network's source length.
      source_tokens: the number of tokens before the cut.
    """

    ids: np.ndarray
    source_tokens: int

    @property
    def is_truncated(self) -> bool:
        """Whether part of the text was cut off."""
        return self.source_tokens > len(self.ids)


def encode_sources(
    tokenizer: AnyTokenizer,
    texts: Iterable[str],
    *,
    max_source_tokens: int,
    are_normalised: bool = False,
) -> list[EncodedSource]:
    """Encodes texts and cuts each at `max_source_tokens`.

    Special tokens at the end of a source are kept. With BART and at most 4 tokens:

        Rain fell.  ->  ids            <s> Rain Ġfell </s>
                        source_tokens  5

    An imported tokenizer takes raw text; for a tokenizer of precis, texts are
    normalised here unless they already are.

    Args:
      tokenizer: the tokenizer of sources.
      texts: the sources.
      max_source_tokens: the maximum length in tokens.
      are_normalised: whether all texts are known to be normalised.
    """
    if isinstance(tokenizer, Tokenizer) and not are_normalised:
        texts = map(normalise, texts)
    return [
        EncodedSource(tokenizer.cut(ids, max_source_tokens), len(ids))
        for ids in tokenizer.encode(texts)
    ]


def encode_targets(tokenizer: AnyTokenizer, texts: Iterable[str]) -> list[np.ndarray]:
    """Encodes the texts that a network learns to write.

    Special tokens at the end are left out, because training appends the end token:

        BART    <s> Rain Ġfell . </s>  ->  <s> Rain Ġfell .
        T5      ▁Rain ▁fell . </s>     ->  ▁Rain ▁fell .

    Returns:
      The token ids of each text, int32 [T].
    """
    _, after = tokenizer.surrounding_ids
    return [ids[: len(ids) - len(after)] for ids in tokenizer.encode(texts)]
