"""The words of many texts at once."""

from support.summarize_runs import first_rows

from precis.model.text.words import join_words, split_chunks, words

ODD_TEXTS = [
    "",
    " ",
    "Rain  fell .",
    "Mid-May ( rain ) fell\n\tin the U.S., 4.5m",
    "ΟΔΟΣ Σ. Cafe\u0301 \u0301a don’t",
    "“Rain”—\xa0half–price\u3000£3\x1cKel",
    "中文 句子。\u200bzero\u200djoin İstanbul ß",
    "x" * 60 + "'s",
    "kel\ud800mor \ud800",
]


def test_chunks_are_numbered_by_their_first_place():
    chunks = split_chunks(["Rain fell .", "Mid-May ( rain ) fell"])
    assert chunks.distinct == ["Rain", "fell", ".", "Mid-May", "(", "rain", ")"]
    assert chunks.numbers.tolist() == [0, 1, 2, 3, 4, 5, 6, 1]
    assert chunks.offsets.tolist() == [0, 3, 8]
    assert join_words(chunks) == ["rain fell", "mid-may rain fell"]


def test_the_words_of_many_texts_are_those_of_each():
    assert join_words(split_chunks(ODD_TEXTS)) == [
        " ".join(words(text)) for text in ODD_TEXTS
    ]


def test_words_of_articles_are_the_same_together_and_alone():
    texts = ["(CNN) -- Rain fell.It was cold.\nNobody came --", *ODD_TEXTS]
    lines = [{"article": text} for text in texts]
    together = first_rows(lines, extractive="lead,frequency")
    assert together == [
        first_rows([line], extractive="lead,frequency")[0] for line in lines
    ]
