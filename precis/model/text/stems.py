"""The terms of words in languages other than English.

    French     l'économie, économique    économ
    Turkish    türkiye'nin               türkiye
    Korean     정부는, 정부가            정부
    Portuguese tornou-se, tornou         torn

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
# prepositions; pronouns behind a hyphen (`a-t-il`, `disse-lhe`); Turkish endings of
# names; Korean particles and the verb `do`. Short words in hiragana are grammar.
_ATTACHED = {
    "ca": "^[dlmnst]'",
    "fr": "^(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)'"
    "|-(?:t-)?(?:ils?|elles?|on|je|tu|[nv]ous|ce|ci|là|mêmes?|l[ae]s?|lui|leur|en|y)$",
    "it": "^(?:[dlmstv]|un|gl|(?:d|n|sul?|a|da|co)l?l|quest|quell|c)'",
    "ja": "^[ぁ-ゟ]{1,2}$",
    "ko": "(?<=..)들?(?:[하되](?:는|고|며|면|여|지|기)|[했됐]다|[한된할될해]|"
    "에서[는도의]?|에게[는서]?|에[는도]|으?로[는써서]?|까지[는도]?|부터|[과와]의|"
    "이?라[고는]|[은는이가을를의에와과도만]|)$",
    "pt": "-(?:se|lhes?|me|te|[nv]os|[ln]?[ao]s?)$",
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
