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
_SPACE = ord(" ")


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

    encoded = [text.encode(errors="replace") for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    # Each text is followed by a space, and each chunk is read with the space after it.
    joined = b" ".join([*encoded, b""])
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == _SPACE) + 1
    starts = pa.array(np.concatenate([[0], ends]), pa.int32())
    last = np.searchsorted(ends, np.cumsum(lengths + 1))
    offsets = pa.array(np.concatenate([[0], last + 1]), pa.int32())
    spaced = pa.StringArray.from_buffers(
        len(ends), starts.buffers()[1], pa.py_buffer(joined)
    ).dictionary_encode()
    distinct = pc.utf8_slice_codeunits(spaced.dictionary, 0, -1)  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    chunks = pa.DictionaryArray.from_arrays(spaced.indices, distinct)
    return pa.ListArray.from_arrays(offsets, chunks)


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
