"""Scores sentences with a selector, and reads and writes the selector's bundle.

config.json            shape of the selector; shape and precision of the encoder,
                       if there is one
tokenizer/             the tokenizer of the encoder
weights.safetensors    weights of both networks, and the importance of words and pairs
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from precis.model.bundle.manifest import (
    EXTRACTIVE,
    check_features,
    open_stored,
    save_bundle_files,
)
from precis.model.bundle.network_bundle import EncoderBundle
from precis.model.config import stored_fields
from precis.model.extractive.features import FEATURE_NAMES, features_of_all
from precis.model.extractive.importance import (
    PAIR_FEATURES,
    WORD_FEATURES,
    ImportanceModel,
)
from precis.model.extractive.terms import Terms
from precis.model.extractive.threads import single_thread
from precis.model.inference.selector_network import (
    PREFIX,
    SelectorNetwork,
    pad_inputs,
)
from precis.model.inference.sentence_vectors import SentenceEncoder, cut_windows
from precis.model.network.config import EncoderConfig, SelectorConfig
from precis.model.text.normalization import one_line

# Sentences by which the windows of a long document overlap.
_OVERLAP_SENTENCES = 8
# The number of windows in one call of the network.
_BATCH_WINDOWS = 64


@dataclasses.dataclass(eq=False)
class SelectorBundle:
    """Scores the sentences of documents with a selector.

    Attributes:
      network: the network that computes the logits.
      encoder: computes the sentence vectors; None if the network reads features only.
      importance: the importance of words and pairs of words, learned with the scores of
        `network`, by which sentences are chosen together; None if it was not learned.
      model_id: the model_id of the bundle; empty before it is saved.
    """

    network: SelectorNetwork
    encoder: SentenceEncoder | None = None
    _: dataclasses.KW_ONLY
    importance: ImportanceModel | None = None
    model_id: str = ""

    def score(
        self,
        documents: Sequence[Sequence[str]],
        terms: Sequence[Terms] | None = None,
    ) -> list[np.ndarray]:
        """Scores the sentences of documents.

        The score of a document depends on the other documents only in its last bits. If
        a document has more sentences than the selector reads, it is read in windows
        that overlap by 8 sentences.

        Args:
          documents: the sentences of each document.
          terms: the terms of each document; computed if None.

        Returns:
          float64 [N] for each document: the probability, from 0 to 1, that a sentence
          has the oracle label.
        """
        texts = [
            [one_line(sentence) for sentence in document] for document in documents
        ]
        if self.encoder:
            vectors = self.encoder.vectors(texts)
        else:
            vectors = [np.zeros((len(document), 0), np.float32) for document in texts]
        return self.score_inputs(vectors, features_of_all(texts, terms))

    def score_inputs(
        self, vectors: Sequence[np.ndarray], feature_rows: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Scores sentences as `score` does, from vectors and features.

        Args:
          vectors: the sentence vectors [N, D] of each document.
          feature_rows: the features [N, F] of each document's sentences.
        """
        most = self.network.config.max_sentences
        windows = [
            (number, window)
            for number, rows in enumerate(feature_rows)
            for window in cut_windows(
                [1] * len(rows), max_tokens=most, overlap=_OVERLAP_SENTENCES
            )
        ]
        # The sort is stable: windows of equal length stay in order.
        windows.sort(key=lambda entry: entry[1].last - entry[1].first)
        scores = [np.zeros(len(rows)) for rows in feature_rows]
        for start in range(0, len(windows), _BATCH_WINDOWS):
            batch = windows[start : start + _BATCH_WINDOWS]
            inputs = pad_inputs(
                [vectors[number][first:last] for number, (first, _, last) in batch],
                [
                    feature_rows[number][first:last]
                    for number, (first, _, last) in batch
                ],
                [window.first for _, window in batch],
            )
            with single_thread():
                logits = self.network.logits(inputs).astype(np.float64)
            for (number, (first, new, last)), row in zip(batch, logits, strict=True):
                new_logits = row[new - first : last - first]
                scores[number][new:last] = 1.0 / (1.0 + np.exp(-new_logits))
        return scores


def save_selector(
    folder: str,
    *,
    network: SelectorNetwork,
    encoder: EncoderBundle | None = None,
    precision: str = "float32",
    provenance: dict[str, Any],
    importance: ImportanceModel | None = None,
) -> str:
    """Writes a bundle of the kind `extractive`.

    Args:
      folder: the folder of the bundle.
      network: the network that computes the logits.
      encoder: the encoder of the sentence vectors; None if `network` reads features
        only.
      precision: the number format that the encoder's layers compute in.
      provenance: what the bundle was trained from, for its manifest.
      importance: as in `SelectorBundle`.

    Returns:
      The model_id.
    """
    config: dict[str, Any] = {
        "extractor": dataclasses.asdict(network.config),
        "features": list(FEATURE_NAMES),
    }
    weights = dict(network.weights)
    if encoder is not None:
        config |= {
            "encoder": stored_fields(encoder.encoder.config),
            "precision": precision,
        }
        weights |= {each.path: each.numpy() for each in encoder.encoder.weights}
    if importance is not None:
        config["importance"] = importance.config
        weights |= importance.tensors()
    return save_bundle_files(
        folder,
        kind=EXTRACTIVE,
        config=config,
        weights=weights,
        provenance=provenance,
        tokenizer=encoder.tokenizer if encoder else None,
    )


def load_selector(folder: str) -> SelectorBundle:
    """Reads a bundle of the kind `extractive`.

    Raises:
      UsageError: the folder is not a complete bundle of this kind, or the selector was
        trained on features that this version does not compute.
      DataError: a file differs from the manifest.
    """
    stored = open_stored(folder, EXTRACTIVE)
    config = stored.config
    encoder = importance = None
    with stored.naming_config():
        check_features(folder, config["features"], FEATURE_NAMES)
        # A bundle may store weights as float16.
        weights = {
            name: values.astype(np.float32) if values.dtype == np.float16 else values
            for name, values in stored.read_weights().items()
        }
        network = SelectorNetwork(
            SelectorConfig(**config["extractor"]),
            {name: weights[name] for name in weights if name.startswith(PREFIX)},
        )
        if "encoder" in config:
            from precis.model.network.build import build_network

            reader = build_network(
                EncoderConfig(**config["encoder"]), precision=config["precision"]
            )
            for weight in reader.weights:
                weight.assign(weights[weight.path])
            encoder = SentenceEncoder(reader, stored.tokenizers.target)
        if learned := config.get("importance"):
            check_features(folder, learned["word_features"], WORD_FEATURES)
            check_features(folder, learned["pair_features"], PAIR_FEATURES)
            importance = ImportanceModel.of(learned, weights)
    return SelectorBundle(
        network, encoder, importance=importance, model_id=stored.model_id
    )
