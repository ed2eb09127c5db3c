"""Tests of what a summary shares with its source: fragments compared with the pseudo
code of the paper, n-grams compared with sets.
"""

import random

import pytest

from precis.model.quality.measures import (
    ArticleWords,
    excess_repetition_rate,
    extractive_fragments,
    novel_ngrams,
    repetition_rate,
)


def pseudo_code(article, summary):
    """F(A, S) as in figure 3 of Grusky et al. (2018), statement by statement: the
    length of each fragment.

    One sign is that of the authors' program: a fragment is longer if |f| < i' - i, so
    that single words count.
    """
    fragments = []
    i = j = 0
    while i < len(summary):
        longest = 0
        while j < len(article):
            if summary[i] == article[j]:
                i2, j2 = i, j
                while (summary[i2:] and article[j2:]) and summary[i2] == article[j2]:
                    i2 += 1
                    j2 += 1
                longest = max(longest, i2 - i)
                j = j2
            else:
                j += 1
        if longest:
            fragments.append(longest)
        i += max(longest, 1)
        j = 0
    return fragments


def test_fragments_are_those_of_the_pseudo_code():
    draw = random.Random(3)
    lengths = set()
    for _ in range(400):
        article = [draw.choice("abcd") for _ in range(draw.randint(0, 40))]
        summary = [draw.choice("abcd") for _ in range(draw.randint(0, 14))]
        expected = pseudo_code(article, summary)
        words = ArticleWords(" ".join(article))
        assert extractive_fragments(summary, words) == expected
        lengths.update(expected)
    assert lengths >= {1, 2, 3, 4, 5}


def novel_of_words(sentences, article):
    return novel_ngrams(sentences, ArticleWords(" ".join(article)), (1, 2, 3, 4))


def ngrams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def test_novel_ngrams_are_those_of_sets():
    draw = random.Random(5)
    for _ in range(300):
        article = [draw.choice("abc") for _ in range(draw.randint(1, 30))]
        sentences = [
            [draw.choice("abcd") for _ in range(draw.randint(1, 7))]
            for _ in range(draw.randint(1, 3))
        ]
        for n, percent in enumerate(novel_of_words(sentences, article), start=1):
            known = set(ngrams(article, n))
            grams = [gram for sentence in sentences for gram in ngrams(sentence, n)]
            unknown = sum(gram not in known for gram in grams)
            expected = 100 * unknown / len(grams) if grams else None
            assert percent == pytest.approx(expected)


def test_repetition():
    # he-said-he and said-he-said, each twice
    assert repetition_rate("he said he said he said".split()) == 0.5
    assert repetition_rate("a b c d".split()) == 0.0
    assert repetition_rate(["a", "b"]) == 0.0


def test_a_refrain_of_the_article_is_no_excess():
    summary = "he said he said he said".split()

    def excess(article):
        return excess_repetition_rate(summary, ArticleWords(article))

    assert excess("he said so") == 0.5
    # The article has he-said-he twice too.
    assert excess("he said he did he said he went") == 0.25
    assert excess("he said he said he said he said") == 0.0
    assert excess_repetition_rate(["a"], ArticleWords("")) == 0.0
