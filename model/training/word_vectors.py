"""Pre-trained word vectors, in the formats of word2vec (Mikolov et al. 2013), GloVe and
fastText: the first rows of an embedding table.

A file of any size is read through once, and only the vectors of the wanted words are
kept. The format of a file is recognised from its content:

    3000000 300                    the header of word2vec: the number of words, and of
                                   the numbers of a vector; GloVe writes no header
    in 0.0703 0.0869 ... -0.0123   text: a word and its numbers, one word a line
    in.^6....                      binary: a word, a space, its numbers as little-endian
                                   float32, and perhaps a line break
"""

import contextlib
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError

if TYPE_CHECKING:
    from precis.model.tokenization.imported import ImportedTokenizer
    from precis.model.tokenization.wordpiece import Tokenizer

_HEADER = re.compile(rb"(\d+)[ \t]+([1-9]\d*)\s*")
_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20  # bytes read at a time; no line and no word is longer


class Vectors(NamedTuple):
    """The vectors of some words.

    Attributes:
      width: D, the numbers of a vector.
      vectors: word -> vector, float32 [D], of the wanted words that the file has.
    """

    width: int
    vectors: dict[str, np.ndarray]


class InitialTable(NamedTuple):
    """An embedding table with word vectors in some of its rows.

    Attributes:
      table: float32 [V, D].
      replaced_words: the number of tokens whose row is a word vector.
      words: the number of tokens that were looked up.
    """

    table: np.ndarray
    replaced_words: int
    words: int


class _Layout(NamedTuple):
    """The format of a file.

    Attributes:
      rows: the number of words in its header; None without a header.
      width: the numbers of a vector.
      is_binary: whether the numbers are binary.
    """

    rows: int | None
    width: int
    is_binary: bool


def read_width(path: str) -> int:
    """The width of the vectors in a file, from its first lines.

    Raises:
      UsageError: there is no such file.
      DataError: it is no file of word vectors.
    """
    with _opened(path) as file:
        return _recognise(file, path).width


def read_vectors(path: str, wanted: Collection[str]) -> Vectors:
    """Reads the vectors of some words. If the file has a word twice, the first vector
    counts.

    Args:
      path: a file in one of the formats above, plain or compressed by gzip.
      wanted: the words, spelt as in the file. A word of the file that is not UTF-8
          matches none of them.

    Raises:
      UsageError: there is no such file.
      DataError: the file is no file of word vectors, is cut off, contradicts its
          header, or a wanted vector has a number that is not finite.
    """
    words = {word.encode(): word for word in wanted}
    vectors: dict[str, np.ndarray] = {}
    with _opened(path) as file:
        layout = _recognise(file, path)
    with _opened(path) as file:
        if layout.rows is not None:
            file.readline(_BLOCK)
        rows = _binary_rows if layout.is_binary else _text_rows
        for spelling, vector in rows(file, layout, words.keys(), path):
            if not np.isfinite(vector).all():
                raise DataError(
                    f"{path}: the vector of {words[spelling]!r} is not finite; "
                    "remove the word from the file, or take another"
                )
            vectors.setdefault(words[spelling], vector)
    return Vectors(layout.width, vectors)


def initial_table(
    table: np.ndarray, tokenizer: "Tokenizer | ImportedTokenizer", path: str
) -> InitialTable:
    """Replaces rows of a random embedding table by the vectors of the words that the
    tokens stand for.

    A token is looked up as it is spelt and then in lower case: ▁He as He, then as he.
    Only tokens that are a whole word or a punctuation mark are looked up, not special
    tokens, the bare space or parts of words.

    All vectors are multiplied by one number, so that the replaced rows have the root
    mean square of the random table. The network then begins with embeddings of the size
    that it was made for: a network that multiplies embeddings by sqrt(D) has small
    random values. The vectors are not centred.

    Args:
      table: float32 [V, D]; it is not changed.
      tokenizer: gives the word of each token id.
      path: as in `read_vectors`.

    Raises:
      UsageError: there is no such file, or its vectors are not as wide as the table.
      DataError: as in `read_vectors`; or no token is in the file, or all vectors found
          are zero.
    """
    width = table.shape[1]
    file_width = read_width(path)
    if file_width != width:
        raise UsageError(
            f"{path}: its vectors have {file_width} numbers, and the embedding has "
            f"{width}; train with --width {file_width}"
        )
    words = {token: word for token, word in enumerate(tokenizer.words) if word}
    spellings = {*words.values(), *(word.lower() for word in words.values())}
    vectors = read_vectors(path, spellings).vectors
    rows = {
        token: vector
        for token, word in words.items()
        if (vector := vectors.get(word, vectors.get(word.lower()))) is not None
    }
    if not rows:
        raise DataError(
            f"{path}: none of the {len(words)} words of the tokenizer is in it; "
            "take vectors of the corpus's language"
        )
    new_rows = np.stack(list(rows.values()))
    size = _root_mean_square(new_rows)
    if size == 0:
        raise DataError(
            f"{path}: the vectors of all {len(rows)} words found are zero; "
            "take another file"
        )
    new_table = np.array(table, "float32")
    new_table[list(rows)] = new_rows * (_root_mean_square(table) / size)
    return InitialTable(new_table, replaced_words=len(rows), words=len(words))


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype="float64"))))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Opens a file for reading and undoes its compression.

    Errors of reading inside the block are raised as errors that name the file.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(files.open_read(path))
            is_compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if is_compressed:
                unzipped = gzip.GzipFile(fileobj=file)
                yield stack.enter_context(io.BufferedReader(unzipped))
            else:
                yield file
        except (FileNotFoundError, IsADirectoryError) as error:
            raise UsageError(
                f"{path}: there is no such file of word vectors; "
                "name one that was downloaded"
            ) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{path}: its compression is damaged ({error}); download it again"
            ) from error


