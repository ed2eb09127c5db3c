"""Training: makes a classifier of keyphrases from articles with references.

This is the only file that needs scikit-learn. Its logistic regression is much faster
than `scipy.optimize` with the same loss.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from precis.model.bundle.manifest import FORMAT_VERSION, KEYPHRASES
from precis.model.errors import DataError
from precis.model.keyphrases.candidates import find_candidates, find_tokens
from precis.model.keyphrases.classifier import Bins, KeyphraseModel
from precis.model.keyphrases.features import (
    FEATURES,
    DocumentFrequencies,
    candidate_features,
)
from precis.model.keyphrases.references import named_phrases

# Pairs of features that depend on each other.
PAIRS = (
    ("nested", "frequency"),
    ("nested", "words"),
    ("frequency", "position"),
    ("frequency", "word_frequency"),
    ("frequency", "rarest_word_frequency"),
    ("frequency", "idf"),
    ("frequency", "words"),
    ("frequency", "whole"),
    ("words", "whole"),
    ("position", "idf"),
    ("first_word_idf", "last_word_idf"),
)
BINS = 8  # per feature, with about equally many keyphrases in each
REGULARISATION = 0.1  # scikit-learn's C
# Candidates per document that are not keyphrases, weighted to represent all of them.
NEGATIVES = 80
_DECIMALS = 6  # of a weight


def train_classifier(
    documents: Iterable[tuple[Sequence[str], str]],
    *,
    seed: int = 0,
    max_documents: int = 10_000,
    max_entries: int = 20_000,
    provenance: Mapping[str, Any] | None = None,
) -> KeyphraseModel:
    """Trains a model. The same documents in the same order, with the same seed, give
    the same model.

    Document frequencies are counted over all documents. The classifier is trained on a
    random sample, so that memory does not grow with the corpus.

    Args:
      documents: the sentences of each article and its reference, one sentence per line.
          They are read once.
      seed: the seed of the sample and of the negatives.
      max_documents: the maximum size of the sample.
      max_entries: the maximum number of words with a document frequency.
      provenance: the origin of the documents, for the manifest.

    Raises:
      DataError: the references name no candidate of their articles, or all of them.
    """
    generator = np.random.default_rng(seed)
    sample, frequencies = read_sample(
        documents, generator, max_documents=max_documents, max_entries=max_entries
    )
    features, labels, weights = _examples(sample, frequencies, generator)
    if labels.all() or not labels.any():
        raise DataError(
            f"no keyphrases to learn from: in {len(sample)} documents "
            f"{int(labels.sum())} candidates are in the reference and "
            f"{int((~labels).sum())} are not, but both kinds are needed; use "
            "documents with an article and highlights"
        )
    config = {
        "format_version": FORMAT_VERSION,
        "kind": KEYPHRASES,
        "features": list(FEATURES),
        "edges": dict(zip(FEATURES, map(_edges, features[labels].T), strict=True)),
        "pairs": [list(pair) for pair in PAIRS],
    }
    bins = Bins.of(config)
    fitted = _fit(bins.columns(features), labels, weights, width=sum(bins.sizes))
    return KeyphraseModel(
        config=config,
        weights={
            **fitted,
            "documents": frequencies.documents,
            "document_frequencies": dict(frequencies.counts),
        },
        provenance={
            "documents": frequencies.documents,
            "sample": len(sample),
            "keyphrases": int(labels.sum()),
            "seed": seed,
            **(provenance or {}),
        },
    )


def read_sample(
    documents: Iterable[tuple[Sequence[str], str]],
    generator: np.random.Generator,
    *,
    max_documents: int,
    max_entries: int,
    max_counted: int = 1_000_000,
) -> tuple[list[tuple[Sequence[str], str]], DocumentFrequencies]:
    """Draws a uniform sample of the documents, and counts the document frequencies of
    the words that are in most documents, at least two; ties in alphabetical order.

    The sample is a reservoir (Vitter 1985, algorithm R). When there are more than
    `max_counted` words, the words of a single document are dropped.
    """
    sample: list[tuple[Sequence[str], str]] = []
    counts: Counter[str] = Counter()
    number = 0
    for number, document in enumerate(documents, start=1):
        counts.update(find_tokens(document[0]).stems)
        if len(counts) > max_counted:
            counts = Counter({stem: n for stem, n in counts.items() if n > 1})
        if number <= max_documents:
            sample.append(document)
        elif (replaced := int(generator.integers(number))) < max_documents:
            sample[replaced] = document
    common = sorted(
        (item for item in counts.items() if item[1] > 1),
        key=lambda item: (-item[1], item[0]),
    )
    return sample, DocumentFrequencies(number, dict(common[:max_entries]))


def _examples(
    sample: list[tuple[Sequence[str], str]],
    frequencies: DocumentFrequencies,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes the training examples: features float64 [N, features], labels bool [N],
    weights float64 [N].
    """
    features = [np.zeros((0, len(FEATURES)))]
    labels = [np.zeros(0, bool)]
    weights = [np.zeros(0)]
    for sentences, highlights in sample:
        candidates = find_candidates(sentences)
        names = candidates.normalised()
        keyphrases = named_phrases(highlights, set(names))
        is_keyphrase = np.array([name in keyphrases for name in names], bool)
        negatives = np.flatnonzero(~is_keyphrase)
        sampled = generator.choice(
            negatives, min(NEGATIVES, len(negatives)), replace=False
        )
        negative_weight = len(negatives) / max(len(sampled), 1)
        rows = np.concatenate([np.flatnonzero(is_keyphrase), sampled])
        features.append(candidate_features(candidates, frequencies)[rows])
        labels.append(is_keyphrase[rows])
        weights.append(np.where(is_keyphrase[rows], 1.0, negative_weight))
    return np.concatenate(features), np.concatenate(labels), np.concatenate(weights)


def _edges(values: np.ndarray) -> list[float]:
    """The edges of the bins of a feature: the distinct quantiles of its values."""
    quantiles = np.quantile(values, np.arange(1, BINS) / BINS)
    return np.unique(np.round(quantiles, _DECIMALS)).tolist()


def _fit(
    columns: np.ndarray, labels: np.ndarray, weights: np.ndarray, *, width: int
) -> dict[str, Any]:
    """Fits a logistic regression on indicators: an example is 1 in each of its columns.

    Args:
      columns: int64 [features + pairs, N], from `Bins.columns`.
      labels: bool [N].
      weights: the weights of the examples, float64 [N].
      width: the number of columns.

    Returns:
      The `bias`, and the weight of each column as `bins`.
    """
    from sklearn.linear_model import LogisticRegression

    starts = np.arange(0, columns.size + 1, len(columns))
    ones = np.ones(columns.size, np.float32)
    indicators = scipy.sparse.csr_matrix(
        (ones, columns.T.ravel(), starts), shape=(len(labels), width)
    )
    regression = LogisticRegression(C=REGULARISATION, max_iter=500)
    regression.fit(indicators, labels, weights)
    return {
        "bias": round(float(regression.intercept_[0]), _DECIMALS),  # pyright: ignore[reportIndexIssue]  # An array once fitted.
        "bins": np.round(regression.coef_[0].astype(np.float64), _DECIMALS).tolist(),
    }
