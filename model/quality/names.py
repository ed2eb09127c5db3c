"""Capitalised names in a summary that its source does not hold."""

import functools
import re
from collections.abc import Iterable, Sequence, Set

from precis.model.quality.dates import MONTHS, WEEKDAYS
from precis.model.quality.numerals import SCALES, SMALL, TENS
from precis.model.quality.openings import OPENINGS
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import words

_stem = functools.lru_cache(maxsize=200_000)(stem)

# A word that begins with a letter other than a to z, with the points of `U.S` and the
# apostrophe of `O'Brien`, cut at hyphens.
_CAPITALISED = re.compile(
    r"(?<![^\W_])[^\W\d_a-z][^\W_]*(?:['’][^\W_]+)*(?:(?<=\b[^\W\d_])\.[^\W\d_]\b)*"
)
# The text before the first word of a sentence or a quotation.
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;]|--|[-–—] |[\"“”‘`(\[])\W*$|(?:^|\s)['’]\W*$"
)
_TITLES = "mr mrs ms miss dr prof sir dame lord lady rev".split()
# Capitalised words that are no names, or are checked as numbers or dates.
_NO_NAMES = frozenset(
    [*STOP_WORDS, *_TITLES, *SMALL, *TENS, *SCALES, *MONTHS, *WEEKDAYS]
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


def unsupported_names(sentences: Sequence[str], vocabulary: Set[str]) -> list[str]:
    """The sequences of capitalised words that the source does not hold, as the summary
    writes them: `Angela Merkel`.

    Args:
      sentences: of the summary.
      vocabulary: the words of the source in all forms.
    """
    names: list[str] = []
    for sentence in sentences:
        name_end = -1  # where the last unsupported word ends
        for match in _CAPITALISED.finditer(sentence):
            key = _key(match[0])
            if not key or _is_known(key, vocabulary):
                continue
            starts_sentence = _SENTENCE_START.search(sentence, 0, match.start())
            if starts_sentence and _is_ordinary(match[0], key, sentences, vocabulary):
                continue
            if name_end >= 0 and not sentence[name_end : match.start()].strip(" -"):
                names[-1] += sentence[name_end : match.end()]
            else:
                names.append(match[0])
            name_end = match.end()
    return names


def _key(word: str) -> str:
    """The form in which a name is looked up: lower case, without points and possessive;
    empty for a word that is no name.
    """
    if word[0].islower():  # a lower-case letter other than a to z
        return ""
    key = "".join(words(word)).replace(".", "").removesuffix("'s")
    return "" if key in _NO_NAMES or key.split("'")[0] in STOP_WORDS else key


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
    word: str, key: str, sentences: Iterable[str], vocabulary: Set[str]
) -> bool:
    """Whether the first word of a sentence is capitalised only because it is the first.

    It is if it often begins sentences, if the summary has it in lower case too, or if
    the source has a word of the same stem.
    """
    if word[1:] != word[1:].lower():
        return False
    if key in OPENINGS or any(
        re.search(rf"\b{re.escape(key)}\b", sentence) for sentence in sentences
    ):
        return True
    key_stem = _stem(key)
    return any(
        other[:2] == key[:2] and _stem(other) == key_stem for other in vocabulary
    )
