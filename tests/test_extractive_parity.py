"""Our scores beside those of sumy, both fed the same terms, so that the methods alone
are compared.
"""

import itertools

import numpy as np
import pytest

from precis.model.extractive.methods import lexrank, lsa, luhn, sumbasic, textrank
from precis.model.text.article import Article
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator

pytest.importorskip(
    "sumy", reason="sumy is not installed; pip install 'precis[parity]'"
)

from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
from sumy.summarizers.lex_rank import LexRankSummarizer
from sumy.summarizers.lsa import LsaSummarizer
from sumy.summarizers.luhn import LuhnSummarizer
from sumy.summarizers.sum_basic import SumBasicSummarizer
from sumy.summarizers.text_rank import TextRankSummarizer

pytestmark = pytest.mark.slow

DOCUMENTS = 40


class ContentStems:
    """Gives sumy the stems of words that count, and nothing else."""

    def to_words(self, text):
        return tuple(
            stem(word.removesuffix("'s")) for word in words(text) if is_content(word)
        )


class StemsInPlace:
    """Gives sumy every word: stems, and for each word that does not count a name of its
    own, which no other word shares.
    """

    def __init__(self):
        self._numbers = itertools.count()

    def to_words(self, text):
        return tuple(
            stem(word.removesuffix("'s"))
            if is_content(word)
            else f"#{next(self._numbers)}"
            for word in words(text)
        )


def is_content(word):
    return word not in STOP_WORDS | TOKENISED_FRAGMENTS and not word[0].isdigit()


def document(texts, tokenizer):
    return ObjectDocumentModel(
        [Paragraph([Sentence(text, tokenizer) for text in texts])]
    )


@pytest.fixture(scope="module")
def articles():
    """Documents of the built-in corpus, three at a time, each sentence once: sumy takes
    equal sentences for one.
    """
    found = [
        Article.from_text(generator.document(number).article).sentences
        for number in range(3 * DOCUMENTS)
    ]
    return [
        list(
            dict.fromkeys(
                one.text for one in itertools.chain(*found[first : first + 3])
            )
        )
        for first in range(0, len(found), 3)
    ]


def best(scores, count=3):
    return set(np.argsort(-np.round(scores, 9), kind="stable")[:count].tolist())


def chosen(summarizer, texts):
    return {
        texts.index(str(sentence))
        for sentence in summarizer(document(texts, ContentStems()), 3)
    }


def normal(scores):
    return np.asarray(scores) / np.sum(scores)


def test_lexrank_has_the_cosines_of_sumy(articles):
    summarizer, compared = LexRankSummarizer(), 0
    for texts in articles:
        split = [ContentStems().to_words(text) for text in texts]
        weights, idf = summarizer._compute_tf(split), summarizer._compute_idf(split)
        count = len(texts)
        cosines = np.array(
            [
                [
                    summarizer.cosine_similarity(
                        split[i], split[j], weights[i], weights[j], idf
                    )
                    for j in range(count)
                ]
                for i in range(count)
            ]
        )
        if not cosines.sum(axis=1).all():
            continue  # a sentence of words that weigh nothing has no edges
        compared += 1
        walk = 0.15 / count + 0.85 * cosines / cosines.sum(axis=1, keepdims=True)
        assert normal(lexrank(texts)) == pytest.approx(
            normal(summarizer.power_method(walk, 1e-11)), abs=1e-9
        )
    assert compared > DOCUMENTS / 2


class TextRankWithoutLoops(TextRankSummarizer):
    """sumy's TextRank without the edge of each sentence to itself."""

    epsilon = 1e-11
    # 1e-7 makes the shares shrink a little in each step, so that they never settle
    _ZERO_DIVISION_PREVENTION = 1e-300

    @staticmethod
    def _rate_sentences_edge(words1, words2):
        return (
            0.0
            if words1 is words2
            else TextRankSummarizer._rate_sentences_edge(words1, words2)
        )


def test_textrank_is_that_of_sumy_without_loops(articles):
    for texts in articles:
        summarizer = TextRankWithoutLoops()
        # A sentence without edges: sumy's walk loses what arrives there, and its shares
        # no longer add up to 1.
        has_edges = (
            summarizer._create_matrix(document(texts, ContentStems())).sum(axis=1)
            > 0.999
        )
        texts = [text for text, kept in zip(texts, has_edges, strict=True) if kept]
        assert len(texts) > 5
        found = document(texts, ContentStems())
        ratings = summarizer.rate_sentences(found)
        theirs = normal([ratings[sentence] for sentence in found.sentences])
        assert normal(textrank(texts)) == pytest.approx(theirs, abs=1e-9)
        assert best(textrank(texts)) == best(theirs)


