"""Sources as token ids: the one place where a text is cut at a network's length."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from precis.model.tokenization.folder import AnyTokenizer


class EncodedSource(NamedTuple):
    """The token ids of one source.

    Attributes:
      ids: int32 [S], cut at the network's source length.
      source_tokens: the length before the cut.
    """

    ids: np.ndarray
    source_tokens: int

    @property
    def is_truncated(self) -> bool:
        """Whether the network reads less than the whole text."""
        return self.source_tokens > len(self.ids)


def encode_sources(
    tokenizer: AnyTokenizer, texts: Iterable[str], *, max_source_tokens: int
) -> list[EncodedSource]:
    """Encodes texts and cuts each at `max_source_tokens`.

    A tokenizer that sets special tokens around a text keeps those behind it.
    """
    return [
        EncodedSource(tokenizer.cut(ids, max_source_tokens), len(ids))
        for ids in tokenizer.encode(texts)
    ]
