"""Scores of sentences by a trained network, and the bundle that holds it.

config.json            shape of the extractor; of the encoder, where there is one, with the number format its layers compute in
tokenizer/             of the encoder
weights.safetensors    both networks' weights
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.bundle.encoder_bundle import EncoderBundle
from precis.model.bundle.network_bundle import (
    EXTRACTIVE,
    open_files,
    open_tokenizer,
    open_weights,
    save_files,
)
from precis.model.errors import UsageError
from precis.model.extractive.features import COUNT, NAMES, features
from precis.model.inference.sentence_vectors import SentenceEncoder, cut_windows
from precis.model.network.config import EncoderConfig, ExtractorConfig
from precis.model.text.normalization import one_line

if TYPE_CHECKING:  # TensorFlow takes seconds to import
    from precis.model.network.extractor import Extractor

_OVERLAP_SENTENCES = 8
_BATCH_WINDOWS = 64
_LENGTH_STEP = 8


class Inputs(NamedTuple):
    """What the extractor reads of B windows of N sentences: vectors float32 [B, N, D],
    features float32 [B, N, F], places int32 [B, N].
    """

    vectors: np.ndarray
    features: np.ndarray
    places: np.ndarray


def pad_inputs(
    vectors: Sequence[np.ndarray],
    own_features: Sequence[np.ndarray],
    firsts: Sequence[int],
) -> Inputs:
    """Windows as one batch, padded to a multiple of 8 sentences.

    Args:
      vectors: [N, D] a window.
      own_features: [N, F] a window.
      firsts: the place of each window's first sentence in its document.
    """
    longest = -(-max(map(len, own_features)) // _LENGTH_STEP) * _LENGTH_STEP
    shape = (len(own_features), longest)
    batch = Inputs(
        np.zeros((*shape, vectors[0].shape[1]), np.float32),
        np.zeros((*shape, COUNT), np.float32),
        np.full(shape, -1, np.int32),
    )
    for row, (own, figures, first) in enumerate(
        zip(vectors, own_features, firsts, strict=True)
    ):
        count = len(figures)
        batch.vectors[row, :count], batch.features[row, :count] = own, figures
        batch.places[row, :count] = np.arange(first, first + count)
    return batch


class NeuralScorer:
    """Scores the sentences of documents.

    Attributes:
      model_id: names the bundle, as in `model.bundle.Bundle`; empty before it is one.
    """

    def __init__(
        self,
        extractor: "Extractor",
        encoder: SentenceEncoder | None,
        *,
        model_id: str = "",
    ) -> None:
        import tensorflow as tf

        self.model_id = model_id
        self._extractor, self._encoder = extractor, encoder
        shapes = ([None, None, extractor.config.vector_width], [None, None, COUNT])
        signature = [
            *(tf.TensorSpec(shape, tf.float32) for shape in shapes),
            tf.TensorSpec([None, None], tf.int32),
        ]
        self._logits = tf.function(
            lambda *inputs: extractor(*inputs),
            input_signature=signature,
            autograph=False,
        )

    def score(self, documents: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """How likely each sentence belongs to the oracle summary.

        A document's scores do not depend on the others. One with more sentences than
        the extractor reads at once is read in windows that overlap by 8 sentences.

        Returns:
          float64 [N] in 0..1 a document.
        """
        texts = [
            [one_line(sentence) for sentence in document] for document in documents
        ]
        vectors = (
            self._encoder.vectors(texts)
            if self._encoder
            else [np.zeros((len(document), 0), np.float32) for document in texts]
        )
        return self.score_inputs(vectors, [features(document) for document in texts])

    def score_inputs(
        self, vectors: Sequence[np.ndarray], own_features: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """As `score`, from the vectors [N, D] and the features [N, F] of each
        document's sentences.
        """
        limit = self._extractor.config.max_sentences
        windows = [
            (number, window)
            for number, rows in enumerate(own_features)
            for window in cut_windows(
                [1] * len(rows), limit=limit, overlap=_OVERLAP_SENTENCES
            )
        ]
        windows.sort(
            key=lambda entry: entry[1].last - entry[1].first
        )  # stable: equal lengths stay in order
        found = [np.zeros(len(rows)) for rows in own_features]
        for start in range(0, len(windows), _BATCH_WINDOWS):
            batch = windows[start : start + _BATCH_WINDOWS]
            inputs = pad_inputs(
                [
                    vectors[number][window.first : window.last]
                    for number, window in batch
                ],
                [
                    own_features[number][window.first : window.last]
                    for number, window in batch
                ],
                [window.first for _, window in batch],
            )
            logits = self._logits(*inputs).numpy().astype(np.float64)
            for (number, window), row in zip(batch, logits, strict=True):
                found[number][window.new : window.last] = 1.0 / (
                    1.0
                    + np.exp(
                        -row[window.new - window.first : window.last - window.first]
                    )
                )
        return found


def save_scorer(
    folder: str,
    *,
    extractor: "Extractor",
    encoder: EncoderBundle | None,
    precision: str,
    provenance: dict[str, Any],
) -> str:
    """Writes an extractor, with the encoder that its vectors come from, as a bundle.

    Returns:
      The model_id.
    """
    config: dict[str, Any] = {
        "extractor": dataclasses.asdict(extractor.config),
        "features": list(NAMES),
    }
    networks: list[Any] = [extractor]
    if encoder is not None:
        config |= {
            "encoder": dataclasses.asdict(encoder.encoder.config),
            "precision": precision,
        }
        networks.append(encoder.encoder)
    return save_files(
        folder,
        kind=EXTRACTIVE,
        config=config,
        weights={
            weight.path: weight.numpy()
            for network in networks
            for weight in network.weights
        },
        provenance=provenance,
        tokenizer=encoder.tokenizer if encoder else None,
    )


def load_scorer(folder: str) -> NeuralScorer:
    """Reads a bundle of the kind `extractive`.

    Raises:
      UsageError: the folder is no complete bundle of that kind, or one whose features
          this precis does not compute.
      DataError: a file differs from the manifest.
    """
    _, config, model_id = open_files(folder, EXTRACTIVE)
    if tuple(config["features"]) != NAMES:
        raise UsageError(
            f"{folder}: trained on other features ({', '.join(config['features'])}) than this precis computes; train it again"
        )
    weights = open_weights(folder)
    from precis.model.network.build import build_encoder, build_extractor

    extractor = build_extractor(ExtractorConfig(**config["extractor"]))
    networks: list[Any] = [extractor]
    encoder = None
    if "encoder" in config:
        network = build_encoder(
            EncoderConfig(**config["encoder"]), precision=config["precision"]
        )
        encoder = SentenceEncoder(network, open_tokenizer(folder))
        networks.append(network)
    for network in networks:
        for weight in network.weights:
            weight.assign(weights[weight.path])
    return NeuralScorer(extractor, encoder, model_id=model_id)
