"""The language of a text, as a code of ISO 639: `en`, `de`, `zh`.

English shows by its stop words, in a hundredth of the time that the detector takes. Of
other texts py3langid, after Lui and Baldwin (2012), tells the language.
"""

import functools
import tempfile
from typing import Any

from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import words

ENGLISH = "en"
# The beginning of a text that is read: some 80 words.
_CHARACTERS = 500
# Prose in English has this share of stop words and more, and several of those that few
# other languages have. Dutch has many others, such as `was` and `over`, and a German
# text may name `The Lord of the Rings`.
_MIN_STOP_WORDS = 0.25
# How many of the certain ones show English, in the beginning and, where that holds a
# list or names, in more of the text.
_MIN_CERTAIN = {_CHARACTERS: 4, 4 * _CHARACTERS: 8}
_CERTAIN = frozenset(
    "the and that with his from which they this were would their".split()
)
# Shorter texts have no language.
_MIN_CHARACTERS = 40
# The probability of the language. Close relatives share it, as Croatian and Bosnian.
_MIN_PROBABILITY = 0.5


def language_of(text: str) -> str | None:
    """The language of a normalised text, of two letters where ISO 639-1 has it; None
    where the text is too short or no language is more likely than all others.
    """
    for characters, least in _MIN_CERTAIN.items():
        first = words(text[:characters])
        certain = sum(map(_CERTAIN.__contains__, first))
        stop_words = sum(map(STOP_WORDS.__contains__, first))
        if certain >= least and stop_words >= _MIN_STOP_WORDS * len(first):
            return ENGLISH
    beginning = text[:_CHARACTERS]
    if len(beginning) < _MIN_CHARACTERS:
        return None
    language, _ = _detector().classify(beginning)
    # `und` is a text of which the detector is unsure, `zxx` one that is no language.
    return None if language in ("und", "zxx") else str(language)


def is_english(language: str | None) -> bool:
    """Whether the rules for English apply: also to a text whose language is unknown."""
    return language in (None, ENGLISH)


@functools.cache
def _detector() -> Any:
    # It takes a second and 100 MB, which a corpus in English does without.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        return LanguageIdentifier.from_model_file(
            MODEL_FILE, norm_probs=True, min_confidence=_MIN_PROBABILITY
        )
    except OSError as error:  # It unpacks its model there, and does not say where.
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
