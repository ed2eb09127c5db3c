"""Chooses sentences of a document with each extractive method."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.extractive.config import BASELINES, NEURAL, ORACLE, SelectionConfig
from precis.model.extractive.methods import TERM_METHODS, score_sentences
from precis.model.extractive.oracle import oracle_sentences
from precis.model.extractive.references import ExpectedReference
from precis.model.extractive.selection import Extract, extract
from precis.model.extractive.terms import Terms, find_terms
from precis.model.rouge import reads
from precis.model.text.article import Article
from precis.model.text.length_limit import line_size
from precis.model.text.words import read_words
from precis.pipelines.tables.columns import round_score

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.selector_bundle import SelectorBundle

# The stage that a failure to choose sentences names.
EXTRACT = "extract"


def neural_scores(
    articles: Sequence[Article],
    selector: "SelectorBundle",
    terms: Sequence[Terms | None],
) -> list[np.ndarray]:
    """Scores the sentences of documents with the selector, for the method `neural`:
    float64 [N] for each document.

    Args:
      articles: the documents.
      selector: the network that scores their sentences.
      terms: the terms of the articles; None if they are not known.
    """
    sentences = [article.sentence_texts for article in articles]
    known = [of_article for of_article in terms if of_article is not None]
    if len(known) < len(articles):
        languages = [article.language for article in articles]
        known = find_terms(sentences, languages=languages)
    return [
        np.array([round_score(score) for score in scores.tolist()])
        for scores in selector.score(sentences, known)
    ]


def find_article_terms(
    articles: Sequence[Article], methods: Sequence[str]
) -> Sequence[Terms | None]:
    """Finds the terms of articles for the methods, and their words for the measures,
    which the articles keep. One pass takes a third of the time of a pass for each.

    Args:
      articles: at most READ_TOGETHER documents.
      methods: the names of the methods.

    Returns:
      The terms of each article; None if no method reads terms.
    """
    pieces = [article.pieces for article in articles]
    sentences = [text for of_article in pieces for text in of_article[:-1]]
    heads = [of_article[-1] for of_article in pieces]
    words = read_words(sentences + heads)
    terms: list[Terms | None] = [None] * len(articles)
    if NEURAL in methods or not TERM_METHODS.keys().isdisjoint(methods):
        texts = [article.sentence_texts for article in articles]
        languages = [article.language for article in articles]
        terms = [*find_terms(texts, languages=languages, words=words)]
    sentence_words = iter(words.joined)
    for article, head in zip(articles, words.joined[len(sentences) :], strict=True):
        body = itertools.islice(sentence_words, len(article.sentences))
        article.keep_words([*body, head])
    return terms


def choose_sentences(
    article: Article,
    neural: np.ndarray | None,
    terms: Terms | None,
    *,
    methods: Sequence[str],
    selection: SelectionConfig,
    expected: ExpectedReference | None = None,
) -> dict[str, list[Extract]]:
    """Chooses sentences of a document with each method, in document order.

    The oracle chooses nothing if the document has no reference that ROUGE can read.

    Args:
      article: the document.
      neural: float64 [N], its `neural_scores`; None if no selector scored it.
      terms: the terms of the article; None if no method reads terms.
      methods: the names of the methods.
      selection: how to choose sentences by their scores.
      expected: the reference as the selector expects it, if the selector has learned to
          expect references.
    """
    texts = article.sentence_texts
    extracts = {}
    for method in methods:
        if method == ORACLE:
            reference, count = article.document.highlights or "", selection.count
            language, picks = article.language, []
            if reads(reference, language):
                picks = oracle_sentences(texts, reference, count, language)
            sizes = [line_size(texts[pick.place]) for pick in picks]
            while not selection.limit.holds(sizes[: len(picks)]):
                picks.pop()
            chosen = [
                Extract(rank, pick.gain, article.sentences[pick.place])
                for rank, pick in enumerate(picks, start=1)
            ]
            extracts[method] = sorted(chosen, key=lambda each: each.sentence.start)
            continue
        scores = neural if method == NEURAL else score_sentences(method, texts, terms)
        assert scores is not None
        extracts[method] = extract(
            article.sentences,
            scores,
            selection=selection,
            is_baseline=method in BASELINES,
            language=article.language,
            expected=expected if method == NEURAL else None,
            known_words=article.words_by_sentence,
        )
    return extracts
