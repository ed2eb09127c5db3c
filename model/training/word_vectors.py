"""Pre-trained word vectors, as word2vec (Mikolov et al. 2013), GloVe and fastText write
them: the rows an embedding table begins with.

A file of any size is read through once, and only the vectors of the wanted words are
kept. Which format a file has is seen in its content:

    3000000 300                    the header of word2vec: how many words, of how many numbers; GloVe writes none
    in 0.0703 0.0869 ... -0.0123   text: a word and its numbers, one word a line
    in.^6....                      binary: a word, a space, its numbers as little-endian float32, and perhaps a line break
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
_BLOCK = 1 << 20  # bytes that are read at once, and more than any line or word has


class Vectors(NamedTuple):
    """What a file says of some words.

    Attributes:
      width: the numbers of a vector.
      found: word -> vector, float32 [width], of the wanted words that the file has.
    """

    width: int
    found: dict[str, np.ndarray]


class InitialTable(NamedTuple):
    """An embedding table that begins with word vectors.

    Attributes:
      table: float32 [V, D].
      found: how many tokens have a vector.
      of: how many tokens were looked up.
    """

    table: np.ndarray
    found: int
    of: int


class _Layout(NamedTuple):
    """How a file is written: how many words its header says (None: it has none), of how
    many numbers, and whether they are binary.
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
    """The vectors of some words. Where a word stands twice, the first vector counts.

    Args:
      path: a file in one of the formats above, as it is or compressed by gzip.
      wanted: the words, spelt as in the file. What is not UTF-8 in the file is none of
          them.

    Raises:
      UsageError: there is no such file.
      DataError: the file is no file of word vectors, cut off, not what its header says,
          or a wanted vector is not made of finite numbers.
    """
    words = {word.encode(): word for word in wanted}
    found: dict[str, np.ndarray] = {}
    with _opened(path) as file:
        layout = _recognise(file, path)
    with _opened(path) as file:
        if layout.rows is not None:
            file.readline(_BLOCK)
        rows = _binary_rows if layout.is_binary else _text_rows
        for spelling, vector in rows(file, layout, words.keys(), path):
            if not np.isfinite(vector).all():
                raise DataError(
                    f"{path}: the vector of {words[spelling]!r} is not finite; remove the word from the file, or take another"
                )
            found.setdefault(words[spelling], vector)
    return Vectors(layout.width, found)


