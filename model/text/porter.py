"""Stems of English words by Porter's algorithm, with the extensions of NLTK.

Published ROUGE figures use these stems (Porter 1980). NLTK itself is not used: it
imports SciPy and scikit-learn, which takes seconds in each process that scores a
summary, and it is slower.

    relational   step 2   ATIONAL -> ATE   relate     step 5a   E ->   relat
"""

# The exceptions of NLTK: words whose stem no rule gives.
_IRREGULAR = {
    "sky": "sky",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "howe": "howe",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}
_LETTERS = str.maketrans(
    {
        character: "v" if character in "aeiou" else "c"
        for character in "abcdefghijklmnopqrstuvwxz0123456789"
    }
)

# Suffix -> replacement. The first suffix of the word counts, even if its condition does
# not hold.
_STEP_1A = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "fulli": "ful",
}
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_SUFFIXES_1A = tuple(_STEP_1A)
_SUFFIXES_2 = tuple(_STEP_2)
_SUFFIXES_3 = tuple(_STEP_3)
_SUFFIXES_4 = tuple(
    "al ance ence er ic able ible ant ement ment ent ion ou ism "
    "ate iti ous ive ize".split()
)


def stem(word: str) -> str:
    """The stem of a word of the letters a to z and the digits 0 to 9."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    return _step_5(_step_4(_step_3(_step_2(_step_1(word)))))


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
    """How often a consonant follows a vowel: m in [C](VC){m}[V]."""
    return _pattern(word).count("vc")


def _ends_cvc(word: str) -> bool:
    """Whether a word ends in a short syllable: `hop`, but not `snow`, `box` or `tray`.

    In NLTK `at` is a short syllable too.
    """
    pattern = _pattern(word)
    return (pattern[-3:] == "cvc" and word[-1] not in "wxy") or pattern == "vc"


def _suffix(word: str, suffixes: tuple[str, ...]) -> str | None:
    """The first suffix that ends the word."""
    if not word.endswith(suffixes):  # Most have none, which this says at once.
        return None
    return next(suffix for suffix in suffixes if word.endswith(suffix))


def _step_1(word: str) -> str:
    """Plurals, -ed and -ing, and a final y."""
    if word.endswith("ies") and len(word) == 4:
        word = word[:-1]
    elif suffix := _suffix(word, _SUFFIXES_1A):
        word = word.removesuffix(suffix) + _STEP_1A[suffix]
    word = _step_1b(word)
    if word.endswith("y") and len(word) > 2 and _pattern(word[:-1])[-1] == "c":
        word = word[:-1] + "i"
    return word


def _step_1b(word: str) -> str:
    """-ed and -ing."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = _suffix(word, ("ed", "ing"))
    if suffix is None or "v" not in _pattern(word.removesuffix(suffix)):
        return word
    word = word.removesuffix(suffix)
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1] == word[-2:-1] and _pattern(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    suffix = _suffix(word, _SUFFIXES_2)
    if suffix is not None:
        rest = word.removesuffix(suffix)
        return rest + _STEP_2[suffix] if _measure(rest) > 0 else word
    return word[:-1] if word.endswith("logi") and _measure(word[:-3]) > 0 else word


def _step_3(word: str) -> str:
    suffix = _suffix(word, _SUFFIXES_3)
    if suffix is None:
        return word
    rest = word.removesuffix(suffix)
    return rest + _STEP_3[suffix] if _measure(rest) > 0 else word


def _step_4(word: str) -> str:
    suffix = _suffix(word, _SUFFIXES_4)
    if suffix is None:
        return word
    rest = word.removesuffix(suffix)
    if _measure(rest) < 2:
        return word
    if suffix == "ion" and rest[-1] not in "st":
        return word
    return rest


def _step_5(word: str) -> str:
    """A final e, and one l of a final ll."""
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_cvc(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
