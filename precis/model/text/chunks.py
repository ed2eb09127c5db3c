"""Chunks of text between spaces, and what each of them becomes.

Most chunks occur many times in a corpus. So Arrow numbers the chunks of some hundred
documents, and Python processes each distinct chunk once.

    texts         "Rain fell ."  "Mid-May ( rain ) fell"
    distinct      Rain  fell  .  Mid-May  (  rain  )
    numbers       0 1 2          3 4 5 6 1
    offsets       0              3              8
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_BATCH_CHARACTERS = 4 << 20


class Chunks(NamedTuple):
    """The chunks of T texts, C in all.

    Attributes:
      distinct: the distinct chunks.
      numbers: int32 [C], the index of each chunk in `distinct`.
      offsets: int32 [T + 1], where the chunks of each text begin in `numbers`.
    """

    distinct: list[str]
    numbers: np.ndarray
    offsets: np.ndarray


def split_chunks(texts: Sequence[str]) -> Chunks:
    """Splits texts at spaces into chunks, which may have other white space.

    Lone surrogates, which are not part of words, become question marks.
    """
    return read_chunks(chunk_lists(texts))


def chunk_lists(texts: Sequence[str]) -> Any:
    """The chunks of texts as an array of Arrow, of lists of numbered strings."""
    import pyarrow as pa  # here, because the help of a command does not need it
    import pyarrow.compute as pc

    encodable = [
        text if text.isascii() else text.encode(errors="replace").decode()
        for text in texts
    ]
    lists = pc.split_pattern(pa.array(encodable, pa.string()), " ")  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    return pa.ListArray.from_arrays(lists.offsets, lists.values.dictionary_encode())


def read_chunks(lists: Any) -> Chunks:
    """The chunks in an array from `chunk_lists`."""
    return Chunks(
        lists.values.dictionary.to_pylist(),
        lists.values.indices.to_numpy(),
        lists.offsets.to_numpy(),
    )


def batches_of_texts(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yields the texts in batches of some megabytes."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch = []
            characters = 0
    if batch:
        yield batch
