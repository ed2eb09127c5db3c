"""Validation of a network in training: its loss and the ROUGE scores of its summaries
on held-out documents.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from precis.model import rouge
from precis.model.inference.summarizer import Summarizer
from precis.model.records.example import feature_spec
from precis.model.training.batch_shapes import BatchLimits, SpecialIds
from precis.model.training.input_batches import epoch_batches
from precis.model.training.loss import Sums, smoothed_cross_entropy


class Validation(NamedTuple):
    """The figures of one validation.

    Attributes:
      loss: mean loss of a target token, without smoothing.
      accuracy: share of the target tokens to which the network gave the highest
          probability.
      rouge: mean F1 score from 0 to 1 of each kind of ROUGE.
    """

    loss: float
    accuracy: float
    rouge: dict[str, float]

    def figures(self) -> dict[str, float]:
        """All figures by name."""
        return {"loss": self.loss, "accuracy": self.accuracy, **self.rouge}

    def __str__(self) -> str:
        scores = ", ".join(
            f"{name} {100 * value:.1f}" for name, value in self.rouge.items()
        )
        return f"loss {self.loss:.3f}, accuracy {self.accuracy:.1%}, {scores}"


class Validator:
    """Scores a network on the first documents of a split.

    The documents are read once, and the loss is compiled once.
    """

    def __init__(
        self,
        shards: Sequence[str],
        *,
        documents: int,
        limits: BatchLimits,
        ids: SpecialIds,
        summarizer: Summarizer,
    ) -> None:
        rows = tf.data.TFRecordDataset(list(shards)).take(documents)
        examples = [tf.io.parse_single_example(row, feature_spec()) for row in rows]
        self._sources = [
            example["source"].numpy().astype("int32") for example in examples
        ]
        self._references = [
            example["highlights"].numpy().decode() for example in examples
        ]
        self._batches = epoch_batches(
            list(shards),
            limits=limits,
            ids=ids,
            seed=0,
            epoch=0,
            shuffle_documents=0,
            take=documents,
        )
        self._ids = ids
        self._summarizer = summarizer
        self._sums = tf.function(
            self._loss_sums, reduce_retracing=True, autograph=False
        )

    def __call__(self) -> Validation:
        """Scores the network as it is now."""
        totals = np.sum(
            [[float(part) for part in self._sums(batch)] for batch in self._batches],
            axis=0,
        )
        loss, correct, tokens = totals
        summaries = [
            ranked[0].text for ranked in self._summarizer.summarize(self._sources)
        ]
        scores = rouge.scores(self._references, summaries)
        return Validation(
            loss=loss / tokens,
            accuracy=correct / tokens,
            rouge={name: float(np.mean(values)) for name, values in scores.items()},
        )

    def _loss_sums(self, batch: dict[str, tf.Tensor]) -> Sums:
        prediction = self._summarizer.network.predict_next(
            batch["source"], batch["target"]
        )
        return smoothed_cross_entropy(
            prediction, batch["expected"], pad_id=self._ids.target_pad, smoothing=0.0
        )
