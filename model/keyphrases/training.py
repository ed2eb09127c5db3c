"""Training: from articles with references to a classifier of keyphrases. The only file
that needs scikit-learn.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from precis.model.errors import DataError
from precis.model.keyphrases.candidates import find_candidates, read_tokens
from precis.model.keyphrases.classifier import Bins, KeyphraseModel
from precis.model.keyphrases.features import FEATURES, DocumentFrequencies, describe
from precis.model.keyphrases.references import found_in

# Two features together where one does not mean the same at every value of the other.
# They are worth 0.5 to 1 point of F1@10 on news.
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
BINS = 8  # of a feature, about as many keyphrases in each
REGULARISATION = 0.1  # scikit-learn's C
NEGATIVES = (
    80  # of a document that are learned from, weighted so that they stand for all
)
_DIGITS = 6  # of a weight behind the point


def train_keyphrases(
    documents: Iterable[tuple[Sequence[str], str]],
    *,
    seed: int = 0,
    max_documents: int = 10_000,
    max_entries: int = 20_000,
    provenance: dict[str, Any] | None = None,
) -> KeyphraseModel:
    """Trains a model; equal documents in equal order and an equal seed give an equal
    one.

    Document frequencies are counted over all documents. The classifier is trained on a
    random sample of them, so that memory is bounded by the sample and not by the
    corpus.

    Args:
      documents: the sentences of an article and its reference, one sentence a line.
          They are read once.
      seed: of the sample and of the negatives.
      max_documents: how many documents the sample has.
      max_entries: how many words keep a document frequency.
      provenance: where the documents come from, for the manifest.

    Raises:
      DataError: there is nothing to tell apart, because no reference names a candidate
          of its article or all are named.
    """
    generator = np.random.default_rng(seed)
    sample, frequencies = _read(
        documents, generator, max_documents=max_documents, max_entries=max_entries
    )
    features, labels, weights = _examples(sample, frequencies, generator)
    if labels.all() or not labels.any():
        raise DataError(
            f"no keyphrases to learn from: of the candidates of {len(sample)} documents {int(labels.sum())} are in a reference and "
            f"{int((~labels).sum())} are not; give documents with an article and highlights"
        )
    bins = Bins(
        [_edges(column) for column in features[labels].T],
        [(FEATURES.index(first), FEATURES.index(second)) for first, second in PAIRS],
    )
    bias, bin_weights = _fit(
        bins.columns(features), labels, weights, width=sum(bins.sizes)
    )
    counts = {
        "documents": frequencies.documents,
        "sample": len(sample),
        "keyphrases": int(labels.sum()),
        "seed": seed,
    }
    return KeyphraseModel(
        bins=bins,
        bias=bias,
        weights=bin_weights,
        frequencies=frequencies,
        provenance={**counts, **(provenance or {})},
    )


def _read(
    documents: Iterable[tuple[Sequence[str], str]],
    generator: np.random.Generator,
    *,
    max_documents: int,
    max_entries: int,
) -> tuple[list[tuple[Sequence[str], str]], DocumentFrequencies]:
    """A uniform sample of the documents (reservoir sampling, Vitter 1985, algorithm R)
    and the document frequencies of them all.
    """
    sample: list[tuple[Sequence[str], str]] = []
    counter = DocumentFrequencyCounter()
    for read, document in enumerate(documents):
        counter.add(read_tokens(document[0]).stems)
        if read < max_documents:
            sample.append(document)
        elif (place := int(generator.integers(read + 1))) < max_documents:
            sample[place] = document
    return sample, counter.most_common(max_entries)


def _examples(
    sample: list[tuple[Sequence[str], str]],
    frequencies: DocumentFrequencies,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the classifier is trained on: features float64 [N, features], labels bool
    [N], weights float64 [N].
    """
    features, labels, weights = (
        [np.zeros((0, len(FEATURES)))],
        [np.zeros(0, bool)],
        [np.zeros(0)],
    )
    for sentences, highlights in sample:
        candidates = find_candidates(sentences)
        names = candidates.normalised()
        positive = found_in(highlights, set(names))
        is_positive = np.array([name in positive for name in names], bool)
        negatives = np.flatnonzero(~is_positive)
        kept = generator.choice(
            negatives, min(NEGATIVES, len(negatives)), replace=False
        )
        rows = np.concatenate([np.flatnonzero(is_positive), kept])
        features.append(describe(candidates, frequencies)[rows])
        labels.append(is_positive[rows])
        weights.append(
            np.where(is_positive[rows], 1.0, len(negatives) / max(len(kept), 1))
        )
    return np.concatenate(features), np.concatenate(labels), np.concatenate(weights)


def _edges(values: np.ndarray) -> list[float]:
    """Where a feature is cut: the quantiles of its values, each once."""
    return np.unique(
        np.round(np.quantile(values, np.arange(1, BINS) / BINS), _DIGITS)
    ).tolist()


def _fit(
    columns: np.ndarray, labels: np.ndarray, weights: np.ndarray, *, width: int
) -> tuple[float, np.ndarray]:
    """Logistic regression on indicators: each example has a one in each of its columns.

    Args:
      columns: int64 [features + pairs, N], as `Bins.columns` gives them.
      labels, weights: bool and float64 [N].
      width: how many columns there are.

    Returns:
      The bias, and one weight for each column, float64 [width].
    """
    from sklearn.linear_model import LogisticRegression

    ones, examples = columns.shape
    places = np.arange(0, ones * examples + 1, ones)
    indicators = scipy.sparse.csr_matrix(
        (np.ones(ones * examples, np.float32), columns.T.ravel(), places),
        shape=(examples, width),
    )
    fitted = LogisticRegression(C=REGULARISATION, max_iter=500).fit(
        indicators, labels, weights
    )
    return round(float(fitted.intercept_[0]), _DIGITS), np.round(
        fitted.coef_[0].astype(np.float64), _DIGITS
    )


class DocumentFrequencyCounter:
    """Counts in how many documents each word stands, in bounded memory: now and then
    the words of a single document are forgotten.
    """

    def __init__(self, max_entries: int = 1_000_000) -> None:
        self._max_entries = max_entries
        self._documents = 0
        self._counts: Counter[str] = Counter()

    def add(self, stems: list[str]) -> None:
        """Counts one more document, given its distinct stems."""
        self._documents += 1
        self._counts.update(stems)
        if len(self._counts) > self._max_entries:
            self._counts = Counter(
                {stem: count for stem, count in self._counts.items() if count > 1}
            )

    def most_common(self, entries: int) -> DocumentFrequencies:
        """The table of the words in most documents, at least two each; of equally many
        those first in the alphabet.
        """
        common = sorted(
            (item for item in self._counts.items() if item[1] > 1),
            key=lambda item: (-item[1], item[0]),
        )
        return DocumentFrequencies(self._documents, dict(common[:entries]))
