"""Parity of the scores with sumy. Both get the same terms, so that only the methods are
compared.
"""

import itertools

import numpy as np
import pytest
from support.extractive_documents import scores_of

from precis.model.text.article import Article
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator

pytest.importorskip(
    "sumy", reason="sumy is not installed; `make test-slow` installs it"
)

from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
from sumy.summarizers.lex_rank import LexRankSummarizer
from sumy.summarizers.lsa import LsaSummarizer
from sumy.summarizers.luhn import LuhnSummarizer
from sumy.summarizers.sum_basic import SumBasicSummarizer
from sumy.summarizers.text_rank import TextRankSummarizer

pytestmark = [pytest.mark.parity, pytest.mark.slow]

DOCUMENTS = 20


class ContentStems:
    """A tokenizer for sumy: the stems of the content words."""

    def to_words(self, text):
        return tuple(
            stem(word.removesuffix("'s")) for word in words(text) if is_content(word)
        )


class StemsInPlace:
    """A tokenizer for sumy: the stem of each content word, and a unique name for every
    other word.
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
    """Three documents of the built-in corpus at a time, with each sentence once: sumy
    takes equal sentences for one.
    """
    articles = [
        Article.from_text(generator.document(number).article)
        for number in range(3 * DOCUMENTS)
    ]
    texts = [[sentence.text for sentence in article.sentences] for article in articles]
    return [
        list(dict.fromkeys(itertools.chain(*texts[first : first + 3])))
        for first in range(0, len(texts), 3)
    ]


def best(scores, count=3):
    return set(np.argsort(-np.round(scores, 9), kind="stable")[:count].tolist())


def shares(scores):
    return np.asarray(scores) / np.sum(scores)


def test_lexrank_has_the_cosines_of_sumy(articles):
    summarizer = LexRankSummarizer()
    compared = 0
    for texts in articles:
        split = [ContentStems().to_words(text) for text in texts]
        idf = summarizer._compute_idf(split)
        rows = list(zip(split, summarizer._compute_tf(split), strict=True))
        count = len(texts)
        cosines = [
            summarizer.cosine_similarity(mine, yours, my_weights, your_weights, idf)
            for mine, my_weights in rows
            for yours, your_weights in rows
        ]
        cosines = np.array(cosines).reshape(count, count)
        if not cosines.sum(axis=1).all():
            continue  # a sentence of words that weigh nothing has no edges
        compared += 1
        walk = 0.15 / count + 0.85 * cosines / cosines.sum(axis=1, keepdims=True)
        theirs = shares(summarizer.power_method(walk, 1e-11))
        assert shares(scores_of("lexrank", texts)) == pytest.approx(theirs, abs=1e-9)
    assert compared > DOCUMENTS / 2


class TextRankWithoutLoops(TextRankSummarizer):
    """sumy's TextRank without the edge of each sentence to itself."""

    epsilon = 1e-11
    # With 1e-7 the shares shrink a little in each step and never converge.
    _ZERO_DIVISION_PREVENTION = 1e-300

    @staticmethod
    def _rate_sentences_edge(words1, words2):
        if words1 is words2:
            return 0.0
        return TextRankSummarizer._rate_sentences_edge(words1, words2)


def test_textrank_is_that_of_sumy_without_loops(articles):
    for texts in articles:
        summarizer = TextRankWithoutLoops()
        # In sumy a walk ends at a sentence without edges, so that the shares no longer
        # add up to 1. These sentences are left out.
        matrix = summarizer._create_matrix(document(texts, ContentStems()))
        has_edges = matrix.sum(axis=1) > 0.999
        texts = [text for text, kept in zip(texts, has_edges, strict=True) if kept]
        assert len(texts) > 5
        sumy_document = document(texts, ContentStems())
        ratings = summarizer.rate_sentences(sumy_document)
        theirs = shares([ratings[sentence] for sentence in sumy_document.sentences])
        assert shares(scores_of("textrank", texts)) == pytest.approx(theirs, abs=1e-9)
        assert best(scores_of("textrank", texts)) == best(theirs)


@pytest.mark.filterwarnings("ignore:Number of words")
def test_lsa_is_that_of_sumy_on_the_terms_that_sentences_have_and_the_main_dimensions(
    articles,
):
    summarizer = LsaSummarizer()
    for texts in articles:
        sumy_document = document(texts, ContentStems())
        dictionary = summarizer._create_dictionary(sumy_document)
        counts = summarizer._create_matrix(sumy_document, dictionary)
        frequencies = summarizer._compute_term_frequency(counts.copy())
        weights = np.where(counts > 0, frequencies, 0.0)
        _, values, vectors = np.linalg.svd(weights, full_matrices=False)
        theirs = summarizer._compute_ranks(
            np.where(values >= values[0] / 2, values, 0.0), vectors
        )
        assert scores_of("lsa", texts) == pytest.approx(np.array(theirs), abs=1e-9)


class LuhnWithGapsOfFour(LuhnSummarizer):
    # sumy ends a cluster at so many other words in a row.
    max_gap_size = 5


def test_luhn_is_that_of_sumy_with_gaps_of_four(articles):
    dense = 0
    for texts in articles:
        sumy_document = document(texts, StemsInPlace())
        summarizer = LuhnWithGapsOfFour()
        significant = summarizer._get_significant_words(sumy_document.words)
        theirs = np.array(
            [
                summarizer.rate_sentence(sentence, significant)
                for sentence in sumy_document.sentences
            ]
        )
        ours = scores_of("luhn", texts)
        # A cluster of one word has the score 1, in sumy 0.
        expected = np.where(theirs > 1, theirs, 0)
        assert np.where(ours > 1, ours, 0) == pytest.approx(expected)
        dense += np.count_nonzero(ours > 1)
    assert dense > DOCUMENTS


class SumBasicWithTheTopWord(SumBasicSummarizer):
    """sumy's SumBasic with the rule that it omits: the sentence must contain the most
    probable word of the sentences not yet selected.
    """

    def _find_index_of_best_sentence(self, word_freq, sentences_as_words):
        left = [word for split in sentences_as_words for word in split]
        # Of equally probable words `max` returns the first.
        top = max(left, key=lambda word: word_freq[word], default=None)
        allowed = [split if top in split else [] for split in sentences_as_words]
        return super()._find_index_of_best_sentence(word_freq, allowed)


def test_sumbasic_is_that_of_sumy_with_the_most_probable_word(articles):
    same = []
    for texts in articles:
        theirs = SumBasicWithTheTopWord()(document(texts, ContentStems()), 3)
        chosen = {texts.index(str(sentence)) for sentence in theirs}
        same.append(best(scores_of("sumbasic", texts)) == chosen)
    # Equally probable words may come in another order.
    assert np.mean(same) > 0.9
