"""The words of a text, and of many texts at once.

Most chunks of text between spaces occur many times in a corpus. So Arrow numbers the
chunks of some hundred documents, and Python processes each distinct chunk once.

    texts         "Rain fell ."  "Mid-May ( rain ) fell"
    distinct      Rain  fell  .  Mid-May  (  rain  )
    numbers       0 1 2          3 4 5 6 1
    offsets       0              3              8
    join_words    "rain fell"    "mid-may rain fell"
"""

import dataclasses
import functools
import importlib
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

# A word has letters and digits; between two of them also an apostrophe or a hyphen,
# between digits a point or comma, between single letters a point.
_PATTERN = (
    r"{alnum}+(?:['.,-](?:"
    r"(?<=['-]){alnum}+|(?<=\d.)\d{alnum}*|(?<=\b{letter}\.){letter}\b))*"
)
WORD = re.compile(_PATTERN.format(alnum=r"[^\W_]", letter=r"[^\W\d_]"))
# The same for ASCII, in half the time.
_ASCII_WORD = re.compile(_PATTERN.format(alnum="[a-z0-9]", letter="[a-z]"), re.ASCII)
# Marks between words, in texts that are otherwise ASCII.
_TYPOGRAPHIC_MARKS = "“”‘–—…•£€"
# Letters of scripts without spaces between words, with their vowel signs.
_CJK = r"[\p{Han}\p{Hiragana}\p{Katakana}ー]"
_SOUTH_EAST_ASIAN = r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_UNSPACED = rf"[[{_CJK}{_SOUTH_EAST_ASIAN}]&&[\p{{L}}\p{{Mn}}\p{{Mc}}\p{{Nl}}ー]]"
# Letters for which the patterns above are not enough: combining marks and all later
# characters. A text without them is faster to read.
_BEYOND_LATIN = re.compile("[\u0300-\U0010ffff]")
# The blocks of Unicode with letters of `_UNSPACED`; `re` is ten times as fast.
UNSPACED_BLOCKS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u31ff\u3400-\u9fff"
    "\ua9e0-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00016fe0-\U0001b2ff"
    "\U00020000-\U0003ffff]"
)
# The average length of a word of ICU, in characters.
_WORD_CHARACTERS = {_CJK: 1.6, _SOUTH_EAST_ASIAN: 4.0}
# Letters and digits as wide as Chinese characters, and narrow kana.
_WIDE = re.compile("[\uff01-\uffef]+")
# Characters within words that show only how to draw or to break them: zero-width
# non-joiner and joiner, soft hyphen, selectors of an emoji or its text.
_INVISIBLE = "\u200c\u200d\xad\ufe0e\ufe0f"


