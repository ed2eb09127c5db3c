"""Capitalised names in a summary that its source does not hold."""

import functools
import re
from collections.abc import Iterable, Sequence, Set

from precis.model.quality.dates import MONTHS, WEEKDAYS
from precis.model.quality.numerals import FIRST_OF_SHARES, SCALES, SMALL, TENS
from precis.model.quality.openings import OPENINGS
from precis.model.quality.tokens import plain, tokens
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS

_stem = functools.lru_cache(maxsize=200_000)(stem)

# The text before the first word of a sentence or a quotation.
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;]|--|[-–—] |[\"“”‘`(\[])\W*$|(?:^|\s)['’]\W*$"
)
_TITLES = "mr mrs ms miss dr prof sir dame lord lady rev".split()
# Units are not compared: `Rs8,000` may be `8,000 rupees` in the source.
_UNITS = "am pm rs inr usd eur gbp jpy cny rmb aud cad nzd chf hkd sgd krw".split()
# Capitalised words that are no names, or are checked as numbers or dates.
NO_NAMES = frozenset(
    [
        *STOP_WORDS,
        *_TITLES,
        *_UNITS,
        *SMALL,
        *TENS,
        *SCALES,
        *FIRST_OF_SHARES,
        *MONTHS,
        *WEEKDAYS,
    ]
)
# Endings that distinguish a name from its people or things: America, American; Russian,
# Russians.
_ENDINGS = ("s", "i", "is", "n", "ns", "an", "ans", "ian", "ians")
_MIN_STEM_LETTERS = 4
# Abbreviated names, and the words of each that a source may have instead.
_ABBREVIATIONS = {
    "us": ("states", "america", "american", "americans"),
    "uk": ("kingdom", "britain", "british"),
    "un": ("nations",),
    "eu": ("european", "europe"),
}


def vocabulary_of(words: Iterable[str]) -> set[str]:
    """The words of a source in all forms in which a summary may name them.

    obama's   also obama, s
    o'brien   also o, brien, obrien
    u.s       also us, u, s
    """
    vocabulary = set(words)
    for word in [word for word in vocabulary if not word.isalpha()]:
        if ("." in word or "'" in word) and not word[0].isdigit():
            key = _key(word)
            vocabulary.update((key, key.replace("'", ""), *re.split("[.']", word)))
    return vocabulary


def unsupported_names(
    lines: Sequence[str],
    words_by_line: Sequence[Sequence[str]],
    vocabulary: Set[str],
) -> list[str]:
    """The sequences of capitalised words that the source does not hold, as the summary
    writes them: `Angela Merkel`.

    Args:
      lines: of the summary, readable.
      words_by_line: the words of each line.
      vocabulary: `vocabulary_of` the source.
    """
    names: list[str] = []
    for line, words in zip(lines, words_by_line, strict=True):
        if vocabulary >= set(words):  # as in every extract
            continue
        name_end = -1  # where the last unsupported word ends
        for token in tokens(plain(line)):
            start, end = token.span()
            if line[start].islower() or not line[start].isalpha():
                continue
            key = _key(token[0].casefold())
            if _is_no_name(key) or _is_known(key, vocabulary):
                continue
            if _SENTENCE_START.search(line, 0, start) and _is_ordinary(
                token[0], key, lines, vocabulary
            ):
                continue
            if name_end >= 0 and not line[name_end:start].strip(" -"):
                names[-1] += line[name_end:end]
            else:
                names.append(line[start:end])
            name_end = end
    return names


def _key(word: str) -> str:
    """The form in which a name is looked up: without points and possessive."""
    return word.replace(".", "").removesuffix("'s")


def _is_no_name(key: str) -> bool:
    return key in NO_NAMES or key.split("'")[0] in STOP_WORDS


def _is_known(key: str, vocabulary: Set[str]) -> bool:
    """Whether the source has a name, also with another ending or in full."""
    if key in vocabulary or not vocabulary.isdisjoint(_ABBREVIATIONS.get(key, ())):
        return True
    if len(key) >= _MIN_STEM_LETTERS and any(
        key + ending in vocabulary for ending in _ENDINGS
    ):
        return True
    return any(
        key.endswith(ending)
        and len(rest := key.removesuffix(ending)) >= _MIN_STEM_LETTERS
        and rest in vocabulary
        for ending in _ENDINGS
    )


def _is_ordinary(
    word: str, key: str, lines: Iterable[str], vocabulary: Set[str]
) -> bool:
    """Whether the first word of a sentence is capitalised only because it is the first.

    It is if it often begins sentences, if the summary has it in lower case too, or if
    the source has a word of the same stem.
    """
    if word[1:] != word[1:].lower():
        return False
    if key in OPENINGS or any(
        key == token[0] for line in lines for token in tokens(plain(line))
    ):
        return True
    key_stem = _stem(key)
    return any(
        other[:2] == key[:2] and _stem(other) == key_stem for other in vocabulary
    )
