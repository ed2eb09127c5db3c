"""`--write sentences`: extract, then write, then put together (Chen and Bansal 2018;
Gehrmann et al. 2018).

    article    the extractor scores all of its sentences, however long it is
    sources    the best of them, each a source of its own
    search     the network rewrites each
    summary    the best of what was written, in the order of the article
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.extractive.expected import ExpectedReference
from precis.model.extractive.expected_selection import best_sentences
from precis.model.inference.passages import BEST_SENTENCES, EncodedDocument
from precis.model.text.article import Article
from precis.model.text.normalization import one_line
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.source import encode_sources
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.summarize.summary_rows import ScoredDocument, ScoringModels

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.summarizer import Summary


def encode_best_sentences(
    documents: Sequence[ScoredDocument],
    tokenizer: AnyTokenizer,
    *,
    max_source_tokens: int,
    options: SummarizeOptions,
    models: ScoringModels,
) -> list[EncodedDocument]:
    """Makes the sources of documents: their best sentences.

    Args:
      documents: with the scores of their sentences.
      tokenizer: of sources.
      max_source_tokens: tokens that the network reads; longer sentences are cut.
      options: the number of sentences and the task prefix.
      models: not needed; as for `long_documents.encode_documents`.
    """
    del models
    wholes = encode_sources(
        tokenizer,
        [options.task_prefix + document.article.body for document, _ in documents],
        max_source_tokens=max_source_tokens,
    )
    places_of_all = []
    texts_of_all = []
    for document, scores in documents:
        assert isinstance(scores, np.ndarray)
        texts = [one_line(sentence.text) for sentence in document.article.sentences]
        places = sorted(best_sentences(texts, scores, count=options.written_sentences))
        places_of_all.append(places)
        texts_of_all += [options.task_prefix + texts[place] for place in places]
    sources = iter(
        encode_sources(tokenizer, texts_of_all, max_source_tokens=max_source_tokens)
    )
    encoded = []
    for whole, places in zip(wholes, places_of_all, strict=True):
        ids = [source.ids for source in itertools.islice(sources, len(places))]
        seen_tokens = min(sum(map(len, ids)), whole.source_tokens)
        encoded.append(
            EncodedDocument(
                ids, whole.source_tokens, seen_tokens, BEST_SENTENCES, tuple(places)
            )
        )
    return encoded


def compose(
    article: Article,
    source: EncodedDocument,
    ways_of_all: "Sequence[Sequence[Summary]]",
    expected: ExpectedReference | None,
    *,
    most: int,
) -> "list[Summary]":
    """The summary of a document from its rewritten sentences.

    Args:
      article: the document.
      source: which of its sentences were rewritten.
      ways_of_all: what the network wrote of each.
      expected: of the reference of the document, by the extractor.
      most: sentences of the summary, at most.
    """
    from precis.model.inference.composition import RewrittenSentence, compose_summary

    rewritten = [
        RewrittenSentence(article.sentences[place], ways)
        for place, ways in zip(source.places, ways_of_all, strict=True)
    ]
    return compose_summary(rewritten, expected, most=most)