def _recognise(file: IO[bytes], path: str) -> _Layout:
    """The layout of a file, from its first lines."""
    line = file.readline(_BLOCK)
    if header := _HEADER.fullmatch(line):
        count, width = int(header[1]), int(header[2])
        _, *numbers = file.readline(_BLOCK).split() or [b""]
        # A few bytes of binary numbers may look like a number in text by chance, but
        # not three times in one line.
        numbers_as_text = sum(map(_is_number, numbers))
        return _Layout(count, width, is_binary=numbers_as_text < min(width, 3))
    _, *numbers = line.split() or [b""]
    while numbers and not _is_number(numbers[0]):  # the word has spaces
        del numbers[0]
    if not numbers or not all(map(_is_number, numbers)):
        raise DataError(
            f"{path}: it begins neither with two whole numbers "
            "nor with a word and its numbers; take a file of word vectors"
        )
    return _Layout(None, len(numbers), is_binary=False)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _text_rows(
    file: IO[bytes], layout: _Layout, wanted: Collection[bytes], path: str
) -> Iterator[tuple[bytes, np.ndarray]]:
    """The wanted words of a text file and their vectors.

    Every line is checked and counted; only those of wanted words are read as numbers.
    """
    has_header = layout.rows is not None
    rows = 0
    lines = iter(lambda: file.readline(_BLOCK), b"")
    for number, line in enumerate(lines, 2 if has_header else 1):
        if not (line := line.strip(b" \t\r\n")):
            continue
        rows += 1
        word, *numbers = line.rsplit(None, layout.width)
        # GloVe has a few words with spaces in them, but none that ends in a number.
        has_more_numbers = b" " in word and _is_number(word.split()[-1])
        if len(numbers) < layout.width or has_more_numbers:
            source = "the header says" if has_header else "the first has"
            raise DataError(
                f"{path}: line {number} has {len(line.split()) - 1} numbers, "
                f"and {source} {layout.width}; download it again, or correct it"
            )
        if word not in wanted:
            continue
        try:
            # A number that is too large becomes infinite, which the caller refuses.
            with np.errstate(over="ignore"):
                vector = np.array([float(field) for field in numbers], "float32")
        except ValueError as error:
            raise DataError(
                f"{path}: line {number}: {error}; "
                "download it again, or correct the line"
            ) from error
        yield word, vector
    if has_header and rows != layout.rows:
        raise DataError(
            f"{path}: it holds {rows} words, and its header says {layout.rows}; "
            "download it again, or correct the header"
        )


def _binary_rows(
    file: IO[bytes], layout: _Layout, wanted: Collection[bytes], path: str
) -> Iterator[tuple[bytes, np.ndarray]]:
    """The wanted words of a binary file and their vectors."""
    vector_bytes = 4 * layout.width
    promised = f"the {layout.rows} words of {layout.width} numbers that its header says"
    buffer = b""
    start = 0  # of the next word in the buffer
    for number in range(layout.rows or 0):
        space = buffer.find(b" ", start)
        if space < 0 or space + vector_bytes >= len(buffer):
            buffer = buffer[start:] + file.read(_BLOCK + vector_bytes)
            start = 0
            space = buffer.find(b" ")
            if space < 0 or space + vector_bytes >= len(buffer):
                raise DataError(
                    f"{path}: it ends in word {number + 1} of {promised}; "
                    "download it again"
                )
        word = buffer[start:space].lstrip(b"\n")
        if word in wanted:
            numbers = buffer[space + 1 : space + 1 + vector_bytes]
            yield word, np.frombuffer(numbers, "<f4").astype("float32")
        start = space + 1 + vector_bytes
    if (buffer[start:] + file.read(2)).strip(b"\n"):
        raise DataError(f"{path}: more follows behind {promised}; download it again")
