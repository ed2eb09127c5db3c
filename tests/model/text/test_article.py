"""Articles: derived values by hand, computed once, and shared by renamed copies."""

import hashlib
import random
import sys
import unicodedata

from precis.model.text.article import Article
from precis.model.text.boilerplate import story_start
from precis.model.text.document import Document, TextSettings
from precis.model.text.normalization import one_line

TEXT = "(CNN) -- Rain fell.  It was cold.\r\nNobody came."
DOCUMENT = Document("d1", "train", TEXT, "Rain.", {"kind": "storm"})
# printf '(CNN) -- Rain fell. It was cold.\nNobody came.' | sha256sum
TEXT_SHA256 = "de952937edfe84075cddb83c299b38c7e186aa7b8a9be4aa6c0824a307c17fbc"

# Pieces of random texts: boilerplate that is stripped, text that resembles it, and
# characters that normalisation removes, composes or takes for white space.
PIECES = [
    *("(CNN)", "(CNN) --", "( cnn ) --", "( ~ cnn )", "(The Hollywood Reporter)"),
    *("LONDON, England (CNN) --", "new delhi ( cnn )", "( any name ) --"),
    *("By . Jane Roe .", "by . jane roe . and richard doe .", "Follow @@janeroe ."),
    *("PUBLISHED: . 09:12 EST, 3 May 2014 . | .", "(AP) -", "(Reuters) —"),
    *("Rain fell.", "rain", "(Rain)", "by", "London", *"éE▁␤-.", "--"),
    *("\u0301", "\u0338", "\u0327", "\u200d", "\u200b", "\ufeff", "\xad", "\ud800"),
    *(" ", "  ", "\t", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1f", "\x85"),
    *("\xa0", "\u1680", "\u2000", "\u2001", "\u2028", "\u2029", "\u3000", "\x00"),
]


def test_derived_values_by_hand():
    article = Article(DOCUMENT)
    assert article.document is DOCUMENT
    assert article.story_start == 9
    assert article.normalised == "(CNN) -- Rain fell. It was cold.\nNobody came."
    assert article.body == "Rain fell. It was cold. Nobody came."
    assert article.sentences == (
        (9, 19, "Rain fell."),
        (21, 33, "It was cold."),
        (35, 47, "Nobody came."),
    )
    assert article.joined_words == "cnn rain fell it was cold nobody came"
    assert not article.has_split_words
    assert article.content_sha256 == TEXT_SHA256


def test_derived_values_without_cleaning():
    article = Article(DOCUMENT, TextSettings("none"))
    assert article.body == DOCUMENT.article != article.normalised
    assert article.story_start == 0
    assert article.sentences[0] == (0, 19, "(CNN) -- Rain fell.")
    for sentence in article.sentences:
        assert DOCUMENT.article[sentence.start : sentence.end] == sentence.text
    assert article.sentence_lines[0] == "(CNN) -- Rain fell."
    raw = hashlib.sha256(DOCUMENT.article.encode()).hexdigest()
    assert article.content_sha256 == raw != TEXT_SHA256


def test_a_word_is_divided_where_a_sentence_ends_within_it():
    # A line without white space is cut after 100,000 characters.
    article = Article.from_text("x" * 100_000 + "y Rain.")
    assert [sentence.start for sentence in article.sentences] == [0, 100_000]
    assert article.has_split_words
    assert article.joined_words == "x" * 100_000 + " y rain"


def test_the_body_is_that_of_the_story_alone():
    """For random texts, and whatever character comes first."""
    draw = random.Random(11)
    texts = [
        draw.choice(["", " "]).join(draw.choices(PIECES, k=draw.randint(1, 9)))
        for _ in range(6_000)
    ]
    assert sum(story_start(text) > 0 for text in texts) > 1_000
    kinds = ("Mn", "Mc", "Me", "Cc", "Cf", "Zs", "Zl")
    characters = map(chr, range(sys.maxunicode + 1))
    odd = [each for each in characters if unicodedata.category(each) in kinds]
    assert len(odd) > 2_000
    texts += [
        f"{head}{each}x" for each in odd for head in ("(CNN)", "By . Jo Roe .\u2000")
    ]
    for text in texts:
        assert Article.from_text(text).body == one_line(text[story_start(text) :]), text