def initial_table(
    table: np.ndarray, tokenizer: "Tokenizer | ImportedTokenizer", path: str
) -> InitialTable:
    """Replaces rows of a fresh embedding table by the vectors of the words that their
    tokens stand for.

    A token is looked up as it is spelt and then in lower case: ▁He as He, then as he.
    What is looked up, and counts in `of`, are the tokens that stand for a word or a
    punctuation mark by themselves: not the special tokens, the bare space, and the
        parts of words.

    The vectors are multiplied by one number, which makes the root mean square of the
    rows that are replaced that of the whole fresh table, so that a network begins with
    embeddings of the size that it was made for: where it scales them (times sqrt(D)),
    the table is small. Nothing else is done to them; they are not centred.

    Args:
      table: float32 [V, D]; stays as it is.
      tokenizer: says which word each id stands for.
      path: as in `read_vectors`.

    Raises:
      UsageError: there is no such file, or its vectors are not as wide as the table.
      DataError: as in `read_vectors`; or no token is in the file, or all vectors found
          are zero.
    """
    width = table.shape[1]
    if (theirs := read_width(path)) != width:
        raise UsageError(
            f"{path}: its vectors have {theirs} numbers, and the embedding has {width}; train with --width {theirs}"
        )
    words = {token: word for token, word in enumerate(tokenizer.words) if word}
    found = read_vectors(
        path, {spelling for word in words.values() for spelling in (word, word.lower())}
    ).found
    rows = {
        token: vector
        for token, word in words.items()
        if (vector := found.get(word, found.get(word.lower()))) is not None
    }
    if not rows:
        raise DataError(
            f"{path}: none of the {len(words)} words of the tokenizer is in it; take vectors of the corpus's language"
        )
    vectors = np.stack(list(rows.values()))
    if not (size := _root_mean_square(vectors)):
        raise DataError(
            f"{path}: the vectors of all {len(rows)} words found are zero; take another file"
        )
    made = np.array(table, "float32")
    made[list(rows)] = vectors * (_root_mean_square(table) / size)
    return InitialTable(made, found=len(rows), of=len(words))


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype="float64"))))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """A file for reading, its compression undone; what is wrong with it is said with
    its name.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(files.open_read(path))
            is_compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            yield (
                stack.enter_context(io.BufferedReader(gzip.GzipFile(fileobj=file)))
                if is_compressed
                else file
            )
        except (FileNotFoundError, IsADirectoryError) as error:
            raise UsageError(
                f"{path}: there is no such file of word vectors; name one that was downloaded"
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
        # A byte or two of binary numbers may look like a number in text by chance;
        # three times in one line they do not.
        return _Layout(
            count, width, is_binary=sum(map(_is_number, numbers)) < min(width, 3)
        )
    _, *numbers = line.split() or [b""]
    while numbers and not _is_number(numbers[0]):  # the word has spaces
        del numbers[0]
    if not numbers or not all(map(_is_number, numbers)):
        raise DataError(
            f"{path}: it begins neither with two whole numbers nor with a word and its numbers; take a file of word vectors"
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
    """The wanted words of a text file and their vectors; every line is counted, but
    only theirs are read as numbers.
    """
    has_header, rows = layout.rows is not None, 0
    for number, line in enumerate(
        iter(lambda: file.readline(_BLOCK), b""), 1 + has_header
    ):
        if not (line := line.strip(b" \t\r\n")):
            continue
        rows += 1
        word, *numbers = line.rsplit(None, layout.width)
        # GloVe has a few words with spaces in them; a number is none of their parts.
        if len(numbers) < layout.width or (
            b" " in word and _is_number(word.split()[-1])
        ):
            expected = (
                f"the {'header says' if has_header else 'first has'} {layout.width}"
            )
            raise DataError(
                f"{path}: line {number} has {len(line.split()) - 1} numbers, and {expected}; download it again, or correct it"
            )
        if word in wanted:
            try:
                with np.errstate(
                    over="ignore"
                ):  # too large is not finite, and refused as that
                    vector = np.array([float(field) for field in numbers], "float32")
            except ValueError as error:
                raise DataError(
                    f"{path}: line {number}: {error}; download it again, or correct the line"
                ) from error
            yield word, vector
    if has_header and rows != layout.rows:
        raise DataError(
            f"{path}: it holds {rows} words, and its header says {layout.rows}; download it again, or correct the header"
        )


def _binary_rows(
    file: IO[bytes], layout: _Layout, wanted: Collection[bytes], path: str
) -> Iterator[tuple[bytes, np.ndarray]]:
    """The wanted words of a binary file and their vectors."""
    size, buffer, place = 4 * layout.width, b"", 0
    for number in range(layout.rows or 0):
        space = buffer.find(b" ", place)
        if space < 0 or space + size >= len(buffer):
            buffer, place = buffer[place:] + file.read(_BLOCK + size), 0
            space = buffer.find(b" ")
            if space < 0 or space + size >= len(buffer):
                raise DataError(
                    f"{path}: it ends in word {number + 1} of the {layout.rows} words of {layout.width} numbers that its header says; "
                    "download it again"
                )
        word, place = buffer[place:space].lstrip(b"\n"), space + 1 + size
        if word in wanted:
            yield (
                word,
                np.frombuffer(buffer, "<f4", layout.width, space + 1).astype("float32"),
            )
    if (buffer[place:] + file.read(2)).strip(b"\n"):
        raise DataError(
            f"{path}: more follows behind the {layout.rows} words of {layout.width} numbers that its header says; download it again"
        )
