"""The words of a text, and of many texts at once.

texts       "Mid-May ( rain ) fell."   "-"   "Rain"
joined      "mid-may rain fell"        ""    "rain"
distinct    mid-may  rain  fell
numbers     0  1  2                          1
offsets     0                          3     3     4
"""

import functools
import importlib
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from precis.model.text.chunks import split_chunks

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
# Kinds of bytes: of words, and of marks that join two parts of a word.
_LETTER, _DIGIT, _JOINER, _POINT, _COMMA, _UNDERSCORE = 1, 2, 4, 8, 16, 32
_OF_WORDS, _MARKS = _LETTER | _DIGIT, _JOINER | _POINT | _COMMA
_KIND_OF = {
    **dict.fromkeys(b"abcdefghijklmnopqrstuvwxyz", _LETTER),
    **dict.fromkeys(b"0123456789", _DIGIT),
    **dict.fromkeys(b"'-", _JOINER),
    **{ord("."): _POINT, ord(","): _COMMA, ord("_"): _UNDERSCORE},
}
_KINDS = bytes(_KIND_OF.get(byte, 0) for byte in range(256))
_SPACE = ord(" ")
_BORDER = b"\n\n"  # so that every byte has two neighbours on each side


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


class ChunkCache(Generic[ValueT]):
    """Caches the values that a function computes for short texts.

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


def sums_before(counts: np.ndarray) -> np.ndarray:
    """The sum of the counts before each index, and of all counts, int64 [N + 1]."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


class TextWords(NamedTuple):
    """The words of T texts, W in all: the `words` of the chunks between spaces.

    Attributes:
      joined: the words of each text, joined by spaces.
      distinct: the distinct words.
      numbers: int32 [W], the index of each word in `distinct`.
      offsets: int64 [T + 1], where the words of each text begin in `numbers`.
    """

    joined: list[str]
    distinct: list[str]
    numbers: np.ndarray
    offsets: np.ndarray


def read_words(texts: Sequence[str]) -> TextWords:
    """Finds the words of texts."""
    import pyarrow as pa  # here, because the help of a command does not need it

    is_ascii = [text.isascii() for text in texts]
    parts = list(texts)
    others = [place for place, each in enumerate(is_ascii) if not each]
    of_others = _words_by_chunk([texts[place] for place in others]) if others else ()
    for place, part in zip(others, of_others, strict=True):
        parts[place] = part
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    lengths[others] = [len(parts[place].encode()) for place in others]
    data = _BORDER + "\n".join(parts).encode().lower() + _BORDER
    # Where the text after each text begins.
    ends = np.cumsum(lengths + 1) + len(_BORDER)
    characters = np.frombuffer(data, np.uint8)
    is_word = _word_characters(np.frombuffer(data.translate(_KINDS), np.uint8))
    if others:  # only words are left, whose letters may have several bytes
        inner = slice(len(_BORDER), ends[-1])
        of_ascii = np.repeat(is_ascii, lengths + 1)
        is_word[inner] = np.where(of_ascii, is_word[inner], characters[inner] > _SPACE)
    # Each word with the character after it, which becomes a space.
    is_kept = is_word.copy()
    is_kept[1:] |= is_word[:-1]
    kept = np.where(is_word, characters, _SPACE)[is_kept]
    word_ends = np.flatnonzero(kept == _SPACE) + 1
    starts = np.concatenate([[0], word_ends])
    column = pa.StringArray.from_buffers(
        len(word_ends), pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(kept)
    ).dictionary_encode()
    distinct = "".join(column.dictionary.to_pylist()).split(" ")[:-1]
    places = np.searchsorted(np.flatnonzero(is_kept & ~is_word), ends)
    offsets = np.concatenate([[0], places])
    borders = starts[offsets].tolist()
    content = kept.tobytes()
    for place, (start, end) in enumerate(itertools.pairwise(borders)):
        if is_ascii[place]:
            parts[place] = content[start:end].rstrip().decode()
    return TextWords(parts, distinct, column.indices.to_numpy(), offsets)


def _words_by_chunk(texts: Sequence[str]) -> list[str]:
    """The words of each text, joined by spaces, from the words of its chunks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = split_chunks(texts)
    joined = _WORDS.values_of(chunks.distinct)
    has_words = np.fromiter(map(bool, joined), bool, len(joined))
    is_kept = has_words[chunks.numbers]
    starts = sums_before(is_kept).astype(np.int32)[chunks.offsets]
    kept = pa.DictionaryArray.from_arrays(
        chunks.numbers[is_kept], pa.array(joined, pa.string())
    )
    lists = pa.ListArray.from_arrays(starts, kept.dictionary_decode())
    return pc.binary_join(lists, " ").to_pylist()  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.


def _word_characters(kinds: np.ndarray) -> np.ndarray:
    """Whether each byte belongs to a word, by the pattern of `words`: bool [N].

    Args:
      kinds: uint8 [N], the kinds of the bytes.
    """
    is_word = (kinds & _OF_WORDS) != 0
    marks = np.flatnonzero(kinds & _MARKS)
    mark, before, after = kinds[marks], kinds[marks - 1], kinds[marks + 1]
    joins = np.where(
        mark == _JOINER,
        is_word[marks - 1] & is_word[marks + 1],
        (before == _DIGIT) & (after == _DIGIT),
    )
    # `u.s`: a single letter on each side.
    around = kinds[marks - 2] | kinds[marks + 2]
    is_alone = (before == _LETTER) & (after == _LETTER)
    is_alone &= (around & (_OF_WORDS | _UNDERSCORE)) == 0
    joins |= (mark == _POINT) & is_alone
    is_word[marks[joins]] = True
    return is_word


_WORDS = ChunkCache(lambda chunks: map(" ".join, map(words, chunks)))
