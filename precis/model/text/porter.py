"""Stems of English words by Porter's algorithm, with the extensions of NLTK.

Published ROUGE figures use these stems (Porter 1980). NLTK itself is not used, because
it takes much longer to import and to stem a word.

    relational   step 2   ATIONAL -> ATE   relate     step 5a   E ->   relat
"""


def _pairs(text: str) -> dict[str, str]:
    """Parses replacements such as `sses:ss s:`."""
    return dict(pair.split(":") for pair in text.split())


# The exceptions of NLTK: words with irregular stems.
_IRREGULAR = _pairs("""
    sky:sky skies:sky dying:die lying:lie tying:tie news:news howe:howe innings:inning
    inning:inning outings:outing outing:outing cannings:canning canning:canning
    proceed:proceed exceed:exceed succeed:succeed
""")
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxz0123456789"
_LETTERS = str.maketrans(
    _VOWELS + _CONSONANTS, "v" * len(_VOWELS) + "c" * len(_CONSONANTS)
)
_Rules = tuple[tuple[str, ...], dict[str, str]]


def _rules(text: str) -> _Rules:
    """Parses suffixes, in the order in which they are tried, and their replacements."""
    replacements = _pairs(text)
    return tuple(replacements), replacements


_STEP_1A = _rules("sses:ss ies:i ss:ss s:")
_STEP_2 = _rules("""
    ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e
    ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful
    ousness:ous aliti:al iviti:ive biliti:ble fulli:ful
""")
_STEP_3 = _rules("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_STEP_4 = _rules(
    "al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ion: ou: ism: ate: "
    "iti: ous: ive: ize:"
)


def _replace(word: str, rules: _Rules, least_measure: int) -> str:
    """Replaces the first suffix of the rules that the word has, if the measure of the
    rest is at least `least_measure`. No further suffix is tried.
    """
    suffixes, replacements = rules
    if not word.endswith(suffixes):  # a fast check: most words have none
        return word
    suffix = next(filter(word.endswith, suffixes))
    rest = word.removesuffix(suffix)
    return rest + replacements[suffix] if _measure(rest) >= least_measure else word


def stem(word: str) -> str:
    """The stem of a word of the letters a to z and the digits 0 to 9."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    return _step_5(_step_4(_replace(_step_2(_step_1(word)), _STEP_3, 1)))


def _pattern(word: str) -> str:
    """The word with c for each consonant and v for each vowel.

    A y after a consonant is a vowel:

    syzygy  ->  cvcvcv
    """
    pattern = word.translate(_LETTERS)
    if "y" not in pattern:
        return pattern
    kinds = []
    kind = ""
    for letter in pattern:
        if letter == "y":
            kind = "v" if kind == "c" else "c"
        else:
            kind = letter
        kinds.append(kind)
    return "".join(kinds)


def _measure(word: str) -> int:
    """The number of consonants that follow a vowel: m in [C](VC){m}[V]."""
    return _pattern(word).count("vc")


def _ends_cvc(word: str) -> bool:
    """Whether a word ends in a short syllable: `hop`, but not `snow`, `box` or `tray`.

    In NLTK `at` is a short syllable too.
    """
    pattern = _pattern(word)
    return (pattern[-3:] == "cvc" and word[-1] not in "wxy") or pattern == "vc"


def _step_1(word: str) -> str:
    """Plurals, -ed and -ing, and a final y."""
    is_short = word.endswith("ies") and len(word) == 4
    word = _step_1b(word[:-1] if is_short else _replace(word, _STEP_1A, 0))
    if word.endswith("y") and len(word) > 2 and _pattern(word[:-1])[-1] == "c":
        word = word[:-1] + "i"
    return word


def _step_1b(word: str) -> str:
    """-ed and -ing."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    rest = word.removesuffix("ed" if word.endswith("ed") else "ing")
    if rest == word or "v" not in _pattern(rest):
        return word
    word = rest
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1] == word[-2:-1] and _pattern(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace(word, _STEP_2, 1)


def _step_4(word: str) -> str:
    has_other_ion = word.endswith("ion") and word[-4:-3] not in ("s", "t")
    return word if has_other_ion else _replace(word, _STEP_4, 2)


def _step_5(word: str) -> str:
    """A final e, and one l of a final ll."""
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_cvc(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
