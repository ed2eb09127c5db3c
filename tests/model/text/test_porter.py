"""The stemmer, by hand and against NLTK's."""

import random

from nltk.stem.porter import PorterStemmer

from precis.model.text.porter import stem

# The examples of Porter (1980), each with its stem, and extensions of NLTK.
EXAMPLES = (
    "caresses:caress ponies:poni cats:cat feed:feed agreed:agre plastered:plaster "
    "motoring:motor sing:sing conflated:conflat hopping:hop falling:fall filing:file "
    "happy:happi relational:relat conditional:condit rational:ration operator:oper "
    "hopefulness:hope electrical:electr replacement:replac adoption:adopt rate:rate "
    "probate:probat cease:ceas controlling:control rolls:roll "
    "ties:tie tied:tie dying:die skies:sky news:news enjoy:enjoy flies:fli fly:fli"
)
SUFFIXES = (
    "sses ies ss s ied eed ed ing y ational tional enci anci izer bli "
    "abli alli entli eli ousli ization ation ator alism iveness fulness "
    "ousness aliti iviti biliti fulli logi icate ative alize iciti ical "
    "ful ness al ance ence er ic able ible ant ement ment ent sion tion "
    "ion ou ism ate iti ous ive ize e ll at bl iz"
).split()


def test_stems_by_hand_and_of_made_up_words():
    examples = dict(pair.split(":") for pair in EXAMPLES.split())
    assert {word: stem(word) for word in examples} == examples
    draw, nltk = random.Random(5), PorterStemmer()
    words = [
        "".join(draw.choices("aeioubcdlstzywx1", k=draw.randint(0, 5)))
        + "".join(draw.choices(SUFFIXES, k=draw.randint(0, 3)))
        for _ in range(5_000)
    ]
    assert {word: stem(word) for word in words} == {w: nltk.stem(w) for w in words}