def words(text: str) -> list[str]:
    """The words of a text in lower case and NFC, without punctuation.

    A word consists of letters with their marks, and of digits. An apostrophe or hyphen
    between two of them belongs to the word (`don't`, `well-known`), and so do a point
    or comma between digits (`4.5m`, `1,200`) and a point between single letters
    (`u.s`). A typographic apostrophe counts as a plain apostrophe.

    Texts in Chinese characters, kana, Thai, Lao, Khmer or Burmese have no spaces
    between words. Their words are from ICU if the extra `languages` is installed, and
    otherwise all pairs of neighbouring characters: `东京都` gives `东京` and `京都`.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    for mark in _TYPOGRAPHIC_MARKS:
        text = text.replace(mark, " ")
    if text.isascii():
        return _ASCII_WORD.findall(text)
    if not _BEYOND_LATIN.search(text):
        return WORD.findall(text.replace("\xad", ""))
    patterns = _patterns()
    # `i̇` is the lower case of the Turkish İ.
    text = drop_invisible(text).replace("i̇", "i")
    if not (UNSPACED_BLOCKS.search(text) or _WIDE.search(text)):
        return patterns.word.findall(text)
    # Not the whole text in NFKC, which cuts the Thai vowel ำ in two.
    text = _WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    found: list[str] = []
    for word in patterns.word.findall(text.lower()):
        is_unspaced = patterns.unspaced.match(word)
        found += _split_unspaced(word) if is_unspaced else (word,)
    return found


def count_joined_words(joined: str) -> int:
    """The number of words, given `words` joined by spaces.

    Pairs of characters, where the extra `languages` is not installed, are converted to
    words by the average length of a word: 1.6 characters in Chinese and Japanese, 4 in
    Thai, Lao, Khmer and Burmese.
    """
    count = joined.count(" ") + bool(joined)
    if joined.isascii() or not UNSPACED_BLOCKS.search(joined):
        return count
    if word_breaker() is None:
        for pattern, characters in _patterns().unspaced_words:
            pairs = len(pattern.findall(joined))
            count -= pairs - math.ceil(pairs / characters)
    return count


def number_of_words(text: str) -> int:
    """The number of words of a text, by `count_joined_words`."""
    return count_joined_words(" ".join(words(text)))


def drop_invisible(text: str) -> str:
    """Removes the invisible characters within words."""
    for character in _INVISIBLE:
        text = text.replace(character, "")
    return text


def count_unspaced(text: str) -> int:
    """The number of letters of scripts without spaces between words."""
    return len(_patterns().unspaced.findall(text))


def ngram_size(words: int, joined: str) -> int:
    """The size of n-grams that are as long as a number of words: larger if `words`
    returns pairs of characters, as `count_joined_words` explains.

    Args:
      words: the number of words.
      joined: the words of a text, joined by spaces.
    """
    found = joined.count(" ") + bool(joined)
    return round(words * found / (count_joined_words(joined) or 1)) or words


class _Patterns(NamedTuple):
    word: Any
    unspaced: Any
    unspaced_words: tuple[tuple[Any, float], ...]


@functools.cache
def _patterns() -> _Patterns:
    """The patterns for texts that are not ASCII, compiled when they are needed."""
    import regex

    alnum = rf"[\p{{L}}\p{{N}}\p{{Mn}}\p{{Mc}}--[{_UNSPACED}]]"
    letter = rf"[\p{{L}}\p{{Mn}}\p{{Mc}}--[{_UNSPACED}]]"
    spaced = _PATTERN.format(alnum=alnum, letter=letter)
    flags = regex.VERSION1
    return _Patterns(
        regex.compile(rf"{_UNSPACED}+|(?!\p{{M}}){spaced}", flags),
        regex.compile(_UNSPACED, flags),
        tuple(
            (regex.compile(rf"(?<!\S){script}", flags), characters)
            for script, characters in _WORD_CHARACTERS.items()
        ),
    )


def _split_unspaced(run: str) -> list[str]:
    """The words of a run of letters without spaces."""
    breaker = word_breaker()
    if breaker is not None:
        return list(breaker(run, "en"))
    return list(map("".join, itertools.pairwise(run))) if len(run) > 1 else [run]


@functools.cache
def word_breaker() -> Any:
    """The class of ICU that finds words; None without the extra `languages`."""
    try:
        return importlib.import_module("icu4py.breakers").WordBreaker
    except ModuleNotFoundError:
        return None


def word_breaker_version() -> str:
    """The package that finds words, with its version; empty if there is none."""
    import importlib.metadata

    try:
        return f"icu4py {importlib.metadata.version('icu4py')}"
    except importlib.metadata.PackageNotFoundError:
        return ""


ValueT = TypeVar("ValueT")

_MAX_CACHED = 200_000  # chunks
_MAX_CACHED_CHARACTERS = 40
_BATCH_CHARACTERS = 4 << 20


class ChunkCache(Generic[ValueT]):
    """Caches the values that a function computes for chunks.

    A full cache is replaced by an empty one. Threads may share it: a dictionary only
    grows, and the value of a chunk is the same in every thread.
    """

    def __init__(self, compute: Callable[[Sequence[str]], Iterable[ValueT]]) -> None:
        """Stores the function; it returns the values of chunks in their order."""
        self._compute = compute
        self._known: dict[str, ValueT] = {}

    def values_of(self, chunks: Sequence[str]) -> list[ValueT]:
        """The value of each chunk."""
        if len(self._known) >= _MAX_CACHED:
            self._known = {}
        known = self._known
        values: list[Any] = list(map(known.get, chunks))
        unknown = [place for place, value in enumerate(values) if value is None]
        computed = self._compute([chunks[place] for place in unknown])
        for place, value in zip(unknown, computed, strict=True):
            values[place] = value
            if len(chunks[place]) <= _MAX_CACHED_CHARACTERS:
                known[chunks[place]] = value
        return values


@dataclasses.dataclass(frozen=True, eq=False)
class Chunks:
    """The chunks of T texts, C in all.

    Attributes:
      distinct: the distinct chunks.
      numbers: int32 [C], the index of each chunk in `distinct`.
      offsets: int32 [T + 1], where the chunks of each text begin in `numbers`.
    """

    distinct: list[str]
    numbers: np.ndarray
    offsets: np.ndarray

    @functools.cached_property
    def distinct_words(self) -> list[str]:
        """The words of each distinct chunk, joined by spaces."""
        return _WORDS.values_of(self.distinct)


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


def sums_before(counts: np.ndarray) -> np.ndarray:
    """The sum of the counts before each index, and of all counts, int64 [N + 1]."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def in_order_of_texts(
    chunks: Chunks, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the values, such as token ids, of the chunks of texts.

    Args:
      chunks: the chunks of T texts.
      lengths: int64, the number of values of each distinct chunk. The values of all
          distinct chunks follow each other, in the order of `chunks.distinct`.

    Returns:
      The indices of the values of all texts, int64 [M], and where the indices of each
      text begin, int64 [T + 1].
    """
    counts = lengths[chunks.numbers]
    before = sums_before(counts)
    shifts = sums_before(lengths)[chunks.numbers] - before[:-1]
    return np.arange(before[-1]) + np.repeat(shifts, counts), before[chunks.offsets]


def join_words(chunks: Chunks) -> list[str]:
    """The words of each text, joined by spaces."""
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = chunks.distinct_words
    has_words = np.fromiter(map(bool, joined), bool, len(joined))
    is_kept = has_words[chunks.numbers]
    kept_before = sums_before(is_kept).astype(np.int32)
    kept = pa.DictionaryArray.from_arrays(
        chunks.numbers[is_kept], pa.array(joined, pa.string())
    )
    lists = pa.ListArray.from_arrays(
        kept_before[chunks.offsets], kept.dictionary_decode()
    )
    texts: list[str] = pc.binary_join(lists, " ").to_pylist()  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    return texts


_WORDS = ChunkCache(lambda chunks: map(" ".join, map(words, chunks)))
