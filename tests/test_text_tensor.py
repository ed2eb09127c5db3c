"""The cleaning of text as TensorFlow operations: the same strings as from `model.text`,
however messy the text.
"""

import random
import unicodedata

import pytest
import tensorflow as tf

from precis.model.inference import text_operations
from precis.model.text.article import Article
from precis.model.text.boilerplate import boilerplate_spans
from precis.model.text.normalization import normalise

# Messy texts are made of these: boilerplate, words that look like it, and characters
# that are cleaned away or that RE2 reads differently.
CREDITS = (
    "(CNN)|(CNN) --|( cnn )|( ~ cnn ) --|(The Hollywood Reporter)|(Any Name) --|"
    "( miami ) --|( ap )|( reuters ) --"
)
PLACES = (
    "London|LONDON, England|new delhi|New Delhi|miami , florida| , |the|The|de la|de|"
    "watch|a|said|al.|St. Louis|it's|network's|channel|ap|Zürich|Å"
)
MARKS = "(|)|-|--|–|—|’|²|Ⅷ|漢|é|É|🙂|▁|␤|Rain fell.|a b"
BYLINES = (
    "By . Jane Roe .|by . jane roe for mailonline . and richard doe .|By .|and X Y .|"
    "by . Émile Ñ .|Follow @@janeroe .|follow @ é .|"
    "PUBLISHED: . 09:12 EST, 3 May 2014 . | .|UPDATED: . 09:12 EST , ٣ May 2014 ."
)
WHITE = " \t\n\v\x00\x1c\x1f\x7f\x85\xa0\xad"
BITS = [bit for bits in (CREDITS, PLACES, MARKS, BYLINES) for bit in bits.split("|")]
BITS += [f"({first}{'x' * count}) --" for first in "É1x" for count in (37, 38, 39)]
BITS += [*WHITE, "  ", "\r\n", "e\u0301"]
BITS += map(chr, (0x2000, 0x2028, 0x3000, 0x200D, 0xFEFF, 0xE0020))


def messy_texts(count: int) -> list[str]:
    draw = random.Random(7)
    return [
        "".join(
            draw.choice(BITS) + draw.choice(["", " ", " "])
            for _ in range(draw.randint(1, 9))
        )
        for _ in range(count)
    ]


# Longer than the part that is searched for boilerplate, which ends within some of it.
LONG = [
    "(CNN) -- " * count + "x" * more + " Rain fell."
    for count in range(109, 113)
    for more in range(12)
]
TEXTS = ["", " \n", "(CNN)", "(CNN) -- ", *LONG, *messy_texts(800)]


def strings(tensor: tf.Tensor) -> list[str]:
    return [text.decode() for text in tensor.numpy()]


@pytest.mark.parametrize("strips", [True, False])
def test_bodies_are_those_of_the_text_module(strips):
    graph = tf.function(
        lambda texts: text_operations.body_tensor(texts, strip_boilerplate=strips),
        autograph=False,
    )
    assert sum(bool(boilerplate_spans(text)) for text in TEXTS) > 150
    assert strings(graph(tf.constant(TEXTS))) == [
        Article.from_text(text, strip_boilerplate=strips).body for text in TEXTS
    ]


def test_normalised_texts_are_those_of_the_text_module():
    lines = [
        f"{first}\n{second}" for first, second in zip(TEXTS, TEXTS[1:], strict=False)
    ]
    assert strings(text_operations.normalise_tensor(tf.constant(lines))) == [
        normalise(text) for text in lines
    ]


def test_every_character_is_cleaned_alike():
    """All marks, symbols, punctuation, spaces and control characters, and some letters;
    most characters are letters.
    """
    known = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs", "Lo", "So")
        or code % 97 == 0
        and unicodedata.category(chr(code)) not in ("Cn", "Cs")
    ]
    assert len(known) > 8_000
    texts = [f"a{character}e\u0301 {character}" for character in known]
    assert strings(text_operations.body_tensor(tf.constant(texts))) == [
        Article.from_text(text).body for text in texts
    ]


def test_bodies_by_hand():
    texts = [
        "Z\u00fcrich (CNN)\u00a0-- Rain\r\n\tfell on \u0663 May.\x00",
        b"(CNN) -- caf\xe9",
    ]
    assert strings(text_operations.body_tensor(tf.constant(texts))) == [
        "Rain fell on \u0663 May.",
        "caf\ufffd",
    ]
    datelines = ["watch paris ( cnn ) -- a", "paris ( cnn ) -- a"]
    assert strings(text_operations.body_tensor(tf.constant(datelines))) == [
        "watch paris ( cnn ) -- a",
        "a",
    ]


def test_no_texts():
    assert strings(text_operations.body_tensor(tf.constant([], tf.string))) == []
