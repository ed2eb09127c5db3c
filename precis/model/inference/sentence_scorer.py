"""Scores of sentences by a trained network, and the bundle that holds the network.

config.json            shape of the extractor; shape and precision of the encoder,
                       if there is one
tokenizer/             the encoder's
weights.safetensors    weights of both networks, and the importance of words and pairs
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.bundle.importance_tensors import (
    importance_config,
    importance_tensors,
    read_importance,
)
from precis.model.bundle.manifest import (
    EXTRACTIVE,
    check_features,
    naming_config,
    open_bundle_config,
    open_tokenizer,
    open_weights,
    save_bundle_files,
)
from precis.model.bundle.network_bundle import EncoderBundle
from precis.model.config import stored_fields
from precis.model.extractive.features import (
    FEATURE_COUNT,
    FEATURE_NAMES,
    features_of_all,
)
from precis.model.extractive.importance import ImportanceModel
from precis.model.inference.sentence_vectors import SentenceEncoder, cut_windows
from precis.model.network.config import EncoderConfig, ExtractorConfig
from precis.model.text.normalization import one_line

if TYPE_CHECKING:  # TensorFlow takes seconds to import.
    from precis.model.network.extractor import Extractor

# Sentences that the windows of a long document share.
_OVERLAP_SENTENCES = 8
# Windows that the network reads in one call.
_BATCH_WINDOWS = 64
# Windows are padded to a multiple of it.
_LENGTH_STEP = 8


class ExtractorInputs(NamedTuple):
    """The inputs of the extractor, for B windows of N sentences.

    Attributes:
      vectors: float32 [B, N, D].
      features: float32 [B, N, F]; here F is the number of features.
      places: int32 [B, N], the place of each sentence in its document; -1 is padding.
    """

    vectors: np.ndarray
    features: np.ndarray
    places: np.ndarray


def pad_inputs(
    vectors: Sequence[np.ndarray],
    feature_rows: Sequence[np.ndarray],
    firsts: Sequence[int],
) -> ExtractorInputs:
    """Makes one batch of windows, padded to a multiple of 8 sentences.

    Args:
      vectors: [N, D] for each window.
      feature_rows: [N, F] for each window.
      firsts: the place of each window's first sentence in its document.
    """
    longest = -(-max(map(len, feature_rows)) // _LENGTH_STEP) * _LENGTH_STEP
    shape = (len(feature_rows), longest)
    batch = ExtractorInputs(
        np.zeros((*shape, vectors[0].shape[1]), np.float32),
        np.zeros((*shape, FEATURE_COUNT), np.float32),
        np.full(shape, -1, np.int32),
    )
    windows = zip(vectors, feature_rows, firsts, strict=True)
    for row, (window_vectors, window_features, first) in enumerate(windows):
        count = len(window_features)
        batch.vectors[row, :count] = window_vectors
        batch.features[row, :count] = window_features
        batch.places[row, :count] = np.arange(first, first + count)
    return batch


@dataclasses.dataclass(eq=False)
class SentenceScorer:
    """Scores the sentences of documents with a network.

    Attributes:
      extractor: the network that scores.
      encoder: computes the vectors that it reads; None if it reads features only.
      importance: of words and pairs, learned with the scores of `extractor`, by which
        sentences are chosen together; None where it was not learned.
      model_id: the name of the bundle, as in `Bundle`; empty before it is saved.
    """

    extractor: "Extractor"
    encoder: SentenceEncoder | None
    _: dataclasses.KW_ONLY
    importance: ImportanceModel | None = None
    model_id: str = ""

    def __post_init__(self) -> None:
        import tensorflow as tf

        extractor = self.extractor
        signature = [
            tf.TensorSpec([None, None, extractor.config.vector_width], tf.float32),
            tf.TensorSpec([None, None, FEATURE_COUNT], tf.float32),
            tf.TensorSpec([None, None], tf.int32),
        ]
        self._logits = tf.function(
            lambda *inputs: extractor(*inputs),
            input_signature=signature,
            autograph=False,
        )

    def score(self, documents: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Scores the sentences of documents.

        The other documents change no more than the last bits of a score. If a document
        has more sentences than the extractor reads, it is read in windows that overlap
        by 8 sentences.

        Args:
          documents: the sentences of each document.

        Returns:
          float64 [N] for each document: the probability, from 0 to 1, that a sentence
          belongs to the oracle summary.
        """
        texts = [
            [one_line(sentence) for sentence in document] for document in documents
        ]
        if self.encoder:
            vectors = self.encoder.vectors(texts)
        else:
            vectors = [np.zeros((len(document), 0), np.float32) for document in texts]
        return self.score_inputs(vectors, features_of_all(texts))

    def score_inputs(
        self, vectors: Sequence[np.ndarray], feature_rows: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Scores sentences as `score` does.

        Args:
          vectors: [N, D], the vectors of each document's sentences.
          feature_rows: [N, F], the features of each document's sentences.
        """
        limit = self.extractor.config.max_sentences
        windows = [
            (number, window)
            for number, rows in enumerate(feature_rows)
            for window in cut_windows(
                [1] * len(rows), limit=limit, overlap=_OVERLAP_SENTENCES
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
            logits = self._logits(*inputs).numpy().astype(np.float64)
            for (number, (first, new, last)), row in zip(batch, logits, strict=True):
                new_logits = row[new - first : last - first]
                scores[number][new:last] = 1.0 / (1.0 + np.exp(-new_logits))
        return scores


def save_scorer(
    folder: str,
    *,
    extractor: "Extractor",
    encoder: EncoderBundle | None,
    precision: str,
    provenance: dict[str, Any],
    importance: ImportanceModel | None = None,
) -> str:
    """Writes a bundle of the kind `extractive`.

    Args:
      folder: where to write.
      extractor: the network that scores.
      encoder: the encoder of the sentence vectors; None if it reads features only.
      precision: the number format that the encoder's layers compute in.
      provenance: what the bundle was trained from, for its manifest.
      importance: of words and pairs, learned with the scores of `extractor`; None where
        it was not learned.

    Returns:
      The model_id.
    """
    config: dict[str, Any] = {
        "extractor": dataclasses.asdict(extractor.config),
        "features": list(FEATURE_NAMES),
    }
    networks: list[Any] = [extractor]
    if encoder is not None:
        config |= {
            "encoder": stored_fields(encoder.encoder.config),
            "precision": precision,
        }
        networks.append(encoder.encoder)
    weights = {
        weight.path: weight.numpy()
        for network in networks
        for weight in network.weights
    }
    if importance is not None:
        config["importance"] = importance_config(importance)
        weights |= importance_tensors(importance)
    return save_bundle_files(
        folder,
        kind=EXTRACTIVE,
        config=config,
        weights=weights,
        provenance=provenance,
        tokenizer=encoder.tokenizer if encoder else None,
    )


def load_scorer(folder: str) -> SentenceScorer:
    """Reads a bundle of the kind `extractive`.

    Raises:
      UsageError: the folder is no complete bundle of that kind, or the extractor was
        trained on features that this version does not compute.
      DataError: a file differs from the manifest.
    """
    _, config, model_id, _ = open_bundle_config(folder, EXTRACTIVE)
    encoder = importance = None
    with naming_config(folder):
        check_features(folder, config["features"], FEATURE_NAMES)
        weights = open_weights(folder)
        from precis.model.network.build import build_network

        extractor = build_network(ExtractorConfig(**config["extractor"]))
        networks: list[Any] = [extractor]
        if "encoder" in config:
            network = build_network(
                EncoderConfig(**config["encoder"]), precision=config["precision"]
            )
            encoder = SentenceEncoder(network, open_tokenizer(folder))
            networks.append(network)
        for network in networks:
            for weight in network.weights:
                weight.assign(weights[weight.path])
        if "importance" in config:
            importance = read_importance(folder, config["importance"], weights)
    return SentenceScorer(extractor, encoder, importance=importance, model_id=model_id)
