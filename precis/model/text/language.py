"""The language of a text, as a code of ISO 639: `en`, `de`, `zh`.

Rules for a language, such as its stop words, are chosen by this code.

English is recognised by its stop words, a hundred times as fast as by the detector. For
other texts the detector is py3langid, after Lui and Baldwin (2012).
"""

import functools
import re
import tempfile
from typing import Any

from precis.model.errors import UsageError
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import count_unspaced, words

ENGLISH = "en"
_CHARACTERS = 500  # read from the beginning of a text: about 80 words
# English prose has at least this share of stop words, and several certain stop words,
# which few other languages have. Other stop words, such as `was` and `over`, are Dutch
# too, and a German text may name `The Lord of the Rings`.
_MIN_STOP_WORDS = 0.25
# Certain stop words that show English, by the characters read. More is read if the
# beginning is a list or has many names.
_MIN_CERTAIN = {_CHARACTERS: 4, 4 * _CHARACTERS: 8}
_CERTAIN = frozenset(
    "the and that with his from which they this were would their".split()
)
# Shorter texts have no language; a letter of a script without spaces counts as three.
_MIN_CHARACTERS = 40
# Languages with the rules of another: Egyptian and Moroccan Arabic, Bosnian, Malay,
# Norwegian, Wu and Cantonese.
_BASE = {
    **{"ary": "ar", "arz": "ar", "bs": "hr", "sh": "hr", "ms": "id"},
    **{"nb": "no", "nn": "no", "wuu": "zh", "yue": "zh"},
}
# Codes of three letters for languages with rules, where ISO 639 has one of two letters;
# and codes of countries.
_TWO_LETTERS = {
    other: code
    for other, _, code in (
        pair.partition(":")
        for pair in """
    afr:af ara:ar arm:hy baq:eu bel:be ben:bn bul:bg bur:my cat:ca ces:cs chi:zh cmn:zh
    cze:cs dan:da deu:de dut:nl ell:el eng:en epo:eo est:et eus:eu fas:fa fin:fi fra:fr
    fre:fr ger:de gle:ga glg:gl gre:el heb:he hin:hi hrv:hr hun:hu hye:hy ice:is ind:id
    isl:is ita:it jpn:ja khm:km kor:ko lao:lo lav:lv lit:lt mac:mk may:ms mkd:mk msa:ms
    mya:my nep:ne nld:nl nno:nn nob:nb nor:no per:fa pol:pl por:pt ron:ro rum:ro rus:ru
    slk:sk slo:sk slv:sl sot:st spa:es srp:sr swe:sv tam:ta tha:th tur:tr ukr:uk urd:ur
    vie:vi zho:zh mar:mr kat:ka geo:ka sqi:sq alb:sq tgl:tl
    jp:ja cn:zh kr:ko cz:cs dk:da gr:el ua:uk vn:vi
    """.split()
    )
}
# Of the language; related languages, as Croatian and Bosnian, share the probability.
_MIN_PROBABILITY = 0.5


def language_of(text: str) -> str | None:
    """The language of a normalised text, two letters if it is in ISO 639-1; None if the
    text is too short or no language is more likely than all others together.
    """
    for characters, least in _MIN_CERTAIN.items():
        first = words(text[:characters])
        certain = sum(map(_CERTAIN.__contains__, first))
        stop_words = sum(map(STOP_WORDS.__contains__, first))
        if certain >= least and stop_words >= _MIN_STOP_WORDS * len(first):
            return ENGLISH
    beginning = text[:_CHARACTERS]
    if (
        len(beginning) + 2 * count_unspaced(beginning[:_MIN_CHARACTERS])
        < _MIN_CHARACTERS
    ):
        return None
    # The detector learned from texts in small letters: it takes capitals for others.
    if 2 * sum(map(str.isupper, beginning)) > sum(map(str.isalpha, beginning)):
        beginning = beginning.lower()
    language, _ = load_detector().classify(beginning)
    # `und` means that the detector is unsure, `zxx` that the text is not a language.
    return None if language in ("und", "zxx") else str(language)


def is_english(language: str | None) -> bool:
    """Whether the rules for English apply: also to a text whose language is unknown."""
    return language in (None, ENGLISH)


def base_language(language: str) -> str:
    """The language whose rules apply: `no` for `nb` and `nn`, `zh` for `yue`."""
    return _BASE.get(language, language)


def check_language(given: str | None) -> None:
    """Checks the language that a user gives, if any.

    Raises:
      UsageError: it is not a code such as `de`, but `de-AT`, `DE`, `deu` or `German`.
    """
    code = re.split("[-_]", str(given).lower())[0]
    code = _TWO_LETTERS.get(code, code)
    is_code = re.fullmatch("[a-z]{2,3}", code)
    if given and not (is_code and given == code):
        way_out = "leave it out to detect the language of each document"
        raise UsageError(
            "`language=` must be a code of ISO 639 in small letters, such as de, nb or "
            f"zh, not {given!r}; {f'did you mean {code}?' if is_code else way_out}"
        )


@functools.cache
def load_detector() -> Any:
    """Loads the detector, once in each process: it takes half a second and 100 MB.

    Raises:
      OSError: the folder of temporary files is full; it unpacks its model there.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        return LanguageIdentifier.from_model_file(
            MODEL_FILE, norm_probs=True, min_confidence=_MIN_PROBABILITY
        )
    except OSError as error:  # it unpacks its model there, but does not name the folder
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
