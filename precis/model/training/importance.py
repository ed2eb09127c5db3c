"""Learns the importance of words and pairs, an `ImportanceModel`, from articles with
references and scores of a selector.

The features of an article are computed with a lexicon that leaves this article out, as
its own reference must not be seen.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress, pairwise, repeat
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
from precis.model.extractive.ngrams import (
    Gram,
    Ngrams,
    NumberedWords,
    find_ngrams,
    number_words,
)
from precis.model.extractive.terms import READ_TOGETHER
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
    groups = [
        articles[start : start + READ_TOGETHER]
        for start in range(0, len(articles), READ_TOGETHER)
    ]
    words = [number_words([each.sentences for each in group]) for group in groups]
    of_words = [find_ngrams(each, 1) for each in words]
    network, features = _learn(
        groups, words, of_words, least=_MIN_ARTICLES_WORD, seed=seed
    )
    importance = map(network.importance, of_words, features)
    of_pairs, _ = _learn(
        groups,
        words,
        [find_ngrams(each, 2) for each in words],
        list(zip(of_words, importance, strict=True)),
        least=_MIN_ARTICLES_PAIR,
        seed=seed,
    )
    return ImportanceModel(network, of_pairs, _fit_length(articles))


def _learn(
    groups: Sequence[Sequence[ScoredArticle]],
    words: Sequence[NumberedWords],
    ngrams: Sequence[Ngrams],
    of_words: Sequence[tuple[Ngrams, np.ndarray]] = (),
    *,
    least: int,
    seed: int,
) -> tuple[ImportanceNetwork, list[np.ndarray]]:
    """Learns which n-grams of articles are in their references.

    Args:
      groups: the articles with their references, some hundred together.
      words, ngrams: the words and the n-grams of each group.
      of_words: for pairs, the words of each group and their importance.
      least: the minimum number of articles that have an n-gram of the lexicon.
      seed: the seed of the network.

    Returns:
      The network, and the features of the n-grams of each group.
    """
    grams = [
        each.names(known.vocabulary) for each, known in zip(ngrams, words, strict=True)
    ]
    labels = list(map(_labels, groups, ngrams, grams))
    lexicon = _count(sum(map(len, groups)), grams, labels, least=least)
    features = [
        ngram_features(
            of_group,
            known,
            [article.scores for article in group],
            lexicon,
            [article.stops for article in group],
            of_words=importance,
            taken=taken,
        )
        for group, known, of_group, taken, importance in zip(
            groups, words, ngrams, labels, of_words or repeat(None), strict=False
        )
    ]
    return _fit(features, labels, lexicon, seed=seed), features


def _labels(
    articles: Sequence[ScoredArticle], ngrams: Ngrams, grams: Sequence[Gram]
) -> list[bool]:
    """Whether the reference of its article has an n-gram, for `grams`, its names."""
    references = [article.reference for article in articles]
    known: list[frozenset[Gram]] = [
        frozenset(pairwise(each) if ngrams.size > 1 else each) for each in references
    ]
    documents = ngrams.documents[ngrams.by_first].tolist()
    return [gram in known[n] for gram, n in zip(grams, documents, strict=True)]


def _count(
    documents: int,
    grams: Sequence[Sequence[Gram]],
    labels: Sequence[Sequence[bool]],
    *,
    least: int,
) -> Lexicon:
    """Counts articles and references by n-gram."""
    articles = Counter(chain.from_iterable(grams))
    references = Counter(chain.from_iterable(map(compress, grams, labels)))
    share = (references.total() + 1) / (articles.total() + 1)
    counts = {
        gram: (count, references[gram])
        for gram, count in articles.items()
        if count >= least
    }
    return Lexicon(documents, share, counts)


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
