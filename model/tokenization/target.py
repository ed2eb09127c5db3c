"""Targets as token ids."""

from collections.abc import Iterable

import numpy as np

from precis.model.tokenization.folder import AnyTokenizer


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
