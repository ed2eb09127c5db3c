"""The classifier of candidates, and its bundle of JSON files.

config.json      the kind of the bundle, the names of the features, the edges of
                 their bins, and the pairs of features that have bins too
weights.json     the bias, a weight for each bin of a feature or a pair, and the
                 document frequencies of words in the training corpus
manifest.json    checksums of the files, model_id, provenance; written last
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.manifest import (
    BUNDLE_WAY_OUT,
    CONFIG_FILE,
    FORMAT_VERSION,
    KEYPHRASES,
    MANIFEST_FILE,
    StoredBundle,
    check_features,
    check_finite,
    open_stored,
    publish_manifest,
)
from precis.model.errors import DataError
from precis.model.keyphrases.candidates import best_candidates, find_candidates
from precis.model.keyphrases.features import (
    FEATURES,
    DocumentFrequencies,
    candidate_features,
)

WEIGHTS_FILE = "weights.json"
# The fields of weights.json.
_WEIGHTS = {"bias": float, "bins": list, "documents": int, "document_frequencies": dict}


class Bins(NamedTuple):
    """The bins of features, which are the columns of a logistic regression.

    Each feature is cut at its edges. A pair of features has a bin for each combination
    of their bins:

        feature      edges   value   bin
        words        2, 3    2       1 of 3
        frequency    4       3       0 of 2
        the pair                     1 x 2 + 0 = 2 of 3 x 2

    Attributes:
      edges: the edges of each feature, ascending; a value equal to an edge is in the
          bin above it.
      pairs: the indices of the two features of each pair.
    """

    edges: Sequence[Sequence[float]]
    pairs: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Bins":
        """Reads the bins from a config.json."""
        edges = [config["edges"][name] for name in FEATURES]
        places = {name: place for place, name in enumerate(FEATURES)}
        return cls(edges, [(places[one], places[two]) for one, two in config["pairs"]])

    @property
    def sizes(self) -> list[int]:
        """The number of bins of each feature, then of each pair."""
        sizes = [len(edges) + 1 for edges in self.edges]
        return sizes + [sizes[first] * sizes[second] for first, second in self.pairs]

    def columns(self, features: np.ndarray) -> np.ndarray:
        """The column of each candidate's bin, for each feature and pair.

        Args:
          features: float64 [C, features].

        Returns:
          int64 [features + pairs, C]. Columns are numbered from the first bin of the
          first feature to the last bin of the last pair.
        """
        sizes = self.sizes
        bins = [
            np.searchsorted(edges, column, side="right")
            for edges, column in zip(self.edges, features.T, strict=True)
        ]
        bins += [bins[one] * sizes[two] + bins[two] for one, two in self.pairs]
        return np.stack(bins) + np.cumsum([0, *sizes[:-1]])[:, None]


@dataclasses.dataclass(frozen=True, eq=False)
class KeyphraseModel:
    """A trained classifier of keyphrases: logistic regression over the bins of features
    and of pairs of features.

    Attributes:
      config: the content of config.json, with `edges` by feature and `pairs` of names.
      weights: the content of weights.json.
      provenance: the data and the settings of the training.
    """

    config: Mapping[str, Any]
    weights: Mapping[str, Any]
    provenance: Mapping[str, Any]

    @functools.cached_property
    def bins(self) -> Bins:
        """The bins of the features."""
        return Bins.of(self.config)

    @functools.cached_property
    def bin_weights(self) -> np.ndarray:
        """The weights of the bins of all features and pairs, float64 [columns]."""
        return np.array(self.weights["bins"], np.float64)

    @property
    def frequencies(self) -> DocumentFrequencies:
        """The document frequencies in the training corpus."""
        return DocumentFrequencies(
            self.weights["documents"], self.weights["document_frequencies"]
        )

    @functools.cached_property
    def model_id(self) -> str:
        """The first 16 hexadecimal digits of the sha256 of configuration and weights.
        Rows with keyphrases have it.
        """
        return files.sha256_json([self.config, self.weights])[:16]

    def keyphrases(
        self, sentences: Sequence[str], count: int
    ) -> list[tuple[str, float]]:
        """The `count` best keyphrases of a document, best first, each with the
        probability that a summary names it; fewer if there are not enough candidates.

        A keyphrase has its most frequent form in the document. A keyphrase that is part
        of a better keyphrase is left out.
        """
        candidates = find_candidates(sentences)
        features = candidate_features(candidates, self.frequencies)
        scores = self.probabilities(features)
        return [
            (candidates.surface(index), float(scores[index]))
            for index in best_candidates(candidates, scores, count)
        ]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """The probability that each candidate is a keyphrase, float64 [C].

        Args:
          features: float64 [C, features].
        """
        sums = self.bin_weights[self.bins.columns(features)].sum(axis=0)
        return 1 / (1 + np.exp(-self.weights["bias"] - sums))

    def check_finite(self, folder: str, *, way_out: str) -> None:
        """Refuses weights that are not finite.

        Raises:
          DataError: a weight is not finite; the message names the file.
        """
        values = {"bias": np.array(self.weights["bias"]), "bins": self.bin_weights}
        check_finite(files.join(folder, WEIGHTS_FILE), values.items(), way_out=way_out)

    def save(self, folder: str) -> str:
        """Writes the model as a bundle; files of the same names are replaced.

        Returns:
          The model_id.
        """
        self.check_finite(
            folder, way_out="the bundle is not written; train on other documents"
        )
        files.remove(files.join(folder, MANIFEST_FILE))
        checksums = {}
        for name, content in ((CONFIG_FILE, self.config), (WEIGHTS_FILE, self.weights)):
            path = files.join(folder, name)
            files.write_json(path, content)
            checksums[name] = files.sha256_file(path)
        manifest = {
            "format_version": FORMAT_VERSION,
            "kind": KEYPHRASES,
            "model_id": self.model_id,
            "parameters": self.bin_weights.size + 1,
            "sha256": checksums,
            "provenance": self.provenance,
        }
        publish_manifest(folder, manifest, self.config)
        return self.model_id

    @classmethod
    def load(cls, folder: str) -> "KeyphraseModel":
        """Reads a model and checks it against its manifest.

        Raises:
          UsageError: the folder is not a complete bundle, has another kind, or was
              trained on features that this version does not compute.
          DataError: a file differs from the manifest.
        """
        stored = open_stored(folder, KEYPHRASES)
        stored.check(WEIGHTS_FILE)
        return _load(stored)


@functools.lru_cache(maxsize=1)
def _load(stored: StoredBundle) -> KeyphraseModel:
    """Reads the model of a bundle after the check of its weights file."""
    folder = stored.folder
    with stored.naming_config():
        check_features(folder, stored.config["features"], FEATURES)
    path = files.join(folder, WEIGHTS_FILE)
    weights = files.read_object(path, way_out=BUNDLE_WAY_OUT, fields=_WEIGHTS)
    model = KeyphraseModel(stored.config, weights, stored.manifest["provenance"])
    with stored.naming_config():
        _ = model.bins, model.bin_weights
    model.check_finite(folder, way_out=BUNDLE_WAY_OUT)
    if model.model_id != stored.model_id:
        raise DataError(
            f"{files.join(folder, MANIFEST_FILE)}: model_id is {stored.model_id}, but "
            f"its files give {model.model_id}; {BUNDLE_WAY_OUT}"
        )
    return model
