"""Pre-trained word vectors in the text formats of word2vec (Mikolov et al. 2013), GloVe
and fastText, as initial rows of an embedding table.

A file of any size is read once, and only the vectors of the wanted words are kept.

    3000000 300                    the header of word2vec: the number of words and the
                                   width of a vector; GloVe writes no header
    in 0.0703 0.0869 ... -0.0123   a word and its numbers, one word per line
"""

import itertools
import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import AnyTokenizer

_HEADER = re.compile(rb"(\d+)[ \t]+([1-9]\d*)\s*")
_BLOCK = 1 << 20  # bytes read at a time; no line is longer


def initial_table(
    table: np.ndarray, tokenizer: AnyTokenizer, path: str
) -> tuple[np.ndarray, int, int]:
    """Replaces rows of a random embedding table by word vectors.

    A token is looked up as it is spelt and then in lower case: ▁He as He, then as he.
    Only tokens that are a whole word or a punctuation mark are looked up, not special
    tokens, the bare space or parts of words.

    All vectors are multiplied by the same number, so that the replaced rows have the
    root mean square of the random table. So the network starts with embeddings of the
    size that it expects: if it multiplies embeddings by sqrt(D), the random values are
    small. The vectors are not centred.

    Args:
      table: float32 [V, D]; it is not changed.
      tokenizer: the tokenizer, which gives the word of each token id.
      path: as in `read_vectors`.

    Returns:
      The new table, float32 [V, D]; the number of rows that were replaced; the number
      of tokens that were looked up.

    Raises:
      UsageError: the vectors are not as wide as the table.
      DataError: as in `read_vectors`; or no token is in the file, or all vectors found
          are zero.
    """
    words = {token: word for token, word in enumerate(tokenizer.words) if word}
    spellings = {*words.values(), *(word.lower() for word in words.values())}
    vectors = read_vectors(path, spellings, width=table.shape[1])
    rows = {
        token: vector
        for token, word in words.items()
        if (vector := vectors.get(word, vectors.get(word.lower()))) is not None
    }
    if not rows:
        raise DataError(
            f"{path}: it has none of the {len(words)} words of the tokenizer; use "
            "vectors in the language of the corpus"
        )
    new_rows = np.stack(list(rows.values()))
    size = _root_mean_square(new_rows)
    if size == 0:
        raise DataError(
            f"{path}: the vectors of all {len(rows)} matching words are zero; use "
            "another file"
        )
    new_table = np.array(table, "float32")
    new_table[list(rows)] = new_rows * (_root_mean_square(table) / size)
    return new_table, len(rows), len(words)


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype="float64"))))


def read_vectors(
    path: str, wanted: Collection[str], *, width: int
) -> dict[str, np.ndarray]:
    """Reads the vectors of some words, float32 [D]. If the file has a word twice, the
    first vector is used.

    Args:
      path: a file in one of the formats above.
      wanted: the words, spelt as in the file. A word of the file that is not UTF-8
          matches none of them.
      width: D, the required width of the vectors.

    Raises:
      UsageError: the vectors have another width.
      DataError: the file does not hold word vectors, is cut off or contradicts its
          header, or a wanted vector cannot be read or is not finite.
    """
    words = {word.encode(): word for word in wanted}
    vectors: dict[str, np.ndarray] = {}
    lines = enumerate(_read_lines(path), start=1)
    first = next(lines, (1, b""))
    header = _HEADER.fullmatch(first[1])
    # The word of a line may be a number, or have spaces in it.
    numbers = itertools.takewhile(_is_number, reversed(first[1].split()[1:]))
    file_width = int(header[2]) if header else sum(1 for _ in numbers)
    if not file_width:
        raise DataError(
            f"{path}: it must begin with two whole numbers, or with a word and its "
            "numbers; use a decompressed file of word vectors"
        )
    if file_width != width:
        raise UsageError(
            f"{path}: its vectors have {file_width} numbers, but the embedding has "
            f"{width}; train with `width={file_width}`"
        )
    rows = 0
    for number, line in lines if header else itertools.chain([first], lines):
        if not (line := line.strip(b" \t\r\n")):
            continue
        rows += 1
        word, *fields = line.rsplit(None, width)
        try:
            # GloVe has a few words with spaces, but none that ends in a number.
            *before, end = word.split(b" ")
            if len(fields) < width or (before and _is_number(end)):
                raise ValueError(f"it does not have {width} numbers")
            if word in words:
                vectors.setdefault(words[word], _read_numbers(fields))
        except ValueError as error:
            raise DataError(
                f"{path}: line {number} is not a word and {width} finite numbers; "
                "correct it or download it again; save a binary file as text with "
                "gensim"
            ) from error
    if header and rows != int(header[1]):
        raise DataError(
            f"{path}: it holds {rows} words, but its header says {int(header[1])}; "
            "download it again or correct the header"
        )
    return vectors


def _read_numbers(fields: Sequence[bytes]) -> np.ndarray:
    """Reads a vector, float32 [D].

    Raises:
      ValueError: a number cannot be read or is not finite.
    """
    with np.errstate(over="ignore"):  # A number that is too large becomes infinite.
        vector = np.array([float(field) for field in fields], "float32")
    if not np.isfinite(vector).all():
        raise ValueError("a number is not finite")
    return vector


def _read_lines(path: str) -> Iterator[bytes]:
    """The lines of a file."""
    with files.open_read(path) as file:
        yield from iter(lambda: file.readline(_BLOCK), b"")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
