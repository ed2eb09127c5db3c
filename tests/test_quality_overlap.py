"""What a summary shares with its source: fragments beside the pseudo code of the paper,
n-grams beside sets of them.
"""

import itertools
import random

import pytest

from precis.model.quality.overlap import (
    Fragment,
    coverage,
    density,
    excess_repetition_rate,
    extractive_fragments,
    novel_ngrams,
    repetition_rate,
    word_positions,
)


def fragments_of(summary, article):
    return extractive_fragments(
        summary.split(), article.split(), word_positions(article.split())
    )


def pseudo_code(article, summary):
    """F(A, S) as figure 3 of Grusky et al. 2018 has it, statement for statement;
    lengths, in order.

    One mark is that of the authors' program: a fragment is longer if |f| < i' - i, so
    that single words count.
    """
    found, i, j = [], 0, 0
    while i < len(summary):
        longest = 0
        while j < len(article):
            if summary[i] == article[j]:
                i2, j2 = i, j
                while (
                    i2 < len(summary)
                    and j2 < len(article)
                    and summary[i2] == article[j2]
                ):
                    i2, j2 = i2 + 1, j2 + 1
                if longest < i2 - i:
                    longest = i2 - i
                j = j2
            else:
                j += 1
        if longest:
            found.append((i, longest))
        i, j = i + max(longest, 1), 0
    return found


def test_fragments_by_hand():
    article = "rain fell on the coast on monday and on tuesday"
    assert fragments_of("rain fell on monday", article) == [
        Fragment(0, 3),
        Fragment(3, 1),
    ]
    # `on monday and` is longer than the `on the` that comes first.
    assert fragments_of("snow on monday and friday", article) == [Fragment(1, 3)]
    assert fragments_of("", article) == [] and fragments_of("snow", "") == []


def test_the_search_goes_on_behind_a_match_as_the_paper_has_it():
    assert fragments_of("a a b", "a a a b") == [Fragment(0, 2), Fragment(2, 1)]


def test_fragments_are_those_of_the_pseudo_code():
    draw = random.Random(3)
    lengths = set()
    for _ in range(400):
        article, summary = (
            [draw.choice("abcd") for _ in range(draw.randint(0, length))]
            for length in (40, 14)
        )
        expected = pseudo_code(article, summary)
        assert (
            extractive_fragments(summary, article, word_positions(article)) == expected
        )
        lengths.update(length for _, length in expected)
    assert lengths >= {1, 2, 3, 4, 5}


def test_coverage_and_density_by_hand():
    found = fragments_of(
        "rain fell on snowy monday", "rain fell on the coast on monday"
    )
    assert coverage(found, 5) == 4 / 5 and density(found, 5) == (9 + 1) / 5
    assert coverage([], 0) is None and density([], 0) is None and coverage([], 3) == 0.0


def novel(summary, article):
    sentences = [line.split() for line in summary.splitlines()]
    words, positions = article.split(), word_positions(article.split())
    return novel_ngrams(
        sentences,
        extractive_fragments(list(itertools.chain(*sentences)), words, positions),
        words,
        positions,
    )


def test_novel_ngrams_by_hand():
    # 1-grams: snow. 2-grams: coast-on is there; on-snow and snow-fell are not.
    assert novel("coast on snow fell", "rain fell on the coast on monday") == [
        25.0,
        pytest.approx(200 / 3),
        100.0,
        100.0,
    ]
    assert (
        novel("rain", "rain fell") == [0.0, None, None, None]
        and novel("", "rain") == [None] * 4
    )


def test_sentences_of_the_article_have_nothing_novel_where_they_meet():
    article = "rain fell here snow fell there"
    assert novel("snow fell there\nrain fell here", article) == [0.0, 0.0, 0.0, None]
    assert novel("snow fell there rain fell here", article)[1] == 20.0


def test_novel_ngrams_are_those_of_sets():
    draw = random.Random(5)
    for _ in range(300):
        article = [draw.choice("abc") for _ in range(draw.randint(1, 30))]
        sentences = [
            [draw.choice("abcd") for _ in range(draw.randint(1, 7))]
            for _ in range(draw.randint(1, 3))
        ]
        positions = word_positions(article)
        fragments = extractive_fragments(
            list(itertools.chain(*sentences)), article, positions
        )
        for n, found in enumerate(
            novel_ngrams(sentences, fragments, article, positions), start=1
        ):
            known = {tuple(article[i : i + n]) for i in range(len(article) - n + 1)}
            own = [
                tuple(s[i : i + n]) for s in sentences for i in range(len(s) - n + 1)
            ]
            assert found == (
                pytest.approx(100 * sum(gram not in known for gram in own) / len(own))
                if own
                else None
            )


def test_repetition_by_hand():
    assert (
        repetition_rate("he said he said he said".split()) == 0.5
    )  # he-said-he and said-he-said, each twice
    assert (
        repetition_rate("a b c d".split()) == 0.0 and repetition_rate(["a", "b"]) == 0.0
    )


def test_a_refrain_of_the_article_is_no_excess():
    summary = "he said he said he said".split()

    def excess(article):
        return excess_repetition_rate(
            summary, article.split(), word_positions(article.split())
        )

    assert excess("he said so") == 0.5
    assert (
        excess("he said he did he said he went") == 0.25
    )  # the article has he-said-he twice too
    assert excess("he said he said he said he said") == 0.0
    assert excess_repetition_rate(["a"], [], {}) == 0.0
