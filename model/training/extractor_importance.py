"""What an extractor's training learns last: the importance of words and pairs, with the
scores of the trained network as features.

A part of the training articles is enough, drawn evenly from the records. It takes a
minute or two, so an interrupted training learns it again.
"""

import itertools
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

from precis.model import files
from precis.model.extractive.importance import ImportanceModel
from precis.model.inference.sentence_scorer import SentenceScorer
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.network.extractor import Extractor
from precis.model.progress.stages import stage
from precis.model.rouge import tokenize
from precis.model.training.extractor_articles import (
    TrainingArticle,
    VectorStore,
    read_articles,
)
from precis.model.training.extractor_state import ExtractorSetup
from precis.model.training.importance import ScoredArticle, train_importance
from precis.model.training.shards import check_shards

_SCORED_TOGETHER = 256


def learn_importance(
    setup: ExtractorSetup, network: Extractor
) -> ImportanceModel | None:
    """Learns the importance of words and pairs for an extractor.

    Returns:
      None where none is to be learned, or where there is nothing to learn from.

    Raises:
      DataError: a damaged shard.
    """
    most = setup.training.importance_articles
    if not most:
        return None
    with stage(
        "read importance", total=min(most, setup.info.records("train"))
    ) as reading:
        sample = [reading.counted(article) for article in _sample(setup, most)]
    articles = [
        article
        for start in range(0, len(sample), _SCORED_TOGETHER)
        for article in score_articles(network, sample[start : start + _SCORED_TOGETHER])
    ]
    return train_importance(articles, seed=setup.training.seed)


def make_vector_store(setup: ExtractorSetup) -> VectorStore | None:
    """What gives the sentence vectors; None where features alone are read."""
    if setup.encoder is None:
        return None
    return VectorStore(
        encoder=SentenceEncoder(setup.encoder.encoder, setup.encoder.tokenizer),
        folder=files.join(setup.folder, "vectors"),
        fingerprint=setup.vectors_fingerprint,
    )


def _sample(setup: ExtractorSetup, most: int) -> Iterator[TrainingArticle]:
    """Training articles with their texts, at most so many, evenly from all."""
    stride = -(-setup.info.records("train") // most)
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        articles = read_articles(
            check_shards(setup.records, setup.info, "train", staging=staging),
            max_sentences=setup.config.max_sentences,
            vector_store=make_vector_store(setup),
            keep_text=True,
            stride=stride,
        )
        yield from articles


def score_articles(
    network: Extractor, articles: Sequence[TrainingArticle]
) -> Iterator[ScoredArticle]:
    """Articles with the scores of their sentences; those without words are left out."""
    scores = SentenceScorer(network, None).score_inputs(
        [article.vectors.astype(np.float32) for article in articles],
        [article.features for article in articles],
    )
    for article, article_scores in zip(articles, scores, strict=True):
        sentences = [tokenize(sentence) for sentence in article.sentences]
        reference = [tokenize(line) for line in article.highlights.split("\n")]
        words = list(itertools.chain.from_iterable(reference))
        if words and any(sentences):
            yield ScoredArticle(
                sentences=sentences,
                scores=article_scores,
                words=frozenset(words),
                pairs=frozenset(itertools.pairwise(words)),
                reference_words=len(words),
            )
