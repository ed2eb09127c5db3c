"""Chooses sentences of a document with each extractive method."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.extractive.config import BASELINES, NEURAL, ORACLE, SelectionConfig
from precis.model.extractive.expected import ExpectedReference
from precis.model.extractive.methods import TERM_METHODS, score_sentences
from precis.model.extractive.oracle import oracle_sentences
from precis.model.extractive.selection import Extract, extract
from precis.model.extractive.terms import Terms, find_terms
from precis.model.rouge import reads
from precis.model.text.article import Article
from precis.model.text.length_limit import line_size
from precis.model.text.words import join_words, split_chunks
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
    # The network learned from English terms and needs them in every language.
    known = {
        n: of_article
        for n, of_article in enumerate(terms)
        if of_article is not None and articles[n].is_english
    }
    others = [n for n in range(len(articles)) if n not in known]
    found = find_terms([sentences[n] for n in others])
    known |= dict(zip(others, found, strict=True))
    of_all = [known[n] for n in range(len(articles))]
    return [
        np.array([round_score(score) for score in scores.tolist()])
        for scores in selector.score(sentences, of_all)
    ]


def read_words(
    articles: Sequence[Article], methods: Sequence[str]
) -> Sequence[Terms | None]:
    """Reads the words of articles for the methods and the measures.

    One pass takes a third of the time of a pass for each.

    Args:
      articles: at most READ_TOGETHER documents.
      methods: the names of the methods.

    Returns:
      The terms of each article; None if no method reads terms.
    """
    pieces = [article.pieces for article in articles]
    sentences = [text for of_article in pieces for text in of_article[:-1]]
    heads = [of_article[-1] for of_article in pieces]
    chunks = split_chunks(sentences + heads)
    terms: list[Terms | None] = [None] * len(articles)
    if NEURAL in methods or not TERM_METHODS.keys().isdisjoint(methods):
        texts = [article.sentence_texts for article in articles]
        terms = [*find_terms(texts, chunks=chunks)]
        others = [n for n, article in enumerate(articles) if not article.is_english]
        other_texts = [texts[n] for n in others]
        other_terms = find_terms(other_texts, is_english=False)
        for n, of_article in zip(others, other_terms, strict=True):
            terms[n] = of_article
    words = join_words(chunks)
    sentence_words = iter(words)
    for article, head in zip(articles, words[len(sentences) :], strict=True):
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
            is_read = reads(reference)
            picks = oracle_sentences(texts, reference, count) if is_read else []
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
            is_english=article.is_english,
            expected=expected if method == NEURAL else None,
            known_words=article.words_by_sentence,
        )
    return extracts