@pytest.mark.filterwarnings("ignore:Number of words")
def test_lsa_is_that_of_sumy_on_the_terms_that_sentences_have_and_the_main_dimensions(
    articles,
):
    summarizer = LsaSummarizer()
    for texts in articles:
        found = document(texts, ContentStems())
        counts = summarizer._create_matrix(found, summarizer._create_dictionary(found))
        present = counts > 0
        weights = np.where(
            present, summarizer._compute_term_frequency(counts.copy()), 0.0
        )
        _, values, vectors = np.linalg.svd(weights, full_matrices=False)
        theirs = summarizer._compute_ranks(
            np.where(values >= values[0] / 2, values, 0.0), vectors
        )
        assert lsa(texts) == pytest.approx(np.array(theirs), abs=1e-9)


class LuhnWithGapsOfFour(LuhnSummarizer):
    max_gap_size = (
        5  # sumy ends a cluster as soon as so many other words stand together
    )


def test_luhn_is_that_of_sumy_with_gaps_of_four(articles):
    dense = 0
    for texts in articles:
        found = document(texts, StemsInPlace())
        summarizer = LuhnWithGapsOfFour()
        significant = summarizer._get_significant_words(found.words)
        theirs = np.array(
            [
                summarizer.rate_sentence(sentence, significant)
                for sentence in found.sentences
            ]
        )
        ours = luhn(texts)
        assert np.where(ours > 1, ours, 0) == pytest.approx(
            np.where(theirs > 1, theirs, 0)
        )  # 1 is a single word, 0 in sumy
        dense += np.count_nonzero(ours > 1)
    assert dense > DOCUMENTS


class SumBasicWithTheTopWord(SumBasicSummarizer):
    """sumy's SumBasic with the rule it leaves out: the sentence must hold the most
    probable word that is left.
    """

    def _find_index_of_best_sentence(self, word_freq, sentences_as_words):
        left = [word for split in sentences_as_words for word in split]
        top = max(
            left, key=lambda word: word_freq[word], default=None
        )  # the first of equal ones
        allowed = [split if top in split else [] for split in sentences_as_words]
        return super()._find_index_of_best_sentence(word_freq, allowed)


def test_sumbasic_is_that_of_sumy_with_the_most_probable_word(articles):
    same = [
        best(sumbasic(texts)) == chosen(SumBasicWithTheTopWord(), texts)
        for texts in articles
    ]
    assert (
        np.mean(same) > 0.9
    )  # words that are equally probable may be met in another order


def test_sumbasic_begins_as_sumy_where_its_sentence_has_the_most_probable_word(
    articles,
):
    compared = 0
    for texts in articles:
        split = [ContentStems().to_words(text) for text in texts]
        counts = {
            word: sum(found.count(word) for found in split)
            for found in split
            for word in found
        }
        (theirs,) = SumBasicSummarizer()(document(texts, ContentStems()), 1)
        index = texts.index(str(theirs))
        tops = [word for word in counts if counts[word] == max(counts.values())]
        if len(tops) == 1 and tops[0] in split[index]:
            compared += 1
            assert best(sumbasic(texts), 1) == {index}
    assert compared >= 5


@pytest.mark.parametrize(
    ("ours", "theirs", "least"),
    [
        (
            lexrank,
            LexRankSummarizer,
            0.4,
        ),  # all weights for weights above 0.1; a damped walk to its end
        (textrank, TextRankSummarizer, 0.65),  # no edge from a sentence to itself
        (lsa, LsaSummarizer, 0.8),  # main dimensions
        (luhn, LuhnSummarizer, 0.6),  # gaps of four words
        (sumbasic, SumBasicSummarizer, 0.6),  # the most probable word
    ],
)
@pytest.mark.filterwarnings("ignore:Number of words")
def test_most_sentences_are_those_of_sumy_as_it_is(articles, ours, theirs, least):
    shares = [
        len(best(ours(texts)) & chosen(theirs(), texts)) / 3 for texts in articles
    ]
    assert least < np.mean(shares) < 1
