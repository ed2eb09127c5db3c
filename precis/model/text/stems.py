"""The terms of words in languages other than English.

    French     l'économie, économique    économ
    Turkish    türkiye'nin               türkiye
    Korean     정부는, 정부가            정부

Stems are from the Snowball stemmers (https://snowballstem.org) in the package
PyStemmer. English has its own stems in `porter`.
"""

import re
from collections.abc import Sequence

from precis.model.text.language import base_language

_SNOWBALL = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german"},
    **{"el": "greek", "eo": "esperanto", "es": "spanish", "et": "estonian"},
    **{"eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish"},
    **{"hi": "hindi", "hr": "serbian", "hu": "hungarian", "hy": "armenian"},
    **{"id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali"},
    **{"nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese"},
    **{"ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho"},
    **{"sv": "swedish", "ta": "tamil", "tr": "turkish"},
}
# Parts of a word that are words of their own: elided articles, pronouns and
# prepositions; Turkish endings of names; Korean particles.
_ATTACHED = {
    "ca": "^[dlmnst]'",
    "fr": "^(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)'",
    "it": "^(?:[dlmstv]|un|gl|(?:d|n|sul?|a|da|co)l?l|quest|quell|c)'",
    "ko": "(?<=..)(?:에서는|에서|에게|으로|까지|부터|[은는이가을를의에와과도로만])$",
    "tr": "'.*",
}


def bare_words(words: Sequence[str], language: str) -> list[str]:
    """The words with their case folded, without attached words such as the article in
    `l'homme`.
    """
    folded = [word.casefold() for word in words]
    attached = _ATTACHED.get(base_language(language))
    return [re.sub(attached, "", word) for word in folded] if attached else folded


def stem_words(words: Sequence[str], language: str) -> list[str]:
    """The stems of words; the words themselves if the language has no stemmer."""
    if base_language(language) not in _SNOWBALL:
        return list(words)
    import Stemmer

    # A stemmer is not to be shared by threads, and quickly made.
    stemmer = Stemmer.Stemmer(_SNOWBALL[base_language(language)])
    stems: list[str] = stemmer.stemWords(words)
    return stems
