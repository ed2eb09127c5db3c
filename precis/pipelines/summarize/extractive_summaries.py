"""The sentences that every extractive method chooses in a document."""

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

# The stage of a failure to choose sentences.
EXTRACT = "extract"


def neural_scores(
    articles: Sequence[Article],
    selector: "SelectorBundle",
    terms: Sequence[Terms | None],
) -> list[np.ndarray]:
    """The scores of the method `neural` for the sentences of documents, float64 [N]
    each.

    Args:
      articles: the documents.
      selector: scores their sentences.
      terms: of the articles; None where they are not known.
    """
    sentences = [article.sentence_texts for article in articles]
    # The network has learned from the terms of English, whatever it reads.
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
    """Reads what the methods and the measures need of the words of articles.

    Together this takes a third of the time that it takes for each alone.

    Args:
      articles: at most READ_TOGETHER documents.
      methods: names of the methods.

    Returns:
      The terms of each; None where no method reads terms.
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
    """The sentences of a document that each method chooses, in document order.

    The oracle chooses nothing where the document has no reference that ROUGE reads.

    Args:
      article: the document.
      neural: the scores of the method `neural`.
      terms: of the article; None where no method reads terms.
      methods: names of the methods.
      selection: how sentences are chosen by their scores.
      expected: of the reference, by the network of `neural`, where it has learned
          that.
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
