"""The classifier of candidates and the model around it, as a bundle that holds JSON
alone.

config.json      its kind, the names of the features, where they are cut into bins, which pairs of features have a table of their own
weights.json     the bias, a weight for every bin and every pair of bins, in how many documents of the training corpus each word stands
manifest.json    checksums of the files, model_id, what it was trained on; written last
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.network_bundle import (
    CONFIG_FILE,
    FORMAT_VERSION,
    KEYPHRASES,
    MANIFEST_FILE,
    open_files,
    read_manifest,
)
from precis.model.errors import DataError, UsageError
from precis.model.keyphrases.candidates import find_candidates
from precis.model.keyphrases.features import FEATURES, DocumentFrequencies, describe
from precis.model.keyphrases.ranking import best_candidates

WEIGHTS_FILE = "weights.json"


class Keyphrase(NamedTuple):
    """A keyphrase as the document writes it most often, and the probability that a
    summary of the document names it.
    """

    phrase: str
    score: float


class Bins(NamedTuple):
    """How features become bins, and bins become the columns of a logistic regression.

    Each feature is cut at its edges, and a pair of features has a bin for each two of
    theirs:

        feature    edges    value   bin        pair    bins     here
        words      2, 3       2      1 of 3    (0, 1)  3 x 2    1 x 2 + 0 = 2
        frequency  4          3      0 of 2

    Attributes:
      edges: for each feature its edges, ascending; a value that equals one belongs to
          the bin above.
      pairs: positions of two features each.
    """

    edges: list[list[float]]
    pairs: list[tuple[int, int]]

    @property
    def sizes(self) -> list[int]:
        """The bins of every feature and then of every pair."""
        singles = [len(edges) + 1 for edges in self.edges]
        return singles + [
            singles[first] * singles[second] for first, second in self.pairs
        ]

    def columns(self, features: np.ndarray) -> np.ndarray:
        """The column of the bin that each candidate is in, for every feature and pair.

        Args:
          features: float64 [C, features].

        Returns:
          int64 [features + pairs, C], counted through from the first bin of the first
          feature to the last of the last pair.
        """
        bins = [
            np.searchsorted(edges, column, side="right")
            for edges, column in zip(self.edges, features.T, strict=True)
        ]
        sizes = self.sizes
        bins += [
            bins[first] * sizes[second] + bins[second] for first, second in self.pairs
        ]
        return np.stack(bins) + np.cumsum([0, *sizes[:-1]])[:, None]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class KeyphraseModel:
    """A trained classifier of keyphrases: logistic regression over the bins of the
    features and of pairs of them.
    """

    bins: Bins
    bias: float
    weights: np.ndarray  # float64 [bins of all features and pairs]
    frequencies: DocumentFrequencies
    provenance: dict[str, Any]  # what it was trained on and how

    @functools.cached_property
    def model_id(self) -> str:
        """The first 16 hexadecimal digits of the sha256 of its configuration and
        weights: names the model in every row it writes.
        """
        return files.sha256_json([self._config(), self._weights()])[:16]

    def keyphrases(self, sentences: Sequence[str], count: int) -> list[Keyphrase]:
        """The keyphrases of a document, best first; none that stands within a better
        one. Fewer, if there are not so many candidates.

        Raises:
          UsageError: `count` is below 1.
        """
        candidates = find_candidates(sentences)
        scores = self.probabilities(describe(candidates, self.frequencies))
        return [
            Keyphrase(candidates.surface(index), float(scores[index]))
            for index in best_candidates(candidates, scores, count)
        ]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """The probability that each candidate is a keyphrase; features float64 [C,
        features], probabilities float64 [C].
        """
        return 1 / (
            1
            + np.exp(-self.bias - self.weights[self.bins.columns(features)].sum(axis=0))
        )

    def save(self, folder: str) -> str:
        """Writes the model as a bundle; files of the same names are replaced.

        Returns:
          The model_id.
        """
        files.remove(files.join(folder, MANIFEST_FILE))
        files.write_json(files.join(folder, CONFIG_FILE), self._config())
        files.write_json(files.join(folder, WEIGHTS_FILE), self._weights())
        checksums = {
            name: files.sha256_file(files.join(folder, name))
            for name in (CONFIG_FILE, WEIGHTS_FILE)
        }
        manifest = {
            "format_version": FORMAT_VERSION,
            "kind": KEYPHRASES,
            "model_id": self.model_id,
            "sha256": checksums,
        }
        files.write_json(
            files.join(folder, MANIFEST_FILE),
            {**manifest, "provenance": self.provenance},
        )
        return self.model_id

    @classmethod
    def load(cls, folder: str) -> "KeyphraseModel":
        """Reads a model and checks it against its manifest.

        Raises:
          UsageError: the folder is no complete bundle, one of another kind, or one
              whose features this precis does not compute.
          DataError: a file differs from the manifest.
        """
        config, manifest = open_files(folder, KEYPHRASES).config, read_manifest(folder)
        if tuple(config["features"]) != FEATURES:
            raise UsageError(
                f"{folder}: trained on other features ({', '.join(config['features'])}) than this precis computes; train it again"
            )
        path = files.join(folder, WEIGHTS_FILE)
        if (
            not files.exists(path)
            or files.sha256_file(path) != manifest["sha256"][WEIGHTS_FILE]
        ):
            raise DataError(
                f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; copy the bundle again or train it again"
            )
        weights = files.read_json(path)
        pairs = [
            (FEATURES.index(first), FEATURES.index(second))
            for first, second in config["pairs"]
        ]
        return cls(
            bins=Bins([config["edges"][name] for name in FEATURES], pairs),
            bias=weights["bias"],
            weights=np.array(weights["bins"], np.float64),
            frequencies=DocumentFrequencies(
                weights["documents"], weights["document_frequencies"]
            ),
            provenance=manifest["provenance"],
        )

    def _config(self) -> dict[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "kind": KEYPHRASES,
            "features": list(FEATURES),
            "edges": dict(zip(FEATURES, self.bins.edges, strict=True)),
            "pairs": [
                [FEATURES[first], FEATURES[second]] for first, second in self.bins.pairs
            ],
        }

    def _weights(self) -> dict[str, Any]:
        return {
            "bias": self.bias,
            "bins": self.weights.tolist(),
            "documents": self.frequencies.documents,
            "document_frequencies": dict(self.frequencies.counts),
        }
