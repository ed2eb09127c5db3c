"""Learns the importance of words and pairs, an `ImportanceModel`, from articles with
references and scores of a selector.

The features of an article are computed with a lexicon that leaves this article out, as
its own reference must not be seen.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import keras
import numpy as np

from precis.model.extractive.importance import (
    PLACE_FEATURES,
    ImportanceModel,
    ImportanceNetwork,
    Lexicon,
    length_features,
    ngram_features,
)
from precis.model.extractive.ngrams import Gram, Ngrams, find_ngrams, find_pairs
from precis.model.text.stop_words import STOP_WORDS

_LAYERS = (64, 32)
_EPOCHS = 3
# The minimum number of steps; small sets of articles are read in more epochs.
_MIN_STEPS = 300
_BATCH_NGRAMS = 4_096
_LEARNING_RATE = 2e-3
_MIN_DEVIATION = 1e-3
# The logarithms of the lengths of an article, and the minimum of their deviations. The
# articles are cut off: if nearly all are as long, a whole article is far from them.
_LENGTHS = [
    PLACE_FEATURES.index(f"log_document_{name}") for name in ("sentences", "words")
]
_MIN_LENGTH_DEVIATION = 0.1
# Rarer n-grams are not worth their space in the bundle.
_MIN_ARTICLES_WORD = 2
_MIN_ARTICLES_PAIR = 10


class ScoredArticle(NamedTuple):
    """An article to learn from.

    Attributes:
      sentences: the words of each sentence, as ROUGE tokenizes them.
      scores: float64 [N], the scores of the selector.
      reference: the words of the reference.
      stops: the stop words of the language.
    """

    sentences: Sequence[Sequence[str]]
    scores: np.ndarray
    reference: Sequence[str]
    stops: frozenset[str] = STOP_WORDS


def train_importance(
    articles: Sequence[ScoredArticle], *, seed: int
) -> ImportanceModel | None:
    """Learns which words and pairs of articles are in their references.

    Args:
      articles: the articles with their references.
      seed: the seed of the weights and of the order of n-grams.

    Returns:
      The model; None if ROUGE finds no pair of words in the articles.
    """
    if not any(
        len(sentence) > 1 for article in articles for sentence in article.sentences
    ):
        return None
    words = [find_ngrams(article.sentences) for article in articles]
    references = [article.reference for article in articles]
    unknown = [None] * len(articles)
    network, features = _learn(
        articles, words, references, unknown, least=_MIN_ARTICLES_WORD, seed=seed
    )
    importance = list(map(network.importance, words, features))
    pairs = [find_pairs(article.sentences) for article in articles]
    references = list(map(itertools.pairwise, references))
    of_pairs, _ = _learn(
        articles, pairs, references, importance, least=_MIN_ARTICLES_PAIR, seed=seed
    )
    return ImportanceModel(network, of_pairs, _fit_length(articles))


def _learn(
    articles: Sequence[ScoredArticle],
    ngrams_of_all: Sequence[Ngrams],
    references: Sequence[Iterable[Gram]],
    of_words: Sequence[Mapping[Gram, float] | None],
    *,
    least: int,
    seed: int,
) -> tuple[ImportanceNetwork, list[np.ndarray]]:
    """Learns which n-grams of articles are in their references.

    Args:
      articles: the articles with their references.
      ngrams_of_all: the n-grams of each article.
      references: the n-grams of each reference.
      of_words: as for `ngram_features`.
      least: the minimum number of articles that have an n-gram of the lexicon.
      seed: the seed of the network.

    Returns:
      The network, and the features of the n-grams of each article.
    """
    labels = [
        list(map(frozenset(reference).__contains__, ngrams.grams))
        for ngrams, reference in zip(ngrams_of_all, references, strict=True)
    ]
    lexicon = _count(ngrams_of_all, labels, least=least)
    features = [
        ngram_features(
            ngrams,
            article.scores,
            sum(map(len, article.sentences)),
            lexicon,
            of_words=known,
            stops=article.stops,
            taken=taken,
        )
        for article, ngrams, known, taken in zip(
            articles, ngrams_of_all, of_words, labels, strict=True
        )
    ]
    return _fit(features, labels, lexicon, seed=seed), features


def _count(
    ngrams_of_all: Sequence[Ngrams], labels: Sequence[Sequence[bool]], *, least: int
) -> Lexicon:
    """Counts articles and references by n-gram."""
    articles: Counter[Gram] = Counter()
    references: Counter[Gram] = Counter()
    for ngrams, taken in zip(ngrams_of_all, labels, strict=True):
        articles.update(ngrams.grams)
        references.update(itertools.compress(ngrams.grams, taken))
    share = (references.total() + 1) / (articles.total() + 1)
    counts = {
        gram: (count, references[gram])
        for gram, count in articles.items()
        if count >= least
    }
    return Lexicon(len(ngrams_of_all), share, counts)


def _fit(
    features: Sequence[np.ndarray],
    labels: Sequence[Sequence[bool]],
    lexicon: Lexicon,
    *,
    seed: int,
) -> ImportanceNetwork:
    """Trains a network on the n-grams of all articles (cross entropy, Adam with cosine
    decay).
    """
    inputs = np.concatenate(features)
    targets = np.concatenate([np.asarray(each, np.float32) for each in labels])
    mean = inputs.mean(axis=0, dtype=np.float64).astype(np.float32)
    deviation = inputs.std(axis=0, dtype=np.float64)
    # A constant feature is ignored, as the network cannot learn from it.
    known = deviation > _MIN_DEVIATION
    known[_LENGTHS] = deviation[_LENGTHS] > _MIN_LENGTH_DEVIATION
    scale = np.where(known, 1.0 / np.where(known, deviation, 1.0), 0.0).astype(
        np.float32
    )
    keras.utils.set_random_seed(seed)
    hidden = [keras.layers.Dense(width, activation="relu") for width in _LAYERS]
    network = keras.Sequential([*hidden, keras.layers.Dense(1)])
    steps_per_epoch = -(-len(inputs) // _BATCH_NGRAMS)
    epochs = max(_EPOCHS, -(-_MIN_STEPS // steps_per_epoch))
    schedule = keras.optimizers.schedules.CosineDecay(
        _LEARNING_RATE, epochs * steps_per_epoch
    )
    network.compile(
        keras.optimizers.Adam(schedule),  # pyright: ignore[reportArgumentType]  # Keras takes schedules.
        keras.losses.BinaryCrossentropy(from_logits=True),
    )
    network.fit(
        (inputs - mean) * scale,
        targets,
        batch_size=_BATCH_NGRAMS,
        epochs=epochs,
        verbose=0,  # pyright: ignore[reportArgumentType]  # Keras takes numbers.
    )
    weights = [layer.get_weights() for layer in network.layers]
    return ImportanceNetwork(
        mean,
        scale,
        kernels=tuple(kernel for kernel, _ in weights),
        biases=tuple(bias for _, bias in weights),
        lexicon=lexicon,
    )


def _fit_length(articles: Sequence[ScoredArticle]) -> np.ndarray:
    """Fits the logarithm of the references' lengths by least squares."""
    inputs = np.stack([length_features(article.sentences) for article in articles])
    lengths = np.log([max(len(article.reference), 1) for article in articles])
    return np.asarray(np.linalg.lstsq(inputs, lengths, rcond=None)[0])


def fit_rising(scores: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Fits the mean outcome by score, with centered isotonic regression (Oron and
    Flournoy 2017): scores with the same fitted outcome become one point, at their mean,
    so that the outcome rises between points.

    Args:
      scores, outcomes: float64 [N]; N is at least 1.

    Returns:
      float64 [2, K]: scores in ascending order, and the outcome at each, to be
      interpolated with `np.interp`.
    """
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression().fit_transform(scores, outcomes)
    levels, members = np.unique(fitted, return_inverse=True)
    centers = np.bincount(members, scores) / np.bincount(members)
    return np.stack([centers, levels.astype(np.float64)])
