"""Tests of the stemmer against NLTK's."""

import random

from nltk.stem.porter import PorterStemmer

from precis.model.text.porter import stem

SUFFIXES = (
    "sses ies ss s ied eed ed ing y ational tional enci anci izer bli "
    "abli alli entli eli ousli ization ation ator alism iveness fulness "
    "ousness aliti iviti biliti fulli logi icate ative alize iciti ical "
    "ful ness al ance ence er ic able ible ant ement ment ent sion tion "
    "ion ou ism ate iti ous ive ize e ll at bl iz"
).split()


def test_stems_by_hand():
    # The examples of Porter (1980), each with its stem after all steps.
    examples = dict(
        pair.split(":")
        for pair in (
            "caresses:caress ponies:poni cats:cat feed:feed agreed:agre "
            "plastered:plaster motoring:motor sing:sing conflated:conflat "
            "hopping:hop falling:fall filing:file happy:happi "
            "relational:relat conditional:condit rational:ration operator:oper "
            "hopefulness:hope electrical:electr replacement:replac "
            "adoption:adopt probate:probat rate:rate cease:ceas "
            "controlling:control rolls:roll"
        ).split()
    )
    assert {word: stem(word) for word in examples} == examples


def test_the_extensions_of_nltk():
    expected = {
        "ties": "tie",
        "tied": "tie",
        "dying": "die",
        "skies": "sky",
        "news": "news",
        "enjoy": "enjoy",
        "flies": "fli",
        "fly": "fli",
    }
    assert {word: stem(word) for word in expected} == expected


def test_made_up_words_have_the_stems_of_nltk():
    generator = random.Random(5)
    nltk = PorterStemmer()
    made_up = [
        "".join(generator.choices("aeioubcdlstzywx1", k=generator.randint(0, 5)))
        for _ in range(5_000)
    ]
    made_up = [
        start + "".join(generator.choices(SUFFIXES, k=generator.randint(0, 3)))
        for start in made_up
    ]
    different = [
        (word, stem(word), nltk.stem(word))
        for word in made_up
        if stem(word) != nltk.stem(word)
    ]
    assert different == []
